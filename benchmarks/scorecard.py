"""Show all findings in one table: statement, measurement, result.

    workbench scorecard                            # the committed results
    workbench scorecard --only D1 --only klcf      # findings by id, or studies by name
    workbench scorecard --run --quick --only D1    # train and measure again, shortened

Statements and least effects are in `benchmarks/findings/`, results in `benchmarks/results/`. A run
writes to `runs/scorecard/`, never over the committed results. A killed run resumes. `--quick` uses
one seed per arm and half of the steps, so its intervals are over questions only. `--policy` is the
initial policy of the studies that `--only` names. Studies that start from another policy than
the shipped one are left out without it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.types import WorkbenchError

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import tables  # noqa: E402
from benchmarks.reproduce import compared, measured  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
FINDINGS = ROOT / "benchmarks" / "findings"
RUNS = Path("runs") / "scorecard"
OTHER_POLICIES = (
    "truthrl_real",
    "truthrl_gpu",
    "truthrl_smollm2",
    "truthrl_smollm2_cold",
    "truthrl_smollm2_apart",
    "rlfh_real",
    "rlfh_real_guarded",
    "rlfh_smollm2",
    "knowrl_smollm2",
    "klcf_smollm2",
    "forag_smollm2",
)  # with an initial policy that the user names
OWN_SCRIPTS = {"truthrl_confidence": "confidence.py"}  # study -> its script, always in full
VERDICTS = ("holds", "fails", "unclear", "not run")
NOT_RUN = VERDICTS[-1]
COLOURS = {"holds": "#2a9d5c", "fails": "#d1495b", "unclear": "#e0a030", NOT_RUN: "#9aa0a6"}


@dataclass(frozen=True)
class Study:
    """Results of one file of statements."""

    name: str  # file of results
    paper: str
    title: str  # section of docs/findings.md

    @property
    def statements(self) -> Path:
        """The file of statements."""
        return FINDINGS / f"{self.name.removesuffix('_guarded')}.toml"


STUDIES = (
    Study("comparison", "ours", "All methods on equal terms"),
    Study("inference", "ours", "Baselines at inference time"),
    Study("rlfh", "RLFH", "RLFH"),
    Study("rlfh_long", "RLFH", "RLFH for 120 steps"),
    Study("rlfh_variants", "RLFH", "Estimators, maps and annotators"),
    Study("rlfh_real", "RLFH", "RLFH with a weak judge on a real language model"),
    Study("rlfh_real_guarded", "RLFH", "After circular claims are refused"),
    Study("truthrl", "TruthRL", "TruthRL"),
    Study("truthrl_retrieval", "TruthRL", "With retrieved passages"),
    Study("truthrl_reasoning", "TruthRL", "Rewards for reasoning"),
    Study("truthrl_confidence", "TruthRL", "By confidence"),
    Study("truthrl_real", "TruthRL", "TruthRL on a real language model"),
    Study("truthrl_gpu", "TruthRL", "TruthRL on a real language model, on a GPU"),
    Study("truthrl_smollm2", "TruthRL", "TruthRL on a smaller real model"),
    Study("truthrl_smollm2_cold", "TruthRL", "Without R-Tuning first"),
    Study("truthrl_smollm2_apart", "TruthRL", "After R-Tuning on other questions"),
    Study("rlfh_smollm2", "RLFH", "RLFH on a smaller real model"),
    Study("knowrl_smollm2", "KnowRL", "KnowRL on a smaller real model"),
    Study("klcf_smollm2", "KLCF", "KLCF on a smaller real model"),
    Study("forag_smollm2", "FoRAG", "FoRAG on a smaller real model"),
    Study("forag", "FoRAG", "FoRAG"),
    Study("klcf", "KLCF", "KLCF"),
    Study("klcf_variants", "KLCF", "KLCF's variants"),
    Study("klcf_tuned", "KLCF", "KLCF from the tuned policy"),
    Study("knowrl", "KnowRL", "KnowRL"),
    Study("knowrl_objectives", "KnowRL", "Objectives and steps"),
)


def scorecard(results: Path = RESULTS, only: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return all findings: `{study, paper, id, source, statement, contrasts, seeds, result, date}`.

    A contrast is `{metric, of, minus, times, least, effect, low, high, n, asked, over, tier,
    result}`.
    Studies without results give their statements with the result "not run".

    Args:
        results: folder of the results.
        only: ids of findings or names of studies; all if empty.
    """
    found: list[dict[str, Any]] = []
    for study in STUDIES:
        file = results / f"{study.name}.json"
        stored = json.loads(file.read_text()) if file.is_file() else {}
        # a statement that was added after the results is not run
        by_id = {one["id"]: one for one in (*_statements(study), *stored.get("findings", ()))}
        for one in by_id.values():
            if not only or {study.name, one["id"], f"{study.name} {one['id']}"} & set(only):
                found.append(_row(study, one, stored.get("date")))
    # several results can share a file of statements; each may have run a part of it
    ran = {(row["file"], row["id"]) for row in found if row["result"] != NOT_RUN}
    lacking = {(row["file"], row["id"]): row for row in reversed(found)}  # first occurrence wins
    return [
        row
        for row in found
        if row["result"] != NOT_RUN
        or ((row["file"], row["id"]) not in ran and row is lacking[row["file"], row["id"]])
    ]


