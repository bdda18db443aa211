"""Test a paper's findings: train the runs, evaluate all policies, check the statements.

    python benchmarks/findings.py rlfh --results benchmarks/results/rlfh.json
    python benchmarks/findings.py rlfh_real --policy Qwen/Qwen2.5-0.5B-Instruct

`benchmarks/findings/METHOD_runs.toml` lists the runs. `METHOD.toml` has:

- the question sets: `sections` whose claims count, `arms` to evaluate in addition to the initial
  policy (default: all), `tiers` of the questions, `tokens` (maximum length of an answer), `sampled`
  (a seed: sample at temperature 1, instead of the greedy answer), `samples` (with `sampled`: number
  of answers to each question, default 1), `retrieved` (number of passages in the prompt);
- the stages of runs whose policies are also evaluated;
- baselines at inference time, of the initial policy or of the arm `of`. Each has one of `majority`
  (a number of samples: the majority answer, or an abstention if there is no majority), `best_of` (a
  number of samples: the one with the most claims that the local verifier supports, by share) and
  `cove = true` (the answer, revised by chain of verification). `draws` (default 1), for samples of
  the initial policy: the number of independent draws; each counts as a seed;
- the findings, stated before the runs;
- differences to the initial policy that are measured for each arm, for a table.

Runs and answers are stored below `--out` and not repeated. A killed command resumes. The results
have the findings, each policy's mean metrics (`seed_means`: of each seed), metrics of training
rollouts by step (`curves`, with reward hacks), and the held-out quality of a run's reward models
(`held_out`).

`--jobs` is the number of runs to train, and of policies to ask, at the same time; in an evaluation
they share `--threads`. `--policy` replaces the initial policy of the runs, such as the shipped one.
`--seeds` and `--arms` select runs. `--split validation` uses other people, for choosing settings.
`--figures FOLDER` draws RLFH's figures from the first question set: 4 to 8 compare the initial
policy and the first arm, 9 has a point per arm. `--half` halves the steps of each last stage that
counts steps, and the number of questions from which a baseline draws its training data. Cold
starts, reward models and SFT, which counts epochs, keep their length.
`--quick` tests everything with runs of two steps.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from workbench.experiments.evaluate import MEASURED
from workbench.experiments.inference import best_of_n, cove, self_consistency, verifier_grade
from workbench.experiments.queue import ROOT, queue_runs, train_queue
from workbench.experiments.run import Entry, Run, plan_run
from workbench.methods import trained
from workbench.methods.bench import Bench
from workbench.metrics.plots import rlfh, write_pages
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.policies.generate import generate
from workbench.runs.folder import policy_hash, versions
from workbench.runs.store import Store, iter_feedback
from workbench.types import WorkbenchError
from workbench.util.config import settings as settings_of
from workbench.util.jsonl import write_json
from workbench.util.threads import use_threads

ROOT_FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT_FOLDER))

from benchmarks.findings_training import curves, took  # noqa: E402
from benchmarks.reproduce import (  # noqa: E402
    METRICS,
    RESULTS,
    START,
    Answered,
    Contrast,
    Finding,
    answered,
    check,
    compared,
    effect,
    load_findings,
    measured,
)

FILES = ROOT_FOLDER / "benchmarks" / "findings"
WAYS = ("majority", "best_of", "cove")  # baselines at inference time
DRAWN_QUESTIONS = "drawn.questions"  # a baseline's setting: how many it draws its data from


def halved(entry: Entry, steps: int | None) -> Entry:
    """Return the entry of a run with half as many steps and questions to draw from, rounded up.

    Args:
        steps: number of steps of the run; None, as for a run that counts epochs, is not changed.
    """
    chosen = trained(entry.method)
    config = chosen.configure(entry.bench, entry.settings)
    settings = chosen.with_steps(config, -(-steps // 2)) if steps else []
    for name, value, _ in settings_of(config):
        if name == DRAWN_QUESTIONS and value:
            settings.append(f"{entry.method}.{name}={-(-value // 2)}")
    return replace(entry, steps=None, settings=(*entry.settings, *settings))


def answers_folder(asked: Mapping[str, Any], system: str | None, folder: Path) -> Path:
    """Return the folder, below `folder`, for the answers to a question set with a system prompt."""
    digest = hashlib.sha256(json.dumps([asked, system], sort_keys=True).encode()).hexdigest()[:12]
    return folder / digest


def graded(
    place: Bench, policy: str, asked: Mapping[str, Any], system: str | None, folder: Path
) -> Path:
    """Return the folder, below `folder`, of the policy's graded answers to a question set.

    The answers are generated if they do not exist.
    """
    folder = answers_folder(asked, system, folder)
    place = place.with_system_prompt(system).with_retrieved(asked.get("retrieved", 0))
    if (folder / "whole").exists():
        return folder
    every = place.questions(asked["split"], asked.get("kinds"), asked.get("lang", "en"))
    questions = [one for one in every if "tiers" not in asked or one.meta["tier"] in asked["tiers"]]
    grade = assemble(
        place.checks,
        MEASURED,
        {},
        frozenset(asked.get("sections", ANSWER_SECTIONS)),
        gold_optional=True,
    )
    if "samples" in asked and "sampled" not in asked:
        raise WorkbenchError("a question set with `samples` needs `sampled`, the seed: add it")
    longest = asked.get("tokens", place.longest(questions))
    samples = asked.get("majority", asked.get("best_of", asked.get("samples", 1)))
    how: dict[str, Any] = {"seed": asked.get("sampled", 0), "samples": samples}
    how |= {"greedy": samples == 1 and "sampled" not in asked}
    write = partial(generate, place.load(policy), max_new_tokens=longest)
    responses = write(questions, **how)
    if asked.get("cove"):
        responses = cove(partial(write, greedy=True), responses)
    rows = grade(responses)
    if "best_of" in asked:
        rows = best_of_n(rows, verifier_grade(place))
    elif "majority" in asked:
        rows = self_consistency(rows, grade)
    (folder / "rollouts.jsonl").unlink(missing_ok=True)
    with Store(folder) as store:
        store.append(rows)
    (folder / "whole").touch()
    return folder


def answers(
    place: Bench, policy: str, asked: Mapping[str, Any], system: str | None, folder: Path
) -> list[Answered]:
    """Return the policy's answers to a question set, in the form that the metrics use."""
    rows = iter_feedback(graded(place, policy, asked, system, folder))
    return [answered(feedback, asked.get("sections", ())) for feedback in rows]


