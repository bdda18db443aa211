"""KnowRL (arXiv 2506.19807): rewards for supported facts inside the thinking."""
