"""Trainers: how a policy is loaded for training, what a run's folder holds, and one module per
algorithm.
"""
