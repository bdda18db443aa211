"""Extract claims from responses.

Each function here, except `makes_claims`, returns an extractor: a function from a batch of
responses to their claims. `world` parses the closed world's grammar exactly. `judged` and
`single_pass` call a judge. `rules` needs no model. `given_or` uses the claims that an input row
contains. All but `given_or` skip questions and refusals.
"""

from workbench.claims.given import given_or
from workbench.claims.judged import judged, single_pass
from workbench.claims.rules import rules
from workbench.claims.statements import makes_claims
from workbench.claims.world import world

__all__ = ["given_or", "judged", "makes_claims", "rules", "single_pass", "world"]
