"""Responses to claims: four extractors.

`world` reads the closed world exactly, `judged` and `single_pass` ask a judge, `rules` needs no
model. All give the same sentences for the same text (`world` those of its own grammar), and none
makes a claim of a question, a refusal or an opinion.
"""

from __future__ import annotations

from workbench.claims.judged import judged, single_pass
from workbench.claims.rules import rules
from workbench.claims.statements import makes_claims
from workbench.claims.world import world

__all__ = ["judged", "makes_claims", "rules", "single_pass", "world"]
