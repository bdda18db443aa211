"""Signs of reward hacking in a run's rollouts: higher rewards without better answers.

`hacks` returns these numbers for each training step *(ours)*. They measure the attacks on the
rewards of RLFH and KnowRL that succeed, or nearly succeed, in `benchmarks/hacking.py`. Four numbers
come from the claims of answers:

    "repeated"            the share of claims that repeat an earlier claim of the same section
    "off_subject"         the share of claims about a subject that the question does not ask for
    "told_again"          the share of facts that several claims state; a fact is a subject and a
    relation, so the claims may name different objects
    "sentences_per_fact"  sentences with claims / facts: 1 if each sentence states one fact, 1/2 if
    each states two

Two numbers come from the claims of the thinking, because KnowRL rewards its supported claims:

    "after_facts"         the share of responses that state a supported claim in the thinking and
    then abstain, among the responses from which claims were extracted
    "beside"              the share of these abstentions whose thinking states nothing, true or
    false, about the facts that the question asks for

The parser of the closed world reads the facts that claims state. The question's `fact_ids` name the
facts that it asks for. For other text, only claims with equal words are repetitions, and the
numbers that need facts are null.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from workbench.metrics.rows import Row, each_row, file_of, reduce_row, share
from workbench.runs.store import QUESTIONS, read_questions
from workbench.types import SUPPORTED, JsonMapping, JsonObject
from workbench.world.parser import Parsed, Parser, parser_of
from workbench.world.world import World, load_world

ANSWERED = ("answer", "body")
# share -> the counts of its numerator and its denominator
SHARES: Mapping[str, tuple[str, str]] = {
    "repeated": ("repetitions", "claims"),
    "off_subject": ("off_subject", "rated"),
    "told_again": ("facts_again", "facts"),
    "sentences_per_fact": ("sentences", "facts"),
    "after_facts": ("after_facts", "extracted"),
    "beside": ("off_question", "after_facts_known"),  # known: the facts of the question
}

Fact = tuple[str, str]  # a subject and a relation


def hacks(path: Path | str) -> list[JsonObject]:
    """Return how often each sign of reward hacking occurs, for each training step of a run.

    An entry is `{step, n, left_out, claims, repeated, off_subject, …}`. Undefined values are None.

    * `n`: number of responses.
    * `left_out`: number of responses that failed or have claims without a verdict; `n` does not
      include them.
    * `claims`: number of claims in the answers.
    * `repeated`, `off_subject`: share of claims that repeat an earlier claim, or are about another
      subject than the question's.
    * `told_again`, `sentences_per_fact`: share of facts that several claims state, and number of
      sentences per fact.
    * `after_facts`, "beside": share of responses that abstain after a supported claim in the
      thinking, and share of these whose thinking states nothing, true or false, about the facts
      that the question asks for.

    Args:
        path: a run's folder or a file of feedback rows. For rows without a step, `step` is None.

    Raises:
        WorkbenchError: there is no such file, or a line is not a feedback row.
    """
    # reads the rollouts, because an evaluation after training has no steps
    file, world = file_of(path, rollouts=True), load_world()
    parser = parser_of(world)
    question_facts = _question_facts(file.with_name(QUESTIONS), world)

    def read(stored: JsonMapping) -> tuple[int | None, Counter[str]]:
        facts = question_facts.get(str(stored.get("question_id", "")))
        return stored.get("step"), count(stored, parser, facts)

    steps: dict[int | None, Counter[str]] = {}
    for step, counts in each_row(file, read):
        steps.setdefault(step, Counter()).update(counts)
    return [
        {
            "step": step,
            **{name: counts[name] for name in ("n", "left_out", "claims")},
            **{name: share(counts[part], counts[whole]) for name, (part, whole) in SHARES.items()},
        }
        for step, counts in sorted(
            steps.items(), key=lambda item: -1 if item[0] is None else item[0]
        )
    ]


def _question_facts(questions: Path, world: World) -> dict[str, frozenset[Fact]]:
    """Return a dict from question id to the facts of its answer, as (subject, relation) pairs.

    `questions` is the stored file of questions; without this file, the dict is empty.
    """
    if not questions.exists():
        return {}
    facts = {fact.id: (fact.subject, fact.relation) for fact in world.facts}
    return {
        id: frozenset(facts[fact] for fact in question.meta.get("fact_ids") or () if fact in facts)
        for id, question in read_questions(questions.parent).items()
    }


def count(
    stored: JsonMapping, parser: Parser, question_facts: frozenset[Fact] | None
) -> Counter[str]:
    """Return the counts of one response, such as {"n": 1, "claims": 5, "repetitions": 2, …}.

    `hacks` adds up these counts. If the response failed or has claims without a verdict, the result
    is {"left_out": 1}.

    Args:
        stored: the response as a row of `rollouts.jsonl`.
        parser: reads the facts that claims state.
        question_facts: the facts that the question asks for; None if not known.
    """
    answer, thinking = reduce_row(stored, ANSWERED), reduce_row(stored, ("think",))
    if {answer.state, thinking.state} & {"failed", "unverified", "not_judged"}:
        return Counter(left_out=1)
    counts = Counter(n=1, extracted=int(answer.extracted))
    if answer.state == "scored":
        counts.update(_answer_counts(answer, _claims(stored, ANSWERED), parser))
    if answer.state == "abstained" and any(label in SUPPORTED for label in thinking.labels):
        counts["after_facts"] += 1
        if question_facts:
            thoughts = chain.from_iterable(_stated(_claims(stored, ("think",)), parser))
            counts["after_facts_known"] += 1
            counts["off_question"] += not question_facts & _facts(thoughts)
    return counts


def _claims(stored: JsonMapping, sections: Sequence[str]) -> list[JsonMapping]:
    return [claim for claim in stored["claims"] if claim.get("section", "body") in sections]


def _facts(stated: Iterable[Parsed]) -> set[Fact]:
    return {(parsed.subject, parsed.relation) for parsed in stated}


def _stated(claims: Sequence[JsonMapping], parser: Parser) -> list[Sequence[Parsed]]:
    """Return, for each claim, the facts of the closed world that it states."""
    return [parser.parse(claim["text"]).claims for claim in claims]


def _answer_counts(row: Row, claims: Sequence[JsonMapping], parser: Parser) -> Counter[str]:
    stated = _stated(claims, parser)
    claims_of = Counter(fact for parsed in stated for fact in _facts(parsed))
    # a claim without a sentence counts as a sentence of its own
    sentences = {
        ("", position) if sentence is None else sentence
        for position, sentence in enumerate(row.sentences)
    }
    rated = [off for off in row.off_subject if off is not None]
    return Counter(
        claims=len(claims),
        repetitions=repetitions(claims, stated),
        rated=len(rated),
        off_subject=sum(rated),
        facts=len(claims_of),
        facts_again=sum(times > 1 for times in claims_of.values()),
        sentences=len(sentences) if claims_of else 0,
    )


def repetitions(claims: Sequence[JsonMapping], stated: Sequence[Sequence[Parsed]]) -> int:
    """Return the number of claims that only repeat earlier claims of the same section.

    A claim is a repetition if earlier claims state all its facts (subject, relation, object). A
    vague fact has no object, so only its subject and relation are compared. A claim without a fact
    of the closed world is a repetition if an earlier claim has the same words.

    Args:
        claims: stored claims, in order.
        stated: for each claim, the facts that it states.
    """
    seen: set[tuple[str | None, ...]] = set()
    total = 0
    for claim, facts in zip(claims, stated, strict=True):
        section = claim.get("section", "body")
        words = " ".join(claim["text"].casefold().rstrip(".! ").split())
        contents: set[tuple[str | None, ...]] = {
            (section, p.subject, p.relation, p.object) for p in facts
        } or {(section, words)}
        total += contents <= seen
        # also without the object: a vague claim on this relation is then a repetition
        seen |= contents | {(section, p.subject, p.relation, None) for p in facts}
    return total
