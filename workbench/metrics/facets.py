"""Metrics of form, coverage, order and citations in answers to questions about several facets.

A facet is an entity that the answer must cover. The title of the question lists the facets, such as
"Ana Bo; Toma Fel". A claim is about the facets that its text names. Only the answer counts, not the
thinking. FoRAG's judge (arXiv 2406.13779) rates coherence and helpfulness as a whole; these rules
measure parts of both *(ours)*.

    form         whether the answer is not cut off and `read_outline` can parse it
    facets       the share of facets that at least one claim is about
    order        whether each facet has exactly one block of claims (see `blocks`)
    as_planned   whether the claims follow the order of the plan; only where a plan names facets
    repetition   the share of claims that repeat an earlier claim of the answer
    off_subject  the share of claims that are about no facet; a claim that the judge could not read
    does not count as off-subject
    coherent     whether each facet has exactly one block, no claim is repeated or off-subject, and
    the answer is not cut off
    length       the number of words of the answer

A sentence cites passages by number ("… [2]"). A sentence without a number cites the passages that
the plan names for its facets. A citation is right if the passage supports a claim of the sentence,
as in ALCE (arXiv 2305.14627, section 3). The evidence of the claim's verdict names the supporting
passages, as in the closed world.

    citation_recall     the share of sentences with claims in which each claim is supported by a
    passage that the sentence cites
    citation_precision  the share of citations that are right
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, pairwise

from workbench.metrics.bootstrap import collect, intervals
from workbench.metrics.claims import Term, claim_terms
from workbench.metrics.hacks import repetitions
from workbench.metrics.rows import Row
from workbench.text import answer_text, in_answer
from workbench.text.outline import Outline, Point, citations, read_outline
from workbench.types import BY_PASSAGES, SUPPORTED, UNPARSED, Claim, Feedback, JsonObject, Verdict
from workbench.util.failures import unjudged

FACET_METRICS = tuple(
    "form facets order as_planned repetition off_subject coherent length citation_precision"
    " citation_recall".split()
)
FACT_METRICS = ("fact_per_query", "fact_per_sentence")


def facet_table(
    feedbacks: Sequence[Feedback], rows: Sequence[Row], *, seed: int, resamples: int
) -> JsonObject:
    """Return the metrics of answers about several facets: `{metric: {value, low, high, n}}`.

    A facet is an entity that the answer must cover. The metrics are those of this module, and the
    shares of responses and of sentences whose claims are all supported ("fact_per_query",
    "fact_per_sentence"). `low` and `high` are the 95 % bootstrap interval over n questions. Only
    answers for which `of_facets` is True count. Return {} if there are no such answers.

    Args:
        rows: the `Row` of each response in `feedbacks`, in the same order.
    """
    names = (*FACET_METRICS, *FACT_METRICS)
    terms = []
    for feedback, row in zip(feedbacks, rows, strict=True):
        if of_facets(feedback):
            facts = claim_terms(row)
            factual = {name: facts[name] for name in FACT_METRICS if name in facts}
            terms.append((row.question_id, {**facet_terms(feedback), **factual}))
    if not terms:
        return {}
    cells = intervals(collect(terms, names), resamples, seed)
    return {name: cells[name] for name in names}


def of_facets(feedback: Feedback) -> bool:
    """Return whether the metrics of this module apply to a response.

    They apply if its claims are verified against the passages of the question, that is,
    `question.meta["evidence"]` is "passages".
    """
    return feedback.response.question.meta.get("evidence") == BY_PASSAGES


def facet_terms(feedback: Feedback) -> dict[str, Term]:
    """Return one response's terms of this module's metrics: `{metric: (numerator, denominator)}`.

    The value of a metric is the sum of the numerators divided by the sum of the denominators. The
    dict is empty if the extraction failed, or if a claim has no verdict or a failed verdict.
    """
    response = feedback.response
    # reversed, so that the first verdict on a claim is used
    facts = {one.target: one for one in reversed(feedback.verdicts) if one.aspect == "fact"}
    judged = all((fact := facts.get(f"claim:{c.id}")) and not fact.error for c in feedback.claims)
    if feedback.error or not judged:
        return {}
    names = response.question.titles or ("",)
    claims = sorted(
        filter(in_answer(response), feedback.claims),
        key=lambda claim: (claim.sentence or 0, claim.id),
    )
    outline = read_outline(response.text)
    order, plan = blocks(claims, names), blocks(outline.points, names) if outline else []
    whole, ordered = response.finish == "stop", sorted(order) == sorted(names)  # one block each
    covered = {name for claim in claims for name in about(claim.text, names)}
    # in the form of stored claims, which `repetitions` reads
    texts = [{"section": claim.section, "text": claim.text} for claim in claims]
    repeated = repetitions(texts, [()] * len(texts))
    off_subject = sum(
        not about(claim.text, names)
        # a claim that the judge could not read is not known to be off the subject
        and UNPARSED not in unjudged(vars(facts[f"claim:{claim.id}"]))
        for claim in claims
    )
    coherent = whole and ordered and not repeated and not off_subject and covered == set(names)
    values: dict[str, float] = {
        "form": whole and outline is not None,
        "facets": len(covered) / len(names),
        "order": ordered,
        **({"as_planned": order == plan} if plan else {}),
        "coherent": coherent,
        "length": len(answer_text(response.text, response.prefill).split()),
    }
    return {
        **{name: (float(value), 1.0) for name, value in values.items()},
        "repetition": (float(repeated), float(len(claims))),
        "off_subject": (float(off_subject), float(len(claims))),
        **_citations(claims, outline, names, facts, feedback),
    }


def about(text: str, names: Collection[str]) -> list[str]:
    """Return the facets from `names` that occur in a text; case is ignored."""
    return [name for name in names if name.casefold() in text.casefold()]


def blocks(parts: Sequence[Claim | Point], names: Collection[str]) -> list[str]:
    """Return the facet of each block of claims, in order.

    A block consists of consecutive claims about the same facet: claims about A, A, B, A give [A, B,
    A]. A claim that names no facet, or more than one, is skipped.

    Args:
        parts: claims of an answer, or points of its outline (plan), which are treated like claims.
        names: the facets: names of the entities that the answer must cover.
    """
    single = [facets[0] for part in parts if len(facets := about(part.text, names)) == 1]
    return [name for name, _ in groupby(single)]


def _citations(
    answer_claims: Sequence[Claim],
    outline: Outline | None,
    names: Sequence[str],
    facts: Mapping[str, Verdict],
    feedback: Feedback,
) -> dict[str, Term]:
    """Return the numerators and denominators of one answer's citation recall and precision."""
    passages = feedback.response.question.passages
    next_start = {this: after[0] for this, after in pairwise(sorted(feedback.sentences))}
    complete = right = cited = sentences = 0
    for number, group in groupby(answer_claims, key=lambda claim: claim.sentence):
        if number is None:
            continue
        claims, span = list(group), feedback.sentences[number]
        # up to the next sentence, since a citation may follow the full stop
        text = feedback.response.text[span[0] : next_start.get(span)]
        facets = {name for claim in claims for name in about(claim.text, names)}
        numbers = cited_numbers(text, outline, facets)
        # "" for a number without a passage: it counts as a wrong citation
        ids = [passages[n - 1].id if 0 < n <= len(passages) else "" for n in numbers]
        supporting = [supporting_passages(facts[f"claim:{claim.id}"]) for claim in claims]
        sentences, cited = sentences + 1, cited + len(ids)
        complete += all(own & set(ids) for own in supporting)
        right += sum(any(id in own for own in supporting) for id in ids)
    return {
        "citation_recall": (float(complete), float(sentences)),
        "citation_precision": (float(right), float(cited)),
    }


def cited_numbers(sentence: str, outline: Outline | None, facets: Collection[str]) -> list[int]:
    """Return the passage numbers that a sentence cites, each once: "… [2]" → [2].

    If a sentence has no numbers, the outline gives them: each point of an outline
    names facets and passages, and the sentence cites the passages of the points that name one of
    its facets. A number is returned even if there is no such passage.

    Args:
        outline: the parsed answer with its outline; None without an outline.
        facets: the facets (entities) that the sentence is about.
    """
    numbers = citations(sentence)
    if not numbers and outline:
        points = [point for point in outline.points if about(point.text, facets)]
        numbers = [point.source for point in points if point.source is not None]
    return list(dict.fromkeys(numbers))


def supporting_passages(fact: Verdict) -> set[str]:
    """Return the ids of the passages that support a claim, from the evidence of its verdict.

    Return an empty set if the verdict does not say that the claim is supported.
    """
    if fact.label not in SUPPORTED:
        return set()
    return {
        item["passage"]
        for item in fact.evidence
        if item.get("passage") and item.get("span") is not None
    }