def policies(
    runs: Sequence[Run], stages: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str, Path]]:
    """Return (arm, policy, folder of its answers) for each run and each evaluated stage."""
    found = [(run.entry.name, str(run.folder), run.folder / "answers") for run in runs]
    for name, of in stages.items():
        left = [run.folder / "stages" / of["stage"] for run in runs if run.entry.name == of["of"]]
        found += [(name, str(folder / "policy"), folder / "answers") for folder in left]
    return found


def start_folder(run: Run, root: Path) -> Path:
    """Return the folder of the answers of a run's initial policy."""
    return root / "start" / str(policy_hash(run.bench.path(run.identity["policy"])))


@dataclass(frozen=True)
class Asking:
    """A policy that is asked the questions of a set, with the arguments of `graded`."""

    arm: str
    name: str  # question set
    policy: str
    asked: Mapping[str, Any]
    system: str | None
    folder: Path


def askings(runs: Sequence[Run], study: Mapping[str, Any], split: str, root: Path) -> list[Asking]:
    """Return what each policy is asked, by question set, in the order of the seeds.

    The arm `START` is the initial policy of all runs. Passages in the prompts are those of the
    question set (`retrieved`), not of the training. A policy gets the system prompt of its
    training. `START` gets the same one, or the bench's if trainings differ.

    Args:
        study: the content of `findings/METHOD.toml`.
        split: "test", or another split that replaces it in every question set.
        root: folder of the runs.
    """
    stages = study.get("stage", {})
    found: list[Asking] = []
    systems = {run.entry.name: run.config.prompts.system for run in runs}
    systems |= {name: systems[of["of"]] for name, of in stages.items()}
    common = set(systems.values())
    systems[START] = common.pop() if len(common) == 1 else None
    # all runs must have the same initial policy
    [begun] = {run.identity["policy"] for run in runs}
    start, trained = start_folder(runs[0], root), policies(runs, stages)
    for name, asked in study["asked"].items():
        if asked["split"] != "test" and split != "test":
            continue  # also held out: not for choosing settings
        arms = asked.get("arms")
        asked = {key: value for key, value in asked.items() if key != "arms"}
        asked["split"] = asked["split"] if split == "test" else split
        found.append(Asking(START, name, begun, asked, systems[START], start))
        found += [
            Asking(arm, name, policy, asked, systems[arm], folder)
            for arm, policy, folder in trained
            if arms is None or arm in arms
        ]
        for arm, baseline in study.get("inference", {}).items():
            if name in baseline["asked"]:
                [way] = [way for way in WAYS if way in baseline]
                changed = {**asked, way: baseline[way]}
                of = baseline.get("of", START)
                answering = [(policy, folder) for one, policy, folder in trained if one == of]
                answering = [(begun, start)] if of == START else answering
                repeated = range(1, baseline.get("draws", 1))
                # True (`cove`) or one sample: a greedy answer
                if repeated and (of != START or baseline[way] == 1 or "sampled" in asked):
                    raise WorkbenchError(
                        f"inference.{arm}: `draws` needs several samples of the initial policy,"
                        " and a question set without `sampled`"
                    )
                found += [
                    Asking(arm, name, policy, drawn, systems[of], folder)
                    for policy, folder in answering
                    for drawn in (changed, *({**changed, "sampled": seed} for seed in repeated))
                ]
    return found


