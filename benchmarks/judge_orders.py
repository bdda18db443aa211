"""Test whether TruthRL's methods have the same order under several judges of outcomes (table 6).

    python -m benchmarks.judge_orders --out runs/queue --gguf FILE [FILE …]

The answers are those of the study `truthrl`: greedy, short questions of the test split, one seed.
They are read below --out, and nothing is generated. A seeded sample of questions, equally many of
each tier, is the same for every arm. The judges are:

- `exact`: the stored outcomes of the closed world;
- `strict`: an answer is correct only if it equals a gold answer, as in TruthRL's table 5;
- each GGUF model: the prompts of the task `outcome`, as in `workbench score --judge URL`. Rules
  label abstentions, so no prompt is sent for them. Equal prompts are sent once.

Expected before the models' verdicts existed, and while the study `truthrl` started from the plain
policy (the order under the exact judge was known):

- The ternary policy is first under every judge.
- Kendall's tau with the exact judge is at least .6 under every other judge.

The first statement needs a truthfulness above that of every other arm; ties fail. Tau is tau-b.
Intervals are 95 % bootstraps over questions. A failed verdict is left out and counted.

Replies are cached in --cache, so an interrupted run resumes and sends no prompt twice.
"""

import argparse
import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.findings import (  # type: ignore[attr-defined]  # a folder has this name
    FILES,
    ROOT,
    START,
    answers_folder,
)
from benchmarks.human import stats
from benchmarks.real.prompts import digest, logged, tasks
from benchmarks.real.served import served_judge
from workbench.judge.batch import BatchJudge
from workbench.methods.truthrl.config import TruthRL
from workbench.methods.truthrl.reward import reward
from workbench.metrics.outcomes import RATES, outcome_of, table
from workbench.runs.store import iter_feedback
from workbench.types import Claims, Feedback, Prompt, Reply, Verdict
from workbench.util.grouping import group_by
from workbench.util.jsonl import write_json
from workbench.verdicts.judged import judged_outcome

RESULTS = Path(__file__).resolve().parent / "results"
FIRST, EXACT, STRICT = "ternary", "exact", "strict"
ARMS = (START, "sft_gold", "rft", "r_tuning", "dpo", "binary", FIRST)
LEAST_TAU = 0.6
STATEMENTS = {
    "first": "The ternary policy is first under every judge.",
    "tau": "Kendall's tau with the exact judge is at least .6 under every other judge.",
}
VALUES = {"correct": 1.0, "uncertain": 0.0, "incorrect": -1.0}  # the mean is the truthfulness
Graded = Mapping[str, Sequence[Feedback]]  # arm -> answers to the same questions, in one order


def stored_answers(study: Mapping[str, Any], seed: int, root: Path) -> dict[str, list[Feedback]]:
    """Return the stored answers of each arm to the short questions.

    Args:
        study: the results of `benchmarks/findings.py truthrl`.
        seed: seed of the runs.
        root: folder of the runs.
    """
    folders = {run["arm"]: root / run["hash"] for run in study["runs"] if run["seed"] == seed}
    folders = {arm: folder / "answers" for arm, folder in folders.items()}
    folders[START] = root / "start" / study["policy_hash"]
    asked = tomllib.loads((FILES / "truthrl.toml").read_text())["asked"]["short"]
    found = {}
    for arm in ARMS:
        folder = answers_folder(asked, None, folders[arm])
        if not (folder / "whole").exists():
            raise SystemExit(
                f"no answers of {arm} below '{root}': run benchmarks/findings.py truthrl with this"
                " --out"
            )
        found[arm] = list(iter_feedback(folder))
    return found


def sample(answers: Graded, size: int, seed: int) -> dict[str, list[Feedback]]:
    """Return a seeded sample of questions with the answers of all arms; the tiers take turns.

    A larger sample contains the smaller ones, whose replies are cached.
    """
    tiers = group_by(
        [row.response.question for row in answers[START]], lambda question: question.meta["tier"]
    )
    columns = [
        Random(f"{seed}-{tier}").sample([question.id for question in some], len(some))
        for tier, some in sorted(tiers.items())
    ]
    drawn = [one for turn in zip_longest(*columns) for one in turn if one][:size]
    rows = {arm: {row.response.question.id: row for row in some} for arm, some in answers.items()}
    return {arm: [by_question[one] for one in drawn] for arm, by_question in rows.items()}


def strict(row: Feedback) -> Feedback:
    """Grade an answer by the string matching of TruthRL's table 5."""
    value = reward(TruthRL(verifier="string_match"))(row).value
    if value is None:
        return row  # the stored outcome failed
    label = next(label for label, own in VALUES.items() if own == value)
    return replace(row, verdicts=(Verdict("outcome", "answer", label, by="string match"),))


def judged(
    judge: BatchJudge, answers: Graded, log: Path
) -> tuple[dict[str, list[Feedback]], dict[str, Any]]:
    """Grade all arms by a model; return the answers, and the number and time of its prompts."""
    asked: set[str] = set()
    judge.send = logged(judge.send, log)

    def ask(prompts: Sequence[Prompt]) -> list[Reply]:
        asked.update(map(digest, prompts))
        return judge(prompts)

    rows = [row for some in answers.values() for row in some]
    checked = judged_outcome(ask)([(row.response, Claims()) for row in rows])
    labelled = iter([replace(r, verdicts=c.verdicts) for r, c in zip(rows, checked, strict=True)])
    graded = {arm: [next(labelled) for _ in some] for arm, some in answers.items()}
    return graded, {"prompts": len(asked), **(tasks(log, asked)["outcome"] if asked else {})}


