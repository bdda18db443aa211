"""Test a paper's findings on our bench, with statements and least effects fixed before the runs.

A finding has contrasts: a metric of one arm minus that of another. An arm has the answers of all
seeds of one setting to the same questions; "start" is the initial policy. Intervals are bootstraps
over seeds × questions.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.real.exact import EXACT, exact_terms
from workbench.metrics import FACET_METRICS, RATES, Row, facet_terms, rows_of
from workbench.metrics.bootstrap import FEWEST
from workbench.metrics.claims import CLAIM_METRICS, Term, claim_terms, f1_at, recall_at
from workbench.metrics.facets import of_facets
from workbench.metrics.outcomes import outcome_terms
from workbench.types import Feedback, WorkbenchError
from workbench.util.grouping import group_by

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

START = "start"
RESAMPLES = 2000
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Contrast:
    """`metric` of the arm `of` minus `times` that of the arm `minus`, expected to be at least
    `least`.

    It uses the questions of the set `asked`, or only those of one `tier`.

    Some metrics need certain answers: FActScore needs answers with claims. With `over="both"`, a
    question counts if both arms give such an answer; several such answers to it are averaged, so
    that every question counts equally. With "own", as papers report it, each arm uses all of its
    own answers; an arm then gains by declining what it would get wrong.
    """

    metric: str
    of: str
    minus: str = START
    least: float = 0.0
    asked: str = "test"
    tier: str = ""
    times: float = 1.0
    over: Literal["both", "own"] = "both"


@dataclass(frozen=True)
class Finding:
    """A finding in words, its source in the paper, and the contrasts that test it here."""

    id: str
    source: str
    statement: str
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True)
class Answered:
    """A response in the form that the metrics use, with the tier of its question.

    `facets` has its terms for facets and the table of real facts, if any.
    """

    row: Row
    tier: str = ""
    facets: Mapping[str, Term] = field(default_factory=dict)

    def terms(self) -> dict[str, Term]:
        """Return the response's term of each metric."""
        return {**terms_of(self.row), **self.facets}


def answered(feedback: Feedback, sections: Sequence[str] = ()) -> Answered:
    """Convert a graded response; only the claims of `sections` count, by default all."""
    [row] = rows_of([feedback], sections)
    facets = facet_terms(feedback) if of_facets(feedback) else {}
    tier = str(feedback.response.question.meta.get("tier", ""))
    return Answered(row, tier, {**facets, **exact_terms(feedback)})


# arm -> question set -> answers of each seed
Answers = Mapping[str, Mapping[str, Sequence[Sequence[Answered]]]]


# Metrics in addition to those of `workbench.metrics`; they count a refusal as no claims *(ours)*.
# K is the number of facts about almost every person of the closed world. Recall and F1 are
# those of `workbench.metrics.claims`, on subject.
K = 6
OURS = ("supported_claims", "unsupported_claims", f"recall@{K}", f"f1@{K}")
METRICS = (*RATES, *CLAIM_METRICS, *OURS, *FACET_METRICS, *EXACT)


def terms_of(row: Row) -> dict[str, Term]:
    """Return the response's terms; a claim about another subject than asked is unsupported."""
    terms = {**claim_terms(row), **outcome_terms(row.outcome)}
    supported = row.supported_on_subject
    if supported is not None and row.state in ("scored", "abstained", "no_claims"):
        n = len(row.labels)
        values = (supported, n - supported, recall_at(K, supported), f1_at(K, supported, n))
        terms |= {name: (value, 1.0) for name, value in zip(OURS, values, strict=True)}
    return terms


