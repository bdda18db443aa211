"""`workbench score`: a file of responses to feedback, row by row."""

from workbench.score.estimate import estimate_file
from workbench.score.options import Options
from workbench.score.run import score_file

__all__ = ["Options", "estimate_file", "score_file"]