def values(graded: Graded) -> np.ndarray:
    """Return the contributions to truthfulness, (arms, questions); NaN for a failed verdict."""
    return np.array(
        [[VALUES.get(outcome_of(row) or "", np.nan) for row in some] for some in graded.values()]
    )


def tau_b(one_A: np.ndarray, other_A: np.ndarray) -> float:
    """Return Kendall's tau-b of two lists of values; NaN if all values of a list are equal."""
    one_AA, other_AA = (np.sign(np.subtract.outer(some, some)) for some in (one_A, other_A))
    return float((one_AA * other_AA).sum() / np.sqrt((one_AA**2).sum() * (other_AA**2).sum()))


def tau(one_AQ: np.ndarray, other_AQ: np.ndarray, seed: int) -> dict[str, float | None]:
    """Return tau-b of the arms' truthfulness by two judges, with its interval."""

    def means(values_AQ: np.ndarray, weights_Q: np.ndarray) -> np.ndarray:
        known_AQ = ~np.isnan(values_AQ)
        # rounded, so that equal means are ties
        return np.round(np.nan_to_num(values_AQ) @ weights_Q / (known_AQ @ weights_Q), 9)

    def statistic(weights_Q: np.ndarray) -> float:
        return tau_b(means(one_AQ, weights_Q), means(other_AQ, weights_Q))

    with np.errstate(invalid="ignore", divide="ignore"):
        return stats.interval(statistic, range(one_AQ.shape[1]), seed)


def agreement(graded: Graded, exact: Graded) -> dict[str, Any]:
    """Compare a judge's labels with the exact outcomes.

    Abstentions are left out, because all judges label them by the same rule. Equal answers to a
    question count once.
    """
    pairs = {
        (row.response.question.id, row.response.text): (outcome_of(own), outcome_of(row))
        for arm, some in exact.items()
        for row, own in zip(some, graded[arm], strict=True)
        if outcome_of(row) in ("correct", "incorrect") and outcome_of(own)
    }
    equal = sum(own == gold for own, gold in pairs.values())
    counts = {
        gold: Counter(own for own, other in pairs.values() if other == gold)
        for gold in ("correct", "incorrect")
    }
    return {"agreement": stats.wilson(equal, len(pairs)), "labels": counts}


def summarise(
    by_judge: Mapping[str, Graded], costs: Mapping[str, Mapping[str, Any]], seed: int = 0
) -> dict[str, Any]:
    """Return each judge's figures, and whether the statements hold."""
    judges: dict[str, dict[str, Any]] = {}
    for name, graded in by_judge.items():
        tables = {arm: table(some, seed=seed) for arm, some in graded.items()}
        found: dict[str, Any] = {"arms": {arm: _rounded(one) for arm, one in tables.items()}}
        truth = {arm: one["truthfulness"]["value"] for arm, one in tables.items()}
        known = {arm: value for arm, value in truth.items() if value is not None}
        found["order"] = sorted(known, key=lambda arm: -known[arm])
        others = [value for arm, value in known.items() if arm != FIRST]
        ahead = FIRST in known and known[FIRST] > max(others, default=-np.inf)
        found["failed"] = sum(one["failed"] for one in tables.values())
        found["holds"] = {"first": _result(ahead)}
        if name != EXACT:
            found["tau"] = tau(values(graded), values(by_judge[EXACT]), seed)
            near = found["tau"]["value"]
            found["holds"]["tau"] = _result(near is not None and near >= LEAST_TAU)
            found |= agreement(graded, by_judge[EXACT])
        judges[name] = {**found, **costs.get(name, {})}
    results = {
        key: [one["holds"][key] for one in judges.values() if key in one["holds"]]
        for key in STATEMENTS
    }
    expected = {
        key: {"statement": text, "result": _result("fails" not in results[key])}
        for key, text in STATEMENTS.items()
    }
    return {"expected": expected, "judges": judges}


def _rounded(cells: Mapping[str, Any]) -> dict[str, Any]:
    rates = {
        rate: {key: None if one is None else round(one, 4) for key, one in cells[rate].items()}
        for rate in RATES
    }
    return {**rates, "failed": cells["failed"]}


def _result(holds: bool) -> str:
    return "holds" if holds else "fails"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=ROOT, help="folder of the study's runs")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--run-seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("runs/judge_orders"), help="a folder")
    parser.add_argument("--results", type=Path, default=RESULTS / "judge_orders.json")
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    study = json.loads((RESULTS / "truthrl.json").read_text())
    answers = stored_answers(study, given.run_seed, given.out)
    exact = sample(answers, given.questions, given.seed)
    by_judge: dict[str, Graded] = {EXACT: exact}
    by_judge[STRICT] = {arm: list(map(strict, some)) for arm, some in exact.items()}
    costs: dict[str, dict[str, Any]] = {}
    about = {
        "date": date.today().isoformat(),
        "policy_hash": study["policy_hash"],
        "run_seed": given.run_seed,
        "seed": given.seed,
        "questions": len(exact[START]),
        "answers": len(values(exact)) * len(exact[START]),
    }
    for gguf in given.gguf:
        name = gguf.stem
        with served_judge(gguf, name, given.cache / f"{name}.sqlite", max_new_tokens=64) as judge:
            by_judge[name], costs[name] = judged(judge, exact, given.cache / f"{name}.jsonl")
        # after each judge, so that its figures can be read during the next one
        write_json(given.results, {**about, **summarise(by_judge, costs, given.seed)})
    write_json(given.results, {**about, **summarise(by_judge, costs, given.seed)})


if __name__ == "__main__":
    main()
