"""A workbench for making language models factual by reinforcement learning.

The package names are the stages of one pipeline: a policy generates responses, answers and claims get verdicts, verdicts
become rewards, rewards become token credit, and a trainer uses them. Importing the package imports nothing heavy.
"""

__version__ = "0.1.0"
