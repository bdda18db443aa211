"""Measure KLCF's win rate (arXiv 2509.23765, eq. 17, 18) with a served GGUF model as the judge.

    python -m benchmarks.real.win_rate --gguf FILE [--controls 40]
    python -m benchmarks.real.win_rate --gguf FILE --answers TRAINED INITIAL [--pairs 60]

TRAINED and INITIAL are files of answers to the same biography questions of the tiny bench, such as
those that `benchmarks/findings.py` stores below --out. As in the paper, the judge reads a question
and two answers, without evidence, once in each order. The results also have the exact win rate, by
each answer's F1@6 on the world's verdicts.

Without --answers, two controls measure the judge. They use the world's facts about people of the
test split. The better answer is a true biography. The other is the same with half of its facts
exchanged for another person's (*altered*), or its first half (*half*). A judge of facts detects
*altered*, a judge of completeness *half*. The paper's judge ranks by both.

Replies are cached in --cache, so an interrupted run resumes and sends no prompt twice.
"""

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.human import stats
from benchmarks.real.served import served_judge
from benchmarks.reproduce import answered
from workbench.metrics.pairs import Duel, Pair, judge_pairs, pair_files, win_rate
from workbench.runs.store import iter_feedback
from workbench.text.sentences import sentences
from workbench.types import Judge, Question
from workbench.util.jsonl import write_json
from workbench.world.facts import Fact
from workbench.world.render import biography
from workbench.world.world import World, load_world

RESULTS = Path(__file__).resolve().parents[1] / "results" / "win_rate.json"
F1 = "f1@6"


def altered(fact: Fact, world: World, rng: random.Random) -> Fact:
    """Return the fact with another person's value."""
    others = [o for o in world.facts if o.relation == fact.relation and o.object != fact.object]
    other = rng.choice(others)
    return replace(fact, object=other.object, forms=other.forms)


def controls(question: Question, world: World) -> dict[str, tuple[str, str]]:
    """Return the pairs of answers of each control, the better one first.

    The altered biography has the wording of the true one.
    """
    ids = set(question.meta["fact_ids"])
    facts = [fact for fact in world.facts if fact.id in ids]
    rng = random.Random(f"altered-{question.id}")
    changed = {fact.id for fact in rng.sample(facts, (len(facts) + 1) // 2)}
    other = [altered(fact, world, rng) if fact.id in changed else fact for fact in facts]
    pronoun = world.entities[facts[0].subject].pronoun
    true, false = (
        biography(some, "en", random.Random(question.id), pronoun) for some in (facts, other)
    )
    spans = sentences(true)
    half = true[: spans[(len(spans) + 1) // 2 - 1][1]]
    return {"altered": (true, false), "half": (true, half)}


def exact(trained: Path, initial: Path, pairs: Sequence[Pair]) -> list[Duel]:
    """Return the pairs as an exact judge of F1@6 decides them."""
    scores = [
        {f.response.question.id: _f1(answered(f, ()).terms()) for f in iter_feedback(folder)}
        for folder in (trained, initial)
    ]
    duels = []
    for pair in pairs:
        first, second = (some[pair.key[0]] for some in scores)
        value = 0.5 if first == second else float(first > second)
        duels.append(Duel(pair.key[0], value, value, identical=pair.identical))
    return duels


def _f1(terms: Mapping[str, tuple[float, float]]) -> float:
    total, weight = terms[F1]
    return total / weight


def judged(judge: Judge, pairs: Sequence[Pair], seed: int) -> tuple[list[Duel], dict[str, Any]]:
    """Return the pairs as the judge's labels decide them, and the win rate by its labels and by p.

    `p` is the probability of the label *first*. By p, the first file's answer wins if p is higher
    where it is shown first than where the other one is. A small judge may call all pairs ties, but
    the paper's judge has to rank the answers.
    """
    duels, cost = judge_pairs(judge, pairs)
    found = {**win_rate(duels, len(pairs) - len(duels), seed), "judge": cost}
    forced = []
    for pair in pairs:
        if pair.identical:
            ps = [0.5, 0.5]
        else:
            ps = [reply.p for reply in judge(pair.prompts) if reply.p is not None]
        if len(ps) == 2:
            value = 0.5 if ps[0] == ps[1] else float(ps[0] > ps[1])
            forced.append(Duel(pair.key[0], value, value, identical=pair.identical))
    return duels, {**found, "by_p": win_rate(forced, seed=seed)["win_rate"]}


def measure_controls(judge: Judge, size: int, seed: int) -> dict[str, Any]:
    """Return the judge's win rate of the better answer in each control."""
    world = load_world()
    questions = random.Random(seed).sample(world.questions("test", ["biography"]), size)
    made: dict[str, list[Pair]] = {}
    for one in questions:
        for name, texts in controls(one, world).items():
            made.setdefault(name, []).append(Pair((one.id, None, 0), one.text, texts))
    return {name: judged(judge, pairs, seed)[1] for name, pairs in made.items()}


def measure(judge: Judge, trained: Path, initial: Path, size: int, seed: int) -> dict[str, Any]:
    """Return the trained policy's win rate on a seeded sample of the pairs, and the exact one.

    The result also has how often both prefer the same answer, without ties.
    """
    every = pair_files(trained, initial).pairs
    # a larger sample begins with the smaller one, whose replies are cached
    drawn = random.Random(seed).sample(every, len(every))[:size]
    duels, found = judged(judge, drawn, seed)
    by_f1 = exact(trained, initial, drawn)
    scores = {duel.question_id: duel.score for duel in by_f1}
    decided = [d for d in duels if d.score != 0.5 and scores[d.question_id] != 0.5]
    same = sum(d.score == scores[d.question_id] for d in decided)
    found["exact"] = win_rate(by_f1, seed=seed)["win_rate"]
    return {"trained": {**found, "agreement": stats.wilson(same, len(decided))}}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a win rate with a GGUF model as judge.")
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--name", help="name in the results; default: the file's")
    parser.add_argument("--answers", type=Path, nargs=2, metavar=("TRAINED", "INITIAL"))
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--controls", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path("runs/win_rate.sqlite"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    name = given.name or given.gguf.stem
    limits = {"max_new_tokens": 64, "retries": 0, "reasks": 0}
    with served_judge(given.gguf, name, given.cache, **limits) as judge:
        found = (
            measure(judge, given.answers[0], given.answers[1], given.pairs, given.seed)
            if given.answers
            else measure_controls(judge, given.controls, given.seed)
        )
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    write_json(given.results, results | {name: results.get(name, {}) | found})


if __name__ == "__main__":
    main()
