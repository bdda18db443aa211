"""RLFH (arXiv 2406.12221): rewards for the truth and the helpfulness of every claim."""
