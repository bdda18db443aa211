"""What a judge can do, by the names of the checks that the methods ask for."""

from __future__ import annotations

from workbench.claims import judged, rules, single_pass
from workbench.claims import world as world_claims
from workbench.judge.outlines import outlines
from workbench.retrieval import Search
from workbench.types import Checks, Judge
from workbench.verdicts import checklist, claim_checklist, facts, judged_outcome, outcome, reasoning
from workbench.verdicts.local import local_facts
from workbench.verdicts.world import (
    world_boundary,
    world_checklist,
    world_claim_checklist,
    world_facts,
    world_question,
    world_reasoning,
)
from workbench.verifier.named import choose_verifier
from workbench.world.world import World


def world_checks(world: World) -> Checks:
    """The closed world as a judge: exact, and free."""
    verify = {
        "fact": world_facts(world),
        "outcome": outcome(),
        "checklist": world_checklist(world),
        "claim_checklist": world_claim_checklist(world),
        "reasoning": world_reasoning(world),
        "out_of_knowledge": world_boundary(world),
    }
    return Checks(
        world_claims(world), verify, recognise=lambda question: world_question(world, question)
    )


def judge_checks(judge: Judge, search: Search | None = None, in_doubt: bool = False) -> Checks:
    r"""A language model as a judge, with `search` for the evidence of questions that bring no
    passages.

    Where the system prompt of a question names `\boxed{}`, only what stands in it is an answer.
    With `in_doubt` rules decide outcomes, and the judge those that they doubt.
    """
    verify = {
        "fact": facts(judge, search),
        "outcome": judged_outcome(judge, None, in_doubt),
        "checklist": checklist(judge),
        "claim_checklist": claim_checklist(judge),
        "reasoning": reasoning(judge),
    }
    return Checks(judged(judge), verify, single_pass(judge), write=outlines(judge))


def rule_checks(require_box: bool | None = False) -> Checks:
    """What rules alone can tell: the claims of a response, and its outcome where there are gold
    answers.
    """
    return Checks(rules(), {"outcome": outcome(require_box)})


def local_checks(search: Search | None = None, verifier: str | None = None) -> Checks:
    """Without a judge's model: claims by rules, facts by the small model of
    `workbench.verifier` or the one that `verifier` names (`choose_verifier`), outcome by
    rules.

    Raises:
        WorkbenchError: the model's weights are not there, or are not those that it was trained
        on.
    """
    return Checks(
        rules(), {"fact": local_facts(choose_verifier(verifier), search), "outcome": outcome()}
    )