def load_findings(file: Path) -> list[Finding]:
    """Read the findings of a TOML file.

    It has `[[finding]]` with `id`, `source`, `statement` and `[[finding.contrast]]`s.

    Raises:
        WorkbenchError: the file or a value in it is invalid; the message names the finding.
    """
    try:
        listed = tomllib.loads(file.read_text(encoding="utf-8")).get("finding", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise WorkbenchError(f"{file}: {error}") from error
    findings: list[Finding] = []
    for number, entry in enumerate(listed, 1):
        where = f"{file}, finding {number}"
        try:
            contrasts = tuple(Contrast(**one) for one in entry.pop("contrast", ()))
            finding = Finding(**entry, contrasts=contrasts)
        except TypeError as error:  # an unknown field, or a missing one
            raise WorkbenchError(f"{where}: {error}") from error
        if not contrasts:
            raise WorkbenchError(f"{where}: it has no [[finding.contrast]]")
        if finding.id in {other.id for other in findings}:
            raise WorkbenchError(f"{where}: the id {finding.id} is used twice")
        for contrast in contrasts:
            if contrast.over not in ("both", "own"):
                raise WorkbenchError(f"{where}: over is '{contrast.over}': choose one of both, own")
            if contrast.metric not in METRICS:
                raise WorkbenchError(
                    f"{where}: no metric '{contrast.metric}': choose one of {', '.join(METRICS)}"
                )
        findings.append(finding)
    return findings


def check(
    findings: Iterable[Finding], answers: Answers, *, seed: int = 0, resamples: int = RESAMPLES
) -> list[dict[str, Any]]:
    """Return each finding with its result.

    A contrast gets `{value, low, high, of, minus, n, seeds}` and a `result`. It holds if its value
    is at least `least` and the 95 % interval is above 0 (above `least` if that is below 0). It
    fails if the interval is below `least`. Otherwise, and with fewer than `FEWEST` questions, it is
    unclear. A finding holds if all of its
    contrasts hold, and fails if one fails. It is "not run" if an arm was not run.
    """
    checked = []
    for finding in findings:
        found = asdict(finding)
        found["contrasts"] = [asdict(contrast) for contrast in finding.contrasts]
        lacking = sorted(
            {
                arm
                for one in finding.contrasts
                for arm in (one.of, one.minus)
                if one.asked not in answers.get(arm, {})
            }
        )
        if lacking:
            checked.append({**found, "result": "not run", "lacking": lacking})
            continue
        for contrast, cell in zip(finding.contrasts, found["contrasts"], strict=True):
            cell |= effect(contrast, answers, seed=seed, resamples=resamples)
        results = {cell["result"] for cell in found["contrasts"]}
        result = "fails" if "fails" in results else "unclear" if "unclear" in results else "holds"
        checked.append({**found, "result": result})
    return checked


def effect(
    contrast: Contrast, answers: Answers, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Compute a contrast with its interval; both arms share the drawn seeds and questions."""
    import numpy as np

    arms = [answers[arm][contrast.asked] for arm in (contrast.of, contrast.minus)]
    seeds = max(map(len, arms))
    assert {*map(len, arms)} <= {1, seeds}, f"{contrast.of}, {contrast.minus}: unequal seeds"
    terms = [
        [_terms(one, contrast) for one in arm] * (seeds if len(arm) == 1 else 1) for arm in arms
    ]
    questions = sorted({question for arm in terms for one in arm for question in one})
    # (2, arms, S seeds, Q questions): numerators and denominators, 0 and 0 if an arm has no term,
    # and, with over="both", if the other arm has no term
    sums_2ASQ = np.zeros((2, 2, seeds, len(questions)))
    for s in range(seeds):
        for q, question in enumerate(questions):
            pair = [arm[s].get(question) for arm in terms if s < len(arm)]
            if len(pair) == 2 and (contrast.over == "own" or None not in pair):
                sums_2ASQ[:, :, s, q] = np.array([term or (0.0, 0.0) for term in pair]).T
    kept = sums_2ASQ[1].any((0, 1))
    drawn_R = _differences(sums_2ASQ[..., kept], contrast.times, seed, resamples)
    found: dict[str, Any] = {"value": None, "low": None, "high": None, "n": 0, "seeds": seeds}
    if not kept.any() or not np.isfinite(drawn_R).any():
        return {**found, "result": "unclear"}
    of, minus = (float(sums_2ASQ[0, a].sum() / sums_2ASQ[1, a].sum()) for a in (0, 1))
    value = of - contrast.times * minus
    low, high = (float(np.nanquantile(drawn_R, q)) for q in (0.025, 0.975))
    found |= {"value": value, "low": low, "high": high, "mean_of": of, "mean_minus": minus}
    holds = value >= contrast.least and low > min(contrast.least, 0.0)
    result = "holds" if holds else "fails" if high < contrast.least else "unclear"
    n = int(kept.sum())
    return {**found, "n": n, "result": result if n >= FEWEST else "unclear"}


def _terms(answered: Sequence[Answered], contrast: Contrast) -> dict[str, Term]:
    """Return question -> the terms of one seed's answers to it: their mean, or their sum if each
    arm uses its own answers.
    """
    terms = [
        (one.row.question_id, term)
        for one in answered
        if contrast.tier in ("", one.tier)
        and (term := one.terms().get(contrast.metric)) is not None
    ]
    found: dict[str, Term] = {}
    for question, some in group_by(terms, itemgetter(0)).items():
        top, bottom = (sum(values) for values in zip(*(term for _, term in some), strict=True))
        count = 1 if contrast.over == "own" else len(some)
        found[question] = (top / count, bottom / count)
    return found


def _differences(sums_2ASQ: np.ndarray, times: float, seed: int, resamples: int) -> np.ndarray:
    """Return the contrast in each bootstrap sample of seeds and questions, with replacement."""
    import numpy as np

    rng = np.random.default_rng(seed)
    seeds, questions = sums_2ASQ.shape[2:]
    if not questions:
        return np.full(resamples, np.nan)
    of_seeds_RS = rng.multinomial(seeds, np.full(seeds, 1 / seeds), resamples).astype(float)
    of_questions_RQ = rng.multinomial(
        questions, np.full(questions, 1 / questions), resamples
    ).astype(float)
    top_RA, bottom_RA = np.einsum(
        "rs,xasq,rq->xra", of_seeds_RS, sums_2ASQ, of_questions_RQ, optimize=True
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        means_RA = top_RA / bottom_RA
    return means_RA[:, 0] - times * means_RA[:, 1]


def compared(cell: Mapping[str, Any]) -> str:
    """Describe what a checked contrast compares."""
    tier = f" ({cell['tier']})" if cell["tier"] else ""
    times = f"{cell['times']:g} × " if cell["times"] != 1 else ""
    own = ", each over its own" if cell.get("over") == "own" else ""
    arms = f"{cell['of']} − {times}{cell['minus']}{own}"
    return f"{cell['metric']} on {cell['asked']}{tier}: {arms}, at least {cell['least']:g}"


def measured(cell: Mapping[str, Any]) -> str:
    """Return the value with its interval; a dash, or the reason, if there is none."""
    if cell.get("value") is None:
        return "–"
    if (cell.get("n") or FEWEST) < FEWEST:
        return f"too few questions ({cell['n']})"
    return f"{cell['value']:+.3f} [{cell['low']:+.3f}, {cell['high']:+.3f}]"


def statements(stored: Mapping[str, Any]) -> list[list[str]]:
    """Return a row per stored contrast: id, result, statement, comparison, effect.

    Only the first row of a finding names it.
    """
    rows = []
    for finding in stored["findings"]:
        output = [finding["id"], finding["result"], f"{finding['statement']} ({finding['source']})"]
        for cell in finding["contrasts"]:
            rows.append([*output, compared(cell), measured(cell)])
            output = ["", "", ""]
    return rows


def reports(
    stored: Mapping[str, Any], arms: Iterable[str], asked: str = "test"
) -> dict[str, dict[str, Any]]:
    """Return the arms' stored means as reports for `workbench.metrics.plots.outcomes_by_tier`."""
    shaped = {}
    for arm in arms:
        tiers = {
            tier: {rate: {"value": means[rate]} for rate in RATES}
            for tier, means in stored["means"][arm][asked].items()
            if RATES[0] in means
        }
        shaped[arm] = {"greedy": {**tiers.pop(""), "by_tier": tiers}}
    return shaped


def curves(stored: Mapping[str, Any], arms: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the arms' stored training metrics by step, for `workbench.metrics.plots`.

    Raises:
        WorkbenchError: no such arm was run.
    """
    if missing := [arm for arm in arms if arm not in stored["curves"]]:
        raise WorkbenchError(
            f"no curves of {', '.join(missing)}: there are those of {', '.join(stored['curves'])}"
        )
    return {
        arm: [
            {"step": step, **dict(zip(stored["curves"][arm], row, strict=True))}
            for step, row in enumerate(zip(*stored["curves"][arm].values(), strict=True), 1)
        ]
        for arm in arms
    }


def stored_results(name: str) -> dict[str, Any]:
    """Return the committed results of this name in `benchmarks/results`."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def findings_table(*stored: Mapping[str, Any]) -> pd.DataFrame:
    """Return `statements` of stored results as a table."""
    import pandas as pd

    columns = ["", "result", "statement", "contrast", "effect [95 %]"]
    rows = [row for one in stored for row in statements(one)]
    return pd.DataFrame(rows, columns=columns).set_index("")


def means_table(
    stored: Mapping[str, Any],
    columns: Mapping[str, str],
    arms: Iterable[str] = (),
    asked: str = "test",
) -> pd.DataFrame:
    """Return stored means, with a row for each arm, by default for all arms.

    `columns` maps a title to a metric, or to a metric of one tier ("responded of unknown"). `asked`
    is the set of questions. Raises `ValueError` for an unknown metric.
    """
    import pandas as pd

    named = {title: column.partition(" of ") for title, column in columns.items()}
    if unknown := {metric for metric, *_ in named.values()} - {*METRICS}:
        raise ValueError(f"no metrics {sorted(unknown)}: use {', '.join(METRICS)}")
    rows = {
        arm: {
            title: stored["means"][arm][asked][tier].get(metric)
            for title, (metric, _, tier) in named.items()
        }
        for arm in arms or stored["means"]
    }
    return pd.DataFrame.from_dict(rows, "index").round(3)