def _statements(study: Study) -> list[dict[str, Any]]:
    findings = tomllib.loads(study.statements.read_text(encoding="utf-8"))["finding"]
    return [{**one, "contrasts": one["contrast"], "result": NOT_RUN} for one in findings]


def _row(study: Study, finding: Mapping[str, Any], date: str | None) -> dict[str, Any]:
    contrasts = [
        {
            **{key: one.get(key) for key in ("metric", "of", "tier", "over", "low", "high", "n")},
            "asked": one.get("asked", "test"),
            "minus": one.get("minus", "start"),
            "least": one.get("least", 0.0),
            "times": one.get("times", 1.0),
            "effect": one.get("value"),
            "result": one.get("result", NOT_RUN),
        }
        for one in finding["contrasts"]
    ]
    seeds = [one["seeds"] for one in finding["contrasts"] if one.get("seeds")]
    return {
        "study": study.name,
        "file": study.statements.stem,
        "paper": study.paper,
        **{key: finding[key] for key in ("id", "source", "statement", "result")},
        "contrasts": contrasts,
        "seeds": min(seeds, default=0),
        "date": date,
    }


def deciding(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the contrast that decides a finding: the first that has the finding's result.

    If all contrasts hold, it is the one nearest to its least effect.
    """
    own = [one for one in row["contrasts"] if one["result"] == row["result"]] or row["contrasts"]
    if row["result"] == "holds":
        return min(own, key=lambda one: one["effect"] - one["least"])
    return own[0]


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a finding: name, result, statement, contrast, effect, seeds."""
    one = deciding(row)
    return [
        f"{row['study']} {row['id']}",
        row["result"],
        f"{row['statement']} ({row['source']})",
        compared(one),
        measured({**one, "value": one["effect"]}),
        str(row["seeds"] or "–"),
    ]


WIDE = 140  # columns of a terminal
COLUMNS = ["finding", "result", "statement (source)", "deciding contrast", "effect [95 %]", "seeds"]


def counts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many findings have each result, as a sentence."""
    by = Counter(row["result"] for row in rows)
    listed = ", ".join(
        f"{by[name]} {name if by[name] == 1 else name.removesuffix('s')}"
        for name in VERDICTS
        if by[name]
    )
    return f"{len(rows)} finding{'s' * (len(rows) != 1)}: {listed}"


def markdown() -> str:
    """Return the scorecard as Markdown; a finding links to its section of findings.md."""
    titles = {study.name: study.title for study in STUDIES}
    rows = []
    for row in scorecard():
        name, result, *others = cells(row)
        anchor = re.sub(r"[^a-z0-9 -]", "", titles[row["study"]].lower()).replace(" ", "-")
        rows.append([f"[{name}](findings.md#{anchor})", f"**{result}**", *others])
    return tables.markdown(COLUMNS, rows)


SIDE, GAP, LEFT, TOP = 26, 5, 84, 14  # pixels


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return an SVG with one square for each finding, in a line for each paper."""
    papers = dict.fromkeys(row["paper"] for row in rows)
    ordered = {
        paper: sorted(
            (row for row in rows if row["paper"] == paper),
            key=lambda row: VERDICTS.index(row["result"]),
        )
        for paper in papers
    }
    width = LEFT + max(map(len, ordered.values())) * (SIDE + GAP)
    height = TOP + len(papers) * (SIDE + 2 * GAP) + 30
    parts = []
    for line, (paper, own) in enumerate(ordered.items()):
        y = TOP + line * (SIDE + 2 * GAP)
        parts.append(f'<text class="t" x="0" y="{y + 18}">{paper}</text>')
        for place, row in enumerate(own):
            x = LEFT + place * (SIDE + GAP)
            hint = escape(f"{row['study']} {row['id']}: {row['statement']} {row['result']}")
            parts.append(
                f'<g><title>{hint}</title><rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"'
                f' rx="4" fill="{COLOURS[row["result"]]}"/><text class="i" x="{x + SIDE / 2}"'
                f' y="{y + 17}">{row["id"]}</text></g>'
            )
    x, by = LEFT, Counter(row["result"] for row in rows)
    for name in filter(by.__getitem__, VERDICTS):
        text = f"{name} ({by[name]})"
        parts.append(
            f'<rect x="{x}" y="{height - 20}" width="12" height="12" rx="2"'
            f' fill="{COLOURS[name]}"/><text class="t" x="{x + 18}" y="{height - 9}">{text}</text>'
        )
        x += 130
    style = (
        ".t{font:13px sans-serif;fill:#333}.i{font:bold 10px sans-serif;fill:#fff;"
        "text-anchor:middle}@media(prefers-color-scheme:dark){.t{fill:#ddd}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img"><title>{counts(rows)}</title><style>{style}</style>'
        f"{''.join(parts)}</svg>\n"
    )


def run(rows: Sequence[Mapping[str, Any]], policy: str | None, quick: bool, jobs: int = 1) -> Path:
    """Train and measure the studies of these findings; return the folder of the results.

    Raises:
        WorkbenchError: a study failed.
    """
    out = RUNS / ("quick" if quick else "full")
    out.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(row["file"] for row in rows):
        if name in OTHER_POLICIES and policy is None:
            print(f"{name} is left out: name its initial policy with --policy", file=sys.stderr)
            continue
        own = OWN_SCRIPTS.get(name)
        command = [sys.executable, str(ROOT / "benchmarks" / (own or "findings.py"))]
        command += ["--out", str(out / "runs"), "--results", str(out / f"{name}.json")]
        if own is None:
            command += [name, *(["--seeds", "1", "--half"] if quick else [])]
            command += ["--jobs", str(jobs), *(["--policy", policy] if policy else [])]
        if subprocess.run(command, stdout=sys.stderr).returncode:
            raise WorkbenchError(f"the study {name} is not done: the same command goes on")
    return out


def show(
    only: Collection[str] = (),
    again: bool = False,
    policy: str | None = None,
    quick: bool = False,
    jobs: int = 1,
    as_json: bool = False,
) -> None:
    """Print the scorecard; with `again`, run its studies first.

    Raises:
        WorkbenchError: no finding and no study has the name `only`, or --quick is given without
            --run, or --policy without --only.
    """
    if quick and not again:
        raise WorkbenchError("--quick shortens --run: name both, or leave --quick out")
    if policy and not only:
        raise WorkbenchError("--policy needs --only: name the studies that start from this policy")
    rows = scorecard(only=only)
    for one in only:
        if not scorecard(only=[one]):
            names = ", ".join(study.name for study in STUDIES)
            raise WorkbenchError(f"no finding {one}: name one such as D1, or a study: {names}")
    if again:
        asked = {(row["file"], row["id"]) for row in rows}
        folder = run(rows, policy, quick, jobs)
        rows = [row for row in scorecard(folder) if (row["file"], row["id"]) in asked]
    if as_json:
        print(json.dumps({"findings": rows}, indent=1, ensure_ascii=False))
        return
    console, table = Console(), Table(title=counts(rows), box=None)
    # a narrow terminal has no space for the contrasts; --json prints them
    places = range(len(COLUMNS)) if console.width >= WIDE else (0, 1, 2, 4)
    for place in places:
        table.add_column(COLUMNS[place], no_wrap=place not in (2, 3))
    for row in rows:
        own = cells(row)
        table.add_row(*(own[place] for place in places))
    console.print(table)
    if len(places) < len(COLUMNS):
        print(f"a terminal of {WIDE} columns shows the deciding contrast and the seeds, too")
