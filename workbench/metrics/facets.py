"""Metrics of an answer on several facets, beside its facts. FoRAG's judge (arXiv 2406.13779)
rates coherence and helpfulness as a whole; these rules measure parts of it *(ours)*.

The question's title names the facets. A claim is about the facets that its text names. Only the
answer counts, not the thinking.

    form         the answer is planned as `read_outline` reads it, and was not cut off
    facets       the share of the facets that a claim is about
    order        the claims take the facets one after the other, whichever comes first, and come
    back to none
    as_planned   of the answers with a plan that names facets, those whose claims take them in
    its order
    repetition   the share of claims that say again what an earlier one has answer
    off_subject  the share of claims that are about none of the facets, true or not; of what
    could not be read nobody knows
    coherent     all facets, in order, nothing repeated or off the subject, not cut off: with a
    plan or without
    length       words of the answer

Which passage a sentence rests on it says itself ("… [2]") or else the point of its facet does.
As ALCE (arXiv 2305.14627, section 3) has it, each against the evidence of the verdicts, which
has to name passages as exactly as the closed world does:

    citation_recall      of the sentences with claims, those all of whose claims are in a passage
    that is cited for them
    citation_precision   of the passages cited for sentences, those in which one of the
    sentence's claims is
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from workbench.metrics.bootstrap import collect, intervals
from workbench.metrics.claims import Term, claim_terms
from workbench.metrics.confidence import ranked
from workbench.metrics.hacks import repetitions
from workbench.metrics.outcomes import RESAMPLES
from workbench.metrics.rows import Row
from workbench.text import answer_text, in_answer
from workbench.text.outline import Outline, Point, citations, read_outline
from workbench.types import BY_PASSAGES, SUPPORTED, Claim, Feedback, Question, Verdict

FACET_METRICS = (
    "form",
    "facets",
    "order",
    "as_planned",
    "repetition",
    "off_subject",
    "coherent",
    "length",
    "citation_precision",
    "citation_recall",
)
OF_FACTS = ("fact_per_query", "fact_per_sentence")


def facet_table(
    feedbacks: Sequence[Feedback], rows: Sequence[Row], *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """`{metric: {value, low, high, n}}` of `FACET_METRICS` and of facts per query and sentence;
    nothing where no question is one whose answers are held against its passages."""
    chosen = [(f, row) for f, row in zip(feedbacks, rows, strict=True) if of_facets(f)]
    if not chosen:
        return {}
    names = (*FACET_METRICS, *OF_FACTS)
    terms = []
    for feedback, row in chosen:
        facts = claim_terms(row)
        named = {name: facts[name] for name in OF_FACTS if name in facts}
        terms.append((row.question_id, {**facet_terms(feedback), **named}))
    cells = intervals(collect(terms, names), ranked(()), resamples, seed)
    return {name: cells[name] for name in names}


def of_facets(feedback: Feedback) -> bool:
    """Whether the question is one whose answers are held against its passages."""
    return feedback.response.question.meta.get("evidence") == BY_PASSAGES


def facet_terms(feedback: Feedback) -> dict[str, Term]:
    """What one response adds to each metric; nothing where it could not be read or judged."""
    response = feedback.response
    facts = {
        verdict.target: verdict
        for verdict in reversed(feedback.verdicts)
        if verdict.aspect == "fact"
    }
    judged = all((fact := facts.get(f"claim:{c.id}")) and not fact.error for c in feedback.claims)
    if feedback.error or not judged:
        return {}
    names = facet_names(response.question) or [""]
    claims = sorted(
        filter(in_answer(response), feedback.claims),
        key=lambda claim: (claim.sentence or 0, claim.id),
    )
    outline = read_outline(response.text)
    taken, plan = blocks(claims, names), blocks(outline.points, names) if outline else []
    whole, ordered = response.finish == "stop", sorted(taken) == sorted(names)  # each in one block
    covered = {name for claim in claims for name in about(claim.text, names)}
    texts = [{"section": claim.section, "text": claim.text} for claim in claims]
    repeated = repetitions(texts, [()] * len(texts))
    off_subject = sum(
        not about(claim.text, names) and not unread(facts[f"claim:{claim.id}"]) for claim in claims
    )
    coherent = whole and ordered and not repeated and not off_subject and covered == set(names)
    words = answer_text(response.text, response.prefill).split()
    return {
        "form": (float(whole and outline is not None), 1.0),
        "facets": (len(covered) / len(names), 1.0),
        "order": (float(ordered), 1.0),
        **({"as_planned": (float(taken == plan), 1.0)} if plan else {}),
        "repetition": (float(repeated), float(len(claims))),
        "off_subject": (float(off_subject), float(len(claims))),
        "coherent": (float(coherent), 1.0),
        "length": (float(len(words)), 1.0),
        **_citations(claims, outline, names, facts, feedback),
    }


def facet_names(question: Question) -> list[str]:
    """What a question's title names."""
    return [name.strip() for name in question.title.split(";") if name.strip()]


def about(text: str, names: Collection[str]) -> list[str]:
    """The facets that a text names."""
    return [name for name in names if name.casefold() in text.casefold()]


def blocks(parts: Sequence[Claim | Point], names: Collection[str]) -> list[str]:
    """The facets as claims, or the points of a plan, take them up, one after the other; what
    names none, or several, is passed over."""
    named = [found[0] for part in parts if len(found := about(part.text, names)) == 1]
    return [name for name, _ in groupby(named)]


def _citations(
    answered: Sequence[Claim],
    outline: Outline | None,
    names: Sequence[str],
    facts: Mapping[str, Verdict],
    feedback: Feedback,
) -> dict[str, Term]:
    """The terms of citation recall and precision."""
    passages = feedback.response.question.passages
    following = {this: after[0] for this, after in pairwise(sorted(feedback.sentences))}
    complete = right = cited = sentences = 0
    for number, together in groupby(answered, key=lambda claim: claim.sentence):
        if number is None:
            continue
        claims, span = list(together), feedback.sentences[number]
        # up to the next sentence, since a citation may stand behind the full stop
        text = feedback.response.text[span[0] : following.get(span)]
        facets = {name for claim in claims for name in about(claim.text, names)}
        numbers = cited_numbers(text, outline, facets)
        given = [passages[n - 1].id if 0 < n <= len(passages) else "" for n in numbers]
        supporting = [rests_on(facts[f"claim:{claim.id}"]) for claim in claims]
        sentences, cited = sentences + 1, cited + len(given)
        complete += all(own & set(given) for own in supporting)
        right += sum(any(passage in own for own in supporting) for passage in given)
    return {
        "citation_recall": (float(complete), float(sentences)),
        "citation_precision": (float(right), float(cited)),
    }


def cited_numbers(sentence: str, outline: Outline | None, facets: Collection[str]) -> list[int]:
    """The numbers of the passages that a sentence names or, where it names none, that the points
    about its facets do; each once, whether or not there is such a passage."""
    numbers = citations(sentence)
    if not numbers and outline:
        points = [point for point in outline.points if about(point.text, facets)]
        numbers = [point.source for point in points if point.source is not None]
    return list(dict.fromkeys(numbers))


def unread(fact: Verdict) -> bool:
    """Whether the judge could not tell what a claim says."""
    return any("unparsed" in one for one in fact.evidence)


def rests_on(fact: Verdict) -> set[str]:
    """The passages that state a claim; none for one that is not supported."""
    if fact.label not in SUPPORTED:
        return set()
    return {
        one["passage"]
        for one in fact.evidence
        if one.get("passage") and one.get("span") is not None
    }
