"""TruthRL (arXiv 2509.25760): a ternary reward for the outcome of an answer."""
