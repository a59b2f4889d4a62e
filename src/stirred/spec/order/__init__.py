"""Which guarantee is stronger: comparison, its reasons and its witnesses."""
