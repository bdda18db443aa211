"""A table of real facts and the real models that are measured on it."""
