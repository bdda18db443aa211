"""Write the page of `workbench compare --html`: tables and figures in one self-contained file."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.metrics import RATES
from workbench.metrics.marks import NOT_SHARES
from workbench.metrics.plots import learning_curves, outcomes_by_tier, precision_and_recall
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import read_json
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.grouping import group_by

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TEMPLATE = Path(__file__).with_name("compare_page.html")
# metrics that the page shows at first, if a row has them; it also shows recall@K and F1@K
SHOWN = (
    *RATES,
    *"factscore_on_subject off_subject responded fact_per_sentence coherent".split(),
    *"citation_precision citation_recall run_seconds calls".split(),
)
# Metrics whose best value is shaded. They count all questions; others can rise by answering less.
HIGH_IS_BEST = ("accuracy", "truthfulness", "coherent", "citation_recall")
LOW_IS_BEST = ("hallucination",)
BARS, LETTER = 400, 6  # pixels: height of bars, and of a letter of a name below them
COSTS = ("run_seconds", "seconds", "calls", "cached", "tokens_in", "tokens_out")


def write_page(result: JsonMapping, out: Path) -> None:
    """Write the result of `compare` as one self-contained HTML file of about 5 MB.

    Raises:
        WorkbenchError: the file cannot be written.
    """
    try:
        out.write_text(comparison_page(result), encoding="utf-8")
    except OSError as error:
        raise WorkbenchError(
            f"cannot write {out}: {error.strerror}; name a writable file with --html"
        ) from error


def comparison_page(result: JsonMapping, inspected: Mapping[str, str] | None = None) -> str:
    """Return the result of `compare` as a self-contained HTML page.

    If a row of `result` combines several runs, the figures of outcome rates and of learning curves
    show only the first of these runs.

    Args:
        inspected: path of a run -> its name in the inspector that serves the page. Each row then
            has links that open its runs there. None for a page in a file, whose rows have the
            command that opens the first run.
    """
    from jinja2 import Template

    full = [row["name"] for row in result["rows"]]
    result = _renamed(result, {row["name"]: row["short"] for row in result["rows"]})
    rows = result["rows"]
    sets = dict.fromkeys(key for row in rows for key in row["metrics"])
    tables = [_questions(key, rows) for key in sets]
    if paired := _paired(result):
        tables.insert(1, paired)
    return Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True).render(
        runs={row["name"]: row["runs"] for row in rows},
        full=full,
        inspected=inspected,
        tables=tables,
        settings=result["differences"],
        figures=_figures(rows),
    )


def _renamed(result: JsonMapping, names: Mapping[str, str]) -> JsonObject:
    """Return the result of `compare` with other names of its rows, `{name: new name}`."""

    def keys(table: JsonMapping) -> JsonObject:
        return {names[name]: value for name, value in table.items()}

    return {
        "rows": [{**row, "name": names[row["name"]]} for row in result["rows"]],
        "differences": {key: keys(values) for key, values in result["differences"].items()},
        "against": names.get(result.get("against", "")),
        "paired": keys(result.get("paired", {})),
    }


def _questions(key: str, rows: Sequence[JsonMapping]) -> JsonObject:
    """Return the table of the question set `key`: a row for each policy, with its cost."""
    cells = {}
    for row in rows:
        if key in row["metrics"]:
            cost = {} if "before" in key else row["cost"]
            costs = {name: {"value": value} for name, value in cost.items()}
            cells[row["name"]] = row["metrics"][key] | costs
    best = {name: _best(name, cells) for metrics in cells.values() for name in metrics}
    return _table(f"Questions: {key}", cells, best)


def _table(
    title: str, metrics: Mapping[str, JsonMapping], best: Mapping[str, float | None]
) -> JsonObject:
    """Return a table for the template, with a row of cells for each policy.

    `best` is the best value of a column. Columns that are not shown at first have the class "more".
    """
    names = dict.fromkeys(name for cells in metrics.values() for name in cells)
    # metrics in `SHOWN` come first
    columns = sorted(names, key=lambda name: (*SHOWN, name).index(name))
    return {
        "title": title,
        "columns": {name: "" if _is_shown(name) else "more" for name in columns},
        "rows": {
            name: {column: _cell(column, cell, best.get(column)) for column, cell in own.items()}
            for name, own in metrics.items()
        },
    }


def _is_shown(name: str) -> bool:
    return name in SHOWN or "@" in name


def _best(name: str, cells: Mapping[str, JsonMapping]) -> float | None:
    """Return the best value of a metric, which is shaded in its column.

    Return None if all values are equal, or if the page does not shade this metric.
    """
    values = [metrics[name]["value"] for metrics in cells.values() if name in metrics]
    if len(set(values)) < 2 or not (name in (*HIGH_IS_BEST, *LOW_IS_BEST) or "@" in name):
        return None
    return min(values) if name in LOW_IS_BEST else max(values)


def _cell(name: str, cell: JsonMapping, best: float | None) -> JsonObject:
    value, scale = cell["value"], 1 if name in (*NOT_SHARES, *COSTS) else 100
    digits = 0 if scale == 1 and abs(value) > 100 else 1
    text, *bounds = (
        f"{scale * cell[key]:,.{digits}f}"
        for key in ("value", "low", "high")
        if cell.get(key) is not None
    )
    return {"text": text, "bounds": bounds, "value": value, "best": value == best}


def _paired(result: JsonMapping) -> JsonObject | None:
    """Return the table of paired differences to the baseline; None without differences."""
    pairs = {
        name: {
            column: {**test, "value": test["diff"]}
            for column, test in tests.items()
            if _is_shown(column)
        }
        for name, tests in result.get("paired", {}).items()
        if "reason" not in tests
    }
    base = result.get("against")
    title = f"Differences to {base}, on questions where both rows have a value, paired by seed"
    return _table(title, pairs, {}) if any(pairs.values()) else None


def _figures(rows: Sequence[JsonMapping]) -> Iterator[str]:
    """Yield the page's figures as HTML, without figures that have no data.

    Outcomes, and precision with recall, have a figure for each name of a question set, such as
    "test". The first figure contains plotly's JavaScript code.
    """
    figures = []
    asked = group_by(rows, lambda row: next(iter(row["metrics"])))
    for key, own in asked.items():
        drawn = [_outcomes(own), _precision([row["metrics"][key] for row in own], own)]
        for figure in filter(None, drawn):
            if len(asked) > 1:
                figure.update_layout(title=f"{figure.layout.title.text}: {key}")
            figures.append(figure)
    if folders := _folders(rows):
        figures.append(
            learning_curves({name: metrics_rows(folder) for name, folder in folders.items()})
        )
    for number, figure in enumerate(figures):
        yield figure.to_html(
            full_html=False,
            include_plotlyjs=number == 0,
            config={"responsive": True, "displayModeBar": False},
        )


def _folders(rows: Sequence[JsonMapping]) -> dict[str, Path]:
    """Return the name of each row of runs -> the folder of its first run."""
    return {escape(row["name"]): Path(row["runs"][0]) for row in rows if row["method"]}


def _outcomes(rows: Sequence[JsonMapping]) -> "Figure | None":
    """Draw outcome rates by tier; None without a run that has them."""
    summaries = {
        name: read_json(folder / "summary.json") or {} for name, folder in _folders(rows).items()
    }
    reports = {
        name: summary["after"]
        for name, summary in summaries.items()
        if (summary["after"]["greedy"].get("accuracy") or {}).get("value") is not None
    }
    if not reports:
        return None
    before = [(summaries[name].get("before") or {}).get("greedy") for name in reports]
    # with other prompts, the same policy starts from other rates
    alike = before[0] and all(one == before[0] for one in before)
    start = {"before training": summaries[next(iter(reports))]["before"]} if alike else {}
    figure = outcomes_by_tier(start | reports)
    # the names of many policies stand upright below the bars
    figure.update_layout(height=BARS + LETTER * max(map(len, reports)))
    return figure


def _precision(metrics: Sequence[JsonMapping], rows: Sequence[JsonMapping]) -> "Figure | None":
    """Draw precision and recall@K; None without a row that has both."""
    recall = next((name for cells in metrics for name in cells if name.startswith("recall@")), "")
    points = {
        escape(row["name"]): cells
        for row, cells in zip(rows, metrics, strict=True)
        if {"precision", recall} <= {*cells}
    }
    return precision_and_recall(points, recall) if points else None
