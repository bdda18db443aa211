"""`workbench score`: turn a file of responses into a file of feedback rows."""

from workbench.scoring.estimate import estimate_file
from workbench.scoring.options import Options
from workbench.scoring.run import score_file

__all__ = ["Options", "estimate_file", "score_file"]