def answers_by_arm(
    place: Bench, asked: Sequence[Asking]
) -> dict[str, dict[str, list[list[Answered]]]]:
    """Return arm -> question set -> the answers of each seed."""
    found: dict[str, dict[str, list[list[Answered]]]] = {START: {}}
    for one in asked:
        rows = answers(place, one.policy, one.asked, one.system, one.folder)
        found.setdefault(one.arm, {}).setdefault(one.name, []).append(rows)
    for name, sets in found[START].items():
        print(f"asked {name}: {len(sets[0])} questions of each policy", flush=True)
    return found


def ask_in_parallel(place: Bench, asked: Sequence[Asking], jobs: int, part: int) -> None:
    """Generate the answers of every `jobs`-th policy.

    The first process (`part` 0) starts the others, with its own command line and --part, and waits
    for them. Answers that another process fails to generate are generated later. If the first
    process ends early, it ends the others.
    """
    others = [
        subprocess.Popen([sys.executable, *sys.argv, "--part", str(number)])
        for number in range(1, jobs)
        if part == 0
    ]
    policies = list(dict.fromkeys(one.folder for one in asked))
    own = set(policies[part::jobs])
    try:
        for one in asked:
            if one.folder in own:
                graded(place, one.policy, one.asked, one.system, one.folder)
        codes = [other.wait() for other in others]
    finally:
        for other in others:
            other.terminate()
    if any(codes):
        print(f"processes ended with the codes {codes}: their answers are generated now")


def means(found: Mapping[str, Mapping[str, Sequence[Sequence[Answered]]]]) -> dict[str, Any]:
    """Return the mean of every metric, by arm, question set and tier."""
    return {
        arm: {
            name: {tier: _means(seeds, tier) for tier in ("", *_tiers(seeds))}
            for name, seeds in sets.items()
        }
        for arm, sets in found.items()
    }


def seed_means(
    found: Mapping[str, Mapping[str, Sequence[Sequence[Answered]]]],
) -> dict[str, Any]:
    """Return the means over all tiers of each seed: arm -> question set -> one dict per seed.

    Arms with a single seed are left out: `means` has their values.
    """
    return {
        arm: {name: [_means([seed], "") for seed in seeds] for name, seeds in sets.items()}
        for arm, sets in found.items()
        if any(len(seeds) > 1 for seeds in sets.values())
    }


def differences(
    study: Mapping[str, Any], found: Mapping[str, Mapping[str, Sequence[Sequence[Answered]]]]
) -> dict[str, dict[str, Any]]:
    """Return title -> arm -> the paired difference to the initial policy, with its interval.

    Args:
        study: the content of `findings/METHOD.toml`. Its tables `difference` have a title and the
            fields of a `Contrast` other than the arms.
        found: arm -> question set -> the answers of each seed.
    """
    return {
        title: {
            arm: effect(Contrast(of=arm, **contrast), found)
            for arm, sets in found.items()
            if arm != START and contrast["asked"] in sets
        }
        for title, contrast in study.get("difference", {}).items()
    }


def _tiers(seeds: Sequence[Sequence[Answered]]) -> list[str]:
    return sorted({one.tier for seed in seeds for one in seed} - {""})


