"""`workbench score`: a file of responses to feedback, row by row."""

from workbench.scoring.estimate import estimate_file
from workbench.scoring.options import Options
from workbench.scoring.run import score_file

__all__ = ["Options", "estimate_file", "score_file"]
