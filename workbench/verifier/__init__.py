"""The local verifier: a small cross-encoder that says whether passages support or contradict a claim, without a network.

    verifier = load_verifier()
    verifier.predict([("The bridge opened in 1931.", "The bridge is old.")])   # [(support, contradict, neutral)]
    verifier.check("The bridge opened in 1931.", passages)                     # long evidence in windows
    local_facts(verifier)                                                      # a `Verify` for `grade`

`workbench verifier train` makes one, `workbench verifier evaluate` says how good it is.
"""

from workbench.verifier.check import Check, Settings, Verifier, load_verifier
from workbench.verifier.evaluate import evaluate_verifier
from workbench.verifier.facts import informativeness, local_facts
from workbench.verifier.robustness import robustness
from workbench.verifier.rows import LABELS, Row, read_rows

__all__ = [
    "LABELS",
    "Check",
    "Row",
    "Settings",
    "Verifier",
    "evaluate_verifier",
    "informativeness",
    "load_verifier",
    "local_facts",
    "read_rows",
    "robustness",
]
