"""KLCF (arXiv 2509.23765): rewards for agreement with what the base model knows."""
