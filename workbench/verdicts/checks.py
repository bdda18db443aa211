"""Collect the checks that each judge offers, by name, such as "fact" and "outcome".

A check is a function from responses with their claims to verdicts.
"""

from dataclasses import replace

from workbench.claims import given_or, judged, rules, single_pass
from workbench.claims import world as world_claims
from workbench.data.real_facts import pages
from workbench.judge.outlines import outlines
from workbench.retrieval import Search, from_passages
from workbench.types import Checks, Judge
from workbench.verdicts import checklist, claim_checklist, facts, judged_outcome, outcome, reasoning
from workbench.verdicts.local import local_facts
from workbench.verdicts.local_first import local_first
from workbench.verdicts.real_facts import by_table
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
    """Return the checks of the closed world, which use its generated facts and no model.

    The checks are "fact", "outcome", "checklist", "claim_checklist", "reasoning" and
    "out_of_knowledge" (described in `Checks`).
    """
    verify = {
        "fact": world_facts(world),
        "outcome": outcome(),
        "checklist": world_checklist(world),
        "claim_checklist": world_claim_checklist(world),
        "reasoning": world_reasoning(world),
        "out_of_knowledge": world_boundary(world),
    }
    return Checks(
        given_or(world_claims(world)),
        verify,
        recognise=lambda question: world_question(world, question),
    )


def judge_checks(judge: Judge, search: Search | None = None, in_doubt: bool = False) -> Checks:
    r"""Return the checks by a language model, such as "fact" (claims) and "outcome" (final answer).

    If the system prompt of a question mentions `\boxed{}`, only the content of the response's box
    counts as its final answer.

    Args:
        judge: the language model, such as `workbench.judge.endpoint(URL, MODEL)`.
        search: finds passages for questions without passages. None: the claims of these questions
            get an error.
        in_doubt: if True, rules decide whether an answer is correct, and the judge is called only
            if the rules are uncertain.
    """
    verify = {
        "fact": facts(judge, search),
        "outcome": judged_outcome(judge, in_doubt),
        "checklist": checklist(judge),
        "claim_checklist": claim_checklist(judge),
        "reasoning": reasoning(judge),
    }
    return Checks(
        # claims of the input row replace extracted ones
        given_or(judged(judge)),
        verify,
        given_or(single_pass(judge, search), labels=True),
        write=outlines(judge),
    )


def rule_checks() -> Checks:
    r"""Return checks that need no model: rules extract the claims and check the final answer.

    The only check is "outcome", so the claims get no labels. If the system prompt of a question
    mentions `\boxed`, only an answer in `\boxed{}` counts.
    """
    return Checks(given_or(rules()), {"outcome": outcome(None)})


def real_checks() -> Checks:
    """Return checks for claims about real countries and cities.

    A claim in a known form ("The capital of X is Y") is looked up in a table of facts, which is
    part of the repository. If the table cannot decide, the local verifier (a small entailment
    model) compares the claim with the passages of the question. For a question without passages,
    it searches the pages that are stored with the table: the page with the question's title or,
    without a title, all pages.
    """
    checks = local_checks(from_passages(pages()).search)
    return replace(checks, verify={**checks.verify, "fact": by_table(checks.verify["fact"])})


def local_first_checks(
    judge: Judge, search: Search | None = None, verifier: str | None = None
) -> Checks:
    """Return checks that use the local verifier and rules first, then a language model.

    The local verifier is a small entailment model. Rules extract the claims. The language model is
    called only for:

    * claims that the local verifier labels correct
    * claims in a language or script that the local verifier cannot read
    * final answers for which the rules are uncertain
    * checks that need a language model, such as "checklist" and "reasoning"

    Args:
        judge: the language model.
        search: finds passages for questions without passages. None: the claims of these questions
            get an error.
        verifier: folder or hub name of the local verifier (see `choose_verifier`); None: the
            shipped one.
    """
    model = judge_checks(judge, search, in_doubt=True)
    local = local_facts(choose_verifier(verifier), search, alone=False)
    fact = local_first(local, facts(judge, search, informativeness=False))
    return Checks(given_or(rules()), {**model.verify, "fact": fact}, write=model.write)


def local_checks(search: Search | None = None, verifier: str | None = None) -> Checks:
    """Return the checks of the local verifier, a small entailment model that needs no server.

    The verifier labels the claims ("fact"). Rules extract the claims and check the final answer
    ("outcome").

    Args:
        search: finds passages for questions without passages. None: the claims of these questions
            get an error.
        verifier: folder or hub name of the verifier (see `choose_verifier`); None: the shipped
            one.

    Raises:
        WorkbenchError: the verifier cannot be loaded, for example because its weights are missing
            or changed.
    """
    fact = local_facts(choose_verifier(verifier), search)
    return Checks(given_or(rules()), {"fact": fact, "outcome": outcome()})