def _means(seeds: Sequence[Sequence[Answered]], tier: str) -> dict[str, float]:
    terms = [one.terms() for seed in seeds for one in seed if tier in ("", one.tier)]
    sums = {
        name: [sum(part) for part in zip(*(t[name] for t in terms if name in t), strict=True)]
        for name in METRICS
    }
    return {
        name: round(parts[0] / parts[1], 4) for name, parts in sums.items() if parts and parts[1]
    }


def draw(
    found: Mapping[str, Mapping[str, Sequence[Sequence[Answered]]]], arm: str, folder: Path
) -> list[str]:
    """Draw figures of the answers to the first question set; the seeds of an arm are pooled."""
    rows = {
        name: [one.row for seed in next(iter(sets.values())) for one in seed]
        for name, sets in found.items()
    }
    figures = rlfh.figures(rows[START], rows[arm], (START, arm))
    return write_pages(figures | {"fig9_trade_off": rlfh.trade_off(rows)}, folder)


def show(checked: Sequence[Mapping[str, Any]]) -> None:
    for finding in checked:
        print(f"{finding['id']:4} {finding['result']:8} {finding['statement']}")
        for cell in finding["contrasts"]:
            print(f"       {compared(cell)}: {measured(cell)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "method",
        choices=sorted(path.stem.removesuffix("_runs") for path in FILES.glob("*_runs.toml")),
    )
    parser.add_argument("--policy")
    parser.add_argument("--split", choices=("validation", "test"), default="test")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--arms", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.jobs < 1:
        parser.error("--jobs must be at least 1")
    if given.quick and given.results:
        parser.error("runs of two steps show nothing: leave out --quick or --results")
    file = FILES / f"{given.method}.toml"
    findings: list[Finding] = load_findings(file)
    queued = queue_runs(FILES / f"{given.method}_runs.toml", given.out, given.quick)
    if given.half and given.results and RESULTS in given.results.resolve().parents:
        parser.error("committed results have whole runs: leave out --half, or name another file")
    if given.half:
        queued = [plan_run(halved(run.entry, run.steps), given.out) for run in queued]
    if given.policy:
        queued = [plan_run(replace(run.entry, policy=given.policy), given.out) for run in queued]
    runs = [
        run
        for run in queued
        if run.entry.seed in (given.seeds or [run.entry.seed])
        and run.entry.name in (given.arms or [run.entry.name])
    ]
    if not runs:
        raise SystemExit("no run is left by --seeds and --arms: name some that the file has")
    seeds = {
        arm: [run.entry.seed for run in runs if run.entry.name == arm]
        for arm in {run.entry.name for run in runs}
    }
    if len({tuple(own) for own in seeds.values()}) != 1:
        raise SystemExit(f"contrasts pair runs by seed, and the arms have different ones: {seeds}")
    place, study = runs[0].bench, tomllib.loads(file.read_text())
    asked = askings(runs, study, given.split, given.out)
    threads = max(1, given.threads // given.jobs)
    if given.part:
        with use_threads(threads):
            ask_in_parallel(place, asked, given.jobs, given.part)
        return
    ended = train_queue(runs, given.out, given.jobs)
    if ended["failed"] or ended["status"] != "done":
        raise SystemExit("not all runs are done: the same command goes on")
    with use_threads(threads):
        ask_in_parallel(place, asked, given.jobs, 0)
        found = answers_by_arm(place, asked)
    checked = check(findings, found)
    show(checked)
    if given.figures:
        print("\n".join(draw(found, runs[0].entry.name, given.figures)))
    if given.results:
        about = {
            "date": date.today().isoformat(),
            "split": given.split,
            **({"half": True} if given.half else {}),
            "threads": threads,
            "versions": (runs[0].summary or {}).get("versions") or versions(),
        }
        hashes = {key: runs[0].identity[key] for key in ("world_hash", "policy_hash")}
        listed = [
            {"arm": run.entry.name, "seed": run.entry.seed, "hash": run.hash, **took(run)}
            for run in runs
        ]
        write_json(
            given.results,
            {
                **about,
                **hashes,
                "findings": checked,
                "means": means(found),
                "seed_means": seed_means(found),
                "differences": differences(study, found),
                "curves": curves(runs),
                "runs": listed,
            },
        )


if __name__ == "__main__":
    main()
