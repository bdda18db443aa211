"""Convert a response's feedback to the plain data that the token view draws."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from workbench.credit.advantages import ESTIMATORS, advantages
from workbench.credit.attribute import assign_token_rewards, is_placed, place, token_at
from workbench.types import (
    REASONS,
    Claim,
    Failure,
    Feedback,
    JsonMapping,
    JsonObject,
    Span,
    Verdict,
    WorkbenchError,
)
from workbench.util.failures import is_logged, is_remark, remarks, unjudged
from workbench.util.jsonl import encodable

CONTEXT = 220  # characters of a long passage shown on each side of the quoted evidence
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    "a an and are as at by for from he her his in is it its of on or she that the their they this"
    " to was were with".split()
)

# labels of checks by target and aspect; {n} counts from 1
CHECKS = {
    ("outcome", "answer"): "Final answer against the gold answer",
    ("reasoning", "reasoning"): "Reasoning",
    ("response", "factuality"): "Factuality of the whole answer",
    ("response", "general"): "General quality",
    ("response", "baseline"): "Factuality of the reference answer",
    ("response", "out_of_knowledge"): "Can the model know this?",
    ("response", "informativeness"): "Informativeness of the claims",
    ("segment", "factuality"): "Factuality of sentence {n}",
    ("claim", "truth"): "Claim {n}, by the truthfulness model",
    ("claim", "checklist"): "Claim {n} against the checklist",
    ("item", "checklist"): "Fact {n} of the checklist",
}
# notes on a claim by its "subject" verdict
USELESS_FOR = {
    "other": "about another subject than the question",
    "asked": "repeats an earlier claim",
}
# meaning of a verdict's p by aspect; for other aspects it is a score
MEASURES = {"truth": "P(true)", "fact": "P(true)", "factuality": "P(factual)"}

# an evidence item -> (title, text), or None if unknown
Lookup = Callable[[JsonMapping], tuple[str, str] | None]


def payload(
    feedback: Feedback,
    method: str | None = None,
    group: Sequence[Feedback] = (),
    *,
    name: str = "",
    lookup: Lookup | None = None,
) -> JsonObject:
    """Return the data that the token view draws, as an object for JSON.

    Among its keys are "passages" (the [title, text] of each passage of the question), "text",
    "tokens" (their spans), "claims" with verdicts, "checks" (the other verdicts), "methods"
    (method -> reward), "channels" (numbers for each token, such as log probabilities) and "key" (a
    digest of name, id and text). Positions are in Unicode code points.

    Args:
        feedback: the response with its claims, verdicts and rewards.
        method: the method whose rewards are shown first; None: the first of `feedback.rewards`.
        group: the responses to the same prompt, including `feedback`. They are used to compute
            advantages; without a group, there are no advantages.
        name: a label that says where the response comes from, such as the run.
        lookup: evidence item -> (title, text), or None if unknown. It is called for evidence that
            is not a passage of the question. None: the fields of such evidence are shown.
    """
    response = feedback.response
    methods = {
        label: _method(feedback, label, group) for label in feedback.rewards if not is_logged(label)
    }
    data = {
        "id": response.id,
        "name": name,
        "step": response.step,
        "question": response.question.text,
        "answers": response.question.answers,
        "passages": [[one.title or one.id, one.text] for one in response.question.passages],
        "text": encodable(response.text),
        "finish": response.finish,
        "source": response.source,
        "tokens": response.offsets,
        "ids": response.token_ids,
        "sentences": sorted(feedback.sentences),
        "claims": [_claim(feedback, item, lookup) for item in feedback.claims],
        "checks": [
            _check(feedback, verdict)
            for verdict in feedback.verdicts
            if not (verdict.target.startswith("claim:") and verdict.aspect in ("fact", "subject"))
        ],
        "methods": methods,
        "logged": {
            name: reward.value for name, reward in feedback.rewards.items() if is_logged(name)
        },
        "method": method if method in methods else next(iter(methods), None),
        "channels": {
            "logprob": response.logprobs,
            # KL estimate per token: log p(policy) − log p(reference model) of the sampled token
            "kl": [
                own - reference
                for own, reference in zip(response.logprobs, response.ref_logprobs, strict=False)
            ],
            "value": response.values,
            "ratio": response.ratios,
        },
        "error": _failure(feedback.error),
    }
    # rows of different runs may share an id, and a row may be stored again with another text
    identity = f"{name}\0{response.id}\0{response.text}".encode("utf-8", "surrogatepass")
    return data | {"key": hashlib.sha256(identity).hexdigest()[:16]}


def as_json(data: object) -> str:
    """Return JSON text that is safe inside a script element: ASCII without `<`, `>` and `&`.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    text = json.dumps(data, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _failure(failure: Failure | None) -> JsonObject | None:
    return asdict(failure) if failure else None


def _method(feedback: Feedback, method: str, group: Sequence[Feedback]) -> JsonObject:
    response, reward = feedback.response, feedback.rewards[method]
    tokens: Sequence[float] = ()
    if reward.value is not None:  # older rows store events without token rewards
        tokens = reward.tokens or place(response, reward.events)
    events = []
    for event in reward.events:
        last, first = -1, None
        if response.offsets:
            last = token_at(response, event.end)
            first = None if event.start is None else min(token_at(response, event.start + 1), last)
        columns = {"part": event.part, "value": event.value, "claim": event.claim}
        events.append({**columns, "token": last, "from": first})
    return {
        "value": reward.value,
        "parts": dict(reward.parts),
        "tokens": list(tokens),
        "events": events,
        "unplaced": reward.unplaced,
        "error": _failure(reward.error),
        "advantages": advantages_of(feedback, method, group),
    }


def advantages_of(
    feedback: Feedback, method: str, group: Sequence[Feedback]
) -> dict[str, list[float]]:
    """Return the advantage of each token of a response, by several estimators.

    The result is name of the estimator, such as "group" -> one number per token. The advantages are
    computed from the rewards of `method` in the group. Return {} if `group` does not contain the
    response, or the response has no tokens.
    """
    ids = [row.response.id for row in group]
    if feedback.response.id not in ids or not feedback.response.offsets:
        return {}
    index = ids.index(feedback.response.id)
    return {name: list(rows_BT[index]) for name, rows_BT in group_advantages(group, method).items()}


def group_advantages(group: Sequence[Feedback], method: str) -> dict[str, list[tuple[float, ...]]]:
    """Return the token advantages of each response of a group, from the rewards of `method`.

    The result is name of the estimator, such as "group" -> for each response, one number per token.
    An estimator is left out if the responses lack its inputs; "gae" needs the values of a critic.
    Return {} if a response has no reward of `method`.
    """
    if any(method not in row.rewards for row in group):
        return {}
    rows = [
        replace(
            row,
            rewards={**row.rewards, method: assign_token_rewards(row, row.rewards[method])},
        )
        for row in group
    ]
    estimates = {}
    for name, estimator in ESTIMATORS.items():
        try:
            estimates[name] = advantages(rows, method, estimator)
        except WorkbenchError:
            continue
    return estimates


def _claim(feedback: Feedback, claim: Claim, lookup: Lookup | None) -> JsonObject:
    target = f"claim:{claim.id}"
    span = _whole_words(feedback.response.text, claim.span) if claim.span else None
    verdict = feedback.verdict(target, "fact") or feedback.verdict(target)
    verdict = verdict or Verdict(target, "fact")
    return {
        "id": claim.id,
        "text": claim.text,
        "section": claim.section,
        "sentence": claim.sentence,
        "span": span,
        "coverage": claim.coverage,
        "placed": is_placed(claim),
        "matched": encodable(feedback.response.text[slice(*span)]) if span else "",
        "label": verdict.label,
        "p": verdict.p,
        "informativeness": verdict.informativeness,
        "by": verdict.by,
        "error": _failure(verdict.error),
        "notes": _notes(verdict, feedback.verdict(target, "subject")),
        "evidence": [_evidence(feedback, claim, item, lookup) for item in quoted(verdict)],
    }


def quoted(verdict: Verdict) -> tuple[JsonMapping, ...]:
    """Return the items of a verdict's evidence that quote a source.

    Other items are left out: remarks of the judge, and its reasons for not judging the claim.
    """
    return tuple(
        item
        for item in verdict.evidence
        if not unjudged({"evidence": (item,)}) and not is_remark(item)
    )


def _notes(verdict: Verdict, subject: Verdict | None) -> list[str]:
    """Return notes on a claim: why it was not judged, remarks of the judge, and its subject.

    The subject gets a note if the verdict `subject` says that the claim is about another subject
    than the question, or repeats an earlier claim.
    """
    reasons = (REASONS.get(reason, reason) for reason in unjudged(vars(verdict)).values())
    useless = [USELESS_FOR[subject.label]] if subject and subject.label in USELESS_FOR else []
    return [*reasons, *remarks(vars(verdict)), *useless]


def _whole_words(text: str, span: Span) -> list[int]:
    """Extend a span to whole words, because a match may begin or end inside a word."""
    start, end = span
    while 0 < start < len(text) and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while 0 < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    return [start, end]


def _evidence(
    feedback: Feedback, claim: Claim, item: JsonMapping, lookup: Lookup | None
) -> JsonObject:
    """Return the title and the text of a piece of evidence, as {"title", "parts"}.

    "parts" is a list of [piece of text, level]. Level 1 is the quoted span, 2 a word of the claim,
    0 the rest.
    """
    passages = feedback.response.question.passages
    passage = next((p for p in passages if p.id == item.get("passage")), None)
    if passage:
        title, text = passage.title or passage.id, passage.text
    elif lookup and (source := lookup(item)):
        title, text = source
    else:  # evidence that is not a passage: show its fields
        description = ", ".join(f"{k} {v}" for k, v in item.items() if k not in ("span", "text"))
        title, text = (str(item.get(key, description)) for key in ("title", "text"))
    span = item.get("span")
    # a stored span may exceed the text
    start, end = (max(0, span[0]), min(len(text), span[1])) if span else (0, len(text))
    parts = _marked(text, start, max(start, end), claim=claim.text, quoted=bool(span))
    return {"title": title, "parts": parts}


def _marked(text: str, start: int, end: int, claim: str, quoted: bool) -> list[tuple[str, int]]:
    """Split a span of a text, with `CONTEXT` characters on each side, into [piece, level].

    See `_evidence` for the levels. If the span is not `quoted`, level 1 is not used.
    """
    shared = {word.casefold() for word in _WORD.findall(claim)} - _COMMON
    before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
    parts: list[tuple[str, int]] = [(("… " if start > CONTEXT else "") + before, 0)]
    inside, position = int(quoted), start
    for word in _WORD.finditer(text, start, end):
        if word.group().casefold() in shared:
            parts += [(text[position : word.start()], inside), (word.group(), 2)]
            position = word.end()
    parts += [
        (text[position:end], inside),
        (after + (" …" if end + CONTEXT < len(text) else ""), 0),
    ]
    return [part for part in parts if part[0]]


def _check(feedback: Feedback, verdict: Verdict) -> JsonObject:
    kind, _, number = verdict.target.partition(":")
    index = int(number) if number.isdecimal() else None
    template = CHECKS.get((kind, verdict.aspect), f"{verdict.target}: {verdict.aspect}")
    words = template.replace("{n}", number if index is None else str(index + 1))
    if kind == "item" and index is not None and index < len(feedback.response.question.checklist):
        words = feedback.response.question.checklist[index]
    return {
        "words": words,
        "group": {"item": "checklist", "claim": "parts", "segment": "parts"}.get(kind, "answer"),
        "measure": MEASURES.get(verdict.aspect, "score"),
        "label": verdict.label,
        "p": verdict.p,
        "by": verdict.by,
        "error": _failure(verdict.error),
    }
