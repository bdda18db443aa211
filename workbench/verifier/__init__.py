"""The local verifier's model: a small cross-encoder that says whether passages support or
contradict a claim, offline.

    verifier = load_verifier()
    # [(support, contradict, neutral)]
    verifier.predict([("The bridge opened in 1931.", "The bridge is old.")])
    verifier.check("The bridge opened in 1931.", passages)  # long evidence in windows

As a check it is `workbench.verdicts.local`. `workbench verifier train` makes one, `workbench
verifier evaluate` says how good it is.
"""

from workbench.verifier.evaluate import evaluate_verifier
from workbench.verifier.rows import LABELS, Row, read_rows
from workbench.verifier.verifier import Check, Settings, Verifier, find_verifier, load_verifier

__all__ = [
    "LABELS",
    "Check",
    "Row",
    "Settings",
    "Verifier",
    "evaluate_verifier",
    "find_verifier",
    "load_verifier",
    "read_rows",
]
