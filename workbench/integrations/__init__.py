"""The methods' rewards in trainers that are not ours: what these have in common, and each
trainer's own side.
"""
