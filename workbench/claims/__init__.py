"""Extract claims from responses.

`world`, `judged`, `single_pass`, `rules` and `given_or` return an extractor: a function from a
batch of responses to their claims.

* `world` parses the closed world's grammar exactly.
* `judged` and `single_pass` call a judge.
* `rules` applies rules of grammar, without a model.
* `given_or` returns the claims of the input row, if it has any, and else calls another extractor.

Extractors skip questions and refusals. Claims of the input row are never skipped.
"""

from workbench.claims.given import given_or
from workbench.claims.judged import judged, single_pass
from workbench.claims.rules import rules
from workbench.claims.statements import makes_claims
from workbench.claims.world import world

__all__ = ["given_or", "judged", "makes_claims", "rules", "single_pass", "world"]
