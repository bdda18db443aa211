"""Build the tiny policy: write its training data, train it, measure it and write a model card."""
