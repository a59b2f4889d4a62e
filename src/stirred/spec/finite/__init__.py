"""Finite domains: laws, mechanisms and what a guarantee says of them, enumerated."""
