"""Exact and extended-real arithmetic of budgets and distances."""
