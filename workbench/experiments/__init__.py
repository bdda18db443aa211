"""Train and evaluate a method on a bench, probe a policy's knowledge, run queues of trainings."""
