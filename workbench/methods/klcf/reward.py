"""KLCF's reward (arXiv 2509.23765, section 2.3). The terms are in `terms.py`."""

from itertools import starmap
from math import fsum

from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.terms import checklist, count_tokens, overlong, truthfulness
from workbench.methods.lookup import (
    Table,
    Unscored,
    check_not_failed,
    find,
    probability,
    scored,
    total,
    unscored,
)
from workbench.text import well_formed
from workbench.types import Event, Feedback, Reward, RewardFn, WorkbenchError
from workbench.util.config import check_values


def reward(config: KLCF) -> RewardFn:
    """Return the reward function: the weighted mean of the terms plus format and length (equations
    5 to 11), placed at the end of the response.

    It reads "checklist" and "truth" (or "fact") verdicts. A response that breaks the format gets
    format + length only; its part "format" is -1 instead of 0. A term of weight 0 is not used and
    needs no verdict. A term without its verdict leaves a well-formed response unscored; a failed
    verdict leaves any response unscored.

    Raises:
        WorkbenchError: a setting has a value that cannot work.
    """
    check_values(config)
    weights = {"check": config.w_check, "truth": config.w_truth, "general": config.w_general}
    if min(weights.values()) < 0 or not any(weights.values()):
        raise WorkbenchError(
            f"the weights of klcf are {weights}: set none below 0 and at least one above 0"
        )
    if config.abstain and not config.w_truth:
        raise WorkbenchError(
            f"klcf.abstain is {config.abstain}, but has no effect because klcf.w_truth is 0: leave"
            " klcf.abstain out, or set klcf.w_truth above 0"
        )
    if config.l_max is not None and not 0 < config.l_cache <= config.l_max:
        raise WorkbenchError(
            f"klcf.l_cache is {config.l_cache}: it must be above 0 and at most l_max,"
            f" {config.l_max}"
        )
    only_missing = config.truth == "missing"

    @scored
    def klcf(feedback: Feedback, verdicts: Table) -> Reward:
        if config.w_truth:
            _check_claims(feedback, verdicts, only_missing)
        if config.w_check:
            for target, aspect in verdicts:
                if aspect == "checklist" and target.startswith("item:"):
                    check_not_failed(verdicts, target, aspect)
        if config.w_general:
            check_not_failed(verdicts, "response", "general")
        response = feedback.response
        length = (
            0.0
            if config.l_max is None
            else overlong(count_tokens(response), config.l_max, config.l_cache)
        )
        if config.form and not well_formed(response.text, response.prefill):
            outer = {"format": -1.0, "length": length}
            return Reward(length - 1.0, outer, tuple(starmap(Event, outer.items())))
        terms: dict[str, float] = {}
        parts: dict[str, float] = {}
        if config.w_check:
            parts |= checklist(feedback, verdicts, config.b)
            terms["check"] = parts["check"]
        if config.w_truth:
            value, stood_in = truthfulness(feedback, verdicts, only_missing, config.abstain)
            parts["stood_in"] = float(stood_in)
            if value is not None:
                terms["truth"] = value
        if config.w_general:
            terms["general"] = probability(find(verdicts, "response", "general"))
        if not terms:
            raise unscored(
                "no_terms",
                "no term of the reward applies to this response: set klcf.w_check above 0",
            )
        whole = fsum(weights[name] for name in terms)
        events = [Event(name, weights[name] / whole * value) for name, value in terms.items()]
        outer = {**({"format": 0.0} if config.form else {}), "length": length}
        events += starmap(Event, outer.items())
        return Reward(total(events), {**parts, **terms, **outer}, tuple(events))

    return klcf


def _check_claims(feedback: Feedback, verdicts: Table, compared: bool) -> None:
    """Raise the failure of the extraction, or of a check of a claim outside the thinking.

    The check is that of the claim's truth and, with `compared`, also its checklist check.
    """
    if feedback.error is not None:
        raise Unscored(feedback.error)
    for claim in feedback.claims:
        if claim.section != "think":
            check_not_failed(verdicts, f"claim:{claim.id}", "truth", "fact")
            if compared:
                check_not_failed(verdicts, f"claim:{claim.id}", "checklist")


def checks(config: KLCF, truth: str = "fact") -> tuple[str, ...]:
    """Return the names of the checks that the terms in use read.

    `truth` gives P(true): "fact", or "truth" by a truthfulness model.
    """
    compared = ("claim_checklist",) if config.truth == "missing" else ()
    return (
        *((truth, *compared) if config.w_truth else ()),
        *(("checklist",) if config.w_check else ()),
        *(("general",) if config.w_general else ()),
    )
