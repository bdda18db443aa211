"""Experiments: train and evaluate a method on a bench, probe a policy, run queues of trainings."""
