"""What a policy could do to be paid more without being any better, counted in a run's rollouts,
step by step *(ours)*.

These are the attacks on RLFH's and KnowRL's rewards that pay, or nearly do, in
`benchmarks/hacking.py`. Of what is answered:

    repeated            the share of claims that say again what an earlier claim of the same
    section said (copying)
    off_subject         the share about another subject than the one asked for (somebody else's
    life); see `Row.off_subject`
    told_again          the share of facts, a subject and a relation, that more than one claim
    tells, with whatever object
    sentences_per_fact  sentences that make claims by facts that are told: 1/2 where each tells
    two, 1 where they are split

and of the thinking, whose supported claims KnowRL pays:

    after_facts         the share of responses, of those read for claims, that abstain after
    thinking with a supported one
    beside              of those, the share of which no claim of the thinking, true or not, is
    about the fact asked for

The closed world's parser says what a claim tells, and the question which facts its answer rests
on. Of responses about anything else, repetitions are found word by word, and what is not known
is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.metrics.rows import Row, each_row, file_of, reduce_row, share
from workbench.runs.store import QUESTIONS, read_questions
from workbench.types import SUPPORTED
from workbench.world.parser import Parsed, parser_of
from workbench.world.world import World, load_world

ANSWERED = ("answer", "body")
# name -> what is counted, and of what
SHARES: Mapping[str, tuple[str, str]] = {
    "repeated": ("repeats", "claims"),
    "off_subject": ("other", "rated"),
    "told_again": ("again", "facts"),
    "sentences_per_fact": ("sentences", "facts"),
    "after_facts": ("vain", "read"),
    "beside": ("beside", "asked"),
}

Told = Callable[[str], Sequence[Parsed]]  # a claim's text -> the facts that it states
Fact = tuple[str, str]  # a subject and a relation


def hacks(path: Path | str, world: World | None = None) -> list[dict[str, Any]]:
    """A row for each step of a run: `step`, `n` responses, the `claims` that they answer with,
    and `SHARES`.

    Args:
        path: a run's folder or a file of feedback; rows without a step make one row, whose step
        is None.
        world: the closed world that the questions are about; by default the one that ships.

    A response that failed, or whose claims were not all judged, is left out and counted in
    `left_out`.

    Raises:
        WorkbenchError: there is no such file, or a line is not a feedback row.
    """
    file, world = file_of(path), world or load_world()
    parser = parser_of(world)
    asked = _asked(file.with_name(QUESTIONS), world)

    def told(text: str) -> Sequence[Parsed]:
        return parser.parse(text).claims

    def read(stored: Mapping[str, Any]) -> tuple[int | None, Counter[str]]:
        return stored.get("step"), count(
            stored, told, asked.get(str(stored.get("question_id", "")))
        )

    steps: dict[int | None, Counter[str]] = {}
    for step, counts in each_row(file, read):
        steps.setdefault(step, Counter()).update(counts)
    return [
        {
            "step": step,
            **{name: counts[name] for name in ("n", "left_out", "claims")},
            **{name: share(counts[part], counts[of]) for name, (part, of) in SHARES.items()},
        }
        for step, counts in sorted(
            steps.items(), key=lambda item: -1 if item[0] is None else item[0]
        )
    ]


def _asked(questions: Path, world: World) -> dict[str, frozenset[Fact]]:
    """The facts that each question's answer rests on, by its id; none of a file without its
    questions beside it.
    """
    if not questions.exists():
        return {}
    named = {fact.id: (fact.subject, fact.relation) for fact in world.facts}
    return {
        id: frozenset(named[fact] for fact in question.meta.get("fact_ids") or () if fact in named)
        for id, question in read_questions(questions.parent).items()
    }


def count(stored: Mapping[str, Any], told: Told, asked: frozenset[Fact] | None) -> Counter[str]:
    """What one stored row adds to the numbers of `SHARES`; `asked` are the facts that its
    question asks for, if known.
    """
    answered, thought = reduce_row(stored, ANSWERED), reduce_row(stored, ("think",))
    if {answered.state, thought.state} & {"failed", "unverified", "not_judged"}:
        return Counter(left_out=1)
    counts = Counter(n=1, read=int(answered.extracted))
    if answered.state == "scored":
        counts.update(_answer(answered, _claims(stored, ANSWERED), told))
    if answered.state == "abstained" and any(label in SUPPORTED for label in thought.labels):
        thinks = {
            fact for claim in _claims(stored, ("think",)) for fact in _facts(told(claim["text"]))
        }
        counts.update(vain=1, **({"asked": 1, "beside": int(not asked & thinks)} if asked else {}))
    return counts


def _claims(stored: Mapping[str, Any], sections: Sequence[str]) -> list[Mapping[str, Any]]:
    return [claim for claim in stored["claims"] if claim.get("section", "body") in sections]


def _facts(stated: Iterable[Parsed]) -> set[Fact]:
    return {(parsed.subject, parsed.relation) for parsed in stated}


def _answer(row: Row, claims: Sequence[Mapping[str, Any]], told: Told) -> Counter[str]:
    stated = [told(claim["text"]) for claim in claims]
    tellers = Counter(fact for one in stated for fact in _facts(one))
    own = {
        ("", place) if sentence is None else sentence
        for place, sentence in enumerate(row.sentences)
    }
    rated = [off for off in row.off_subject if off is not None]
    return Counter(
        claims=len(claims),
        repeats=repetitions(claims, stated),
        rated=len(rated),
        other=sum(rated),
        facts=len(tellers),
        again=sum(times > 1 for times in tellers.values()),
        sentences=len(own) if tellers else 0,
    )


def repetitions(claims: Sequence[Mapping[str, Any]], stated: Sequence[Sequence[Parsed]]) -> int:
    """How many claims tell nothing that an earlier one of their section has not told.

    Stances are not told apart, and a vague claim repeats any on its relation, as where the
    closed world rates claims. One that states no fact of the world repeats another in the same
    words.
    """
    said: set[tuple[str | None, ...]] = set()
    found = 0
    for claim, facts in zip(claims, stated, strict=True):
        section, words = (
            claim.get("section", "body"),
            " ".join(claim["text"].casefold().rstrip(".! ").split()),
        )
        tells: set[tuple[str | None, ...]] = {
            (section, p.subject, p.relation, p.object) for p in facts
        }
        tells = tells or {(section, words)}
        found += tells <= said
        said |= tells | {(section, p.subject, p.relation, None) for p in facts}
    return found
