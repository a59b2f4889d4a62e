"""Losses of repeated and of sampled releases."""
