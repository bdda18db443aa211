"""The local verifier: a small cross-encoder that decides whether passages support a claim, offline.

    verifier = load_verifier()
    # [(p(support), p(contradict), p(neutral))]
    verifier.predict([("The bridge opened in 1931.", "The bridge is old.")])
    verifier.check("The bridge opened in 1931.", passages)  # reads long evidence in windows

`workbench.verdicts.local` uses the verifier as a judge. `workbench verifier calibrate` calibrates
another model, and `workbench verifier evaluate` measures a verifier.
"""

from workbench.verifier.evaluate import evaluate_verifier
from workbench.verifier.rows import Row, read_rows
from workbench.verifier.verifier import Verifier, find_verifier, load_verifier

__all__ = [
    "Row",
    "Verifier",
    "evaluate_verifier",
    "find_verifier",
    "load_verifier",
    "read_rows",
]
