"""Write the page of `workbench compare --html`: tables and figures in one self-contained file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from workbench.metrics import RATES
from workbench.metrics.marks import NOT_SHARES
from workbench.metrics.plots import learning_curves, outcomes_by_tier, precision_and_recall
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import read_json
from workbench.types import JsonMapping, WorkbenchError

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
COSTS = ("run_seconds", "seconds", "calls", "cached", "tokens_in", "tokens_out")


def write_page(result: JsonMapping, out: Path) -> None:
    """Write the result of `compare` as one self-contained HTML file of about 5 MB.

    In figures by tier or by step, a row is represented by its first seed.

    Raises:
        WorkbenchError: the file cannot be written.
    """
    rows = result["rows"]
    sets = dict.fromkeys(key for row in rows for key in row["metrics"])
    tables = [_table(key, rows, result) for key in sets]
    if paired := _paired(result):
        tables.insert(1, paired)
    tables += [_settings(result["differences"])] if result["differences"] else []
    names = [row["name"] for row in rows]
    page = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=f"Comparison of {len(rows)} rows",
        about=(
            "A row is a policy; runs that differ only in their seed are one row. Shares are in"
            " percent, with 95 % intervals over questions and seeds; figures by tier or step show"
            " the first seed. Rows: "
            + ", ".join(f"<code>{escape(name)}</code>" for name in names)
            + "."
        ),
        tables="\n".join(tables),
        figures="\n".join(_figures(rows)),
    )
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise WorkbenchError(
            f"cannot write {out}: {error.strerror}; name a writable file with --html"
        ) from error


def _table(key: str, rows: Sequence[JsonMapping], result: JsonMapping) -> str:
    """Return the HTML table of the question set `key`: a row for each policy, with its cost."""
    cells = {}
    for row in rows:
        if key in row["metrics"]:
            cost = {} if "before" in key else row["cost"]
            costs = {name: {"value": value} for name, value in cost.items()}
            cells[row["name"]] = {**row["metrics"][key], **costs}
    columns = _columns(cells.values())
    shown = [name for name in columns if name in SHOWN or "@" in name]
    best = {name: _best(name, cells) for name in columns}
    head = "".join(
        f'<th class="{"" if name in shown else "more"}">{escape(name)}</th>' for name in columns
    )
    paths = {row["name"]: row["runs"][0] for row in rows}
    lines = [
        f'<td title="workbench inspect --run {escape(paths[name])}">{escape(name)}</td>'
        + "".join(
            _cell(column, metrics.get(column), best[column], column in shown) for column in columns
        )
        for name, metrics in cells.items()
    ]
    return _html(f"Questions: {key}", f"<th>row</th>{head}", lines)


def _columns(tables: Iterable[JsonMapping]) -> list[str]:
    """Return the names of all metrics in `tables`. Metrics in `SHOWN` come first."""
    names = dict.fromkeys(name for metrics in tables for name in metrics)
    return sorted(names, key=lambda name: SHOWN.index(name) if name in SHOWN else len(SHOWN))


def _best(name: str, cells: Mapping[str, JsonMapping]) -> float | None:
    """Return the best value of a metric, which is shaded in its column.

    Return None if all values are equal, or if the page does not shade this metric.
    """
    values = [metrics[name]["value"] for metrics in cells.values() if name in metrics]
    if len(set(values)) < 2 or not (name in (*HIGH_IS_BEST, *LOW_IS_BEST) or "@" in name):
        return None
    return min(values) if name in LOW_IS_BEST else max(values)


def _cell(name: str, cell: JsonMapping | None, best: float | None, shown: bool) -> str:
    if cell is None:
        return f'<td class="{"" if shown else "more"}">–</td>'
    share = name not in (*NOT_SHARES, *COSTS)
    digits, scale = (1, 100) if share else (0 if abs(cell["value"]) > 100 else 1, 1)
    value, *bounds = (
        f"{scale * cell[key]:,.{digits}f}"
        for key in ("value", "low", "high")
        if cell.get(key) is not None
    )
    interval = f"<small>[{', '.join(bounds)}]</small>" if bounds else ""
    classes = f"{'' if shown else 'more '}{'best' if cell['value'] == best else ''}".strip()
    return f'<td class="{classes}" data-value="{cell["value"]}">{value}{interval}</td>'


def _paired(result: JsonMapping) -> str:
    """Return the HTML table of paired differences to the baseline; "" without differences."""
    pairs = {
        name: tests for name, tests in result.get("paired", {}).items() if "reason" not in tests
    }
    columns = [name for name in _columns(pairs.values()) if name in SHOWN or "@" in name]
    lines = [
        f"<td>{escape(name)}</td>"
        + "".join(
            _cell(column, {**tests[column], "value": tests[column]["diff"]}, None, shown=True)
            if column in tests
            else "<td>–</td>"
            for column in columns
        )
        for name, tests in pairs.items()
    ]
    title = f"Differences to {result.get('against')}, paired by question and seed"
    return _html(title, _heads("row", *columns), lines) if columns else ""


def _settings(differences: Mapping[str, JsonMapping]) -> str:
    names = list(dict.fromkeys(name for values in differences.values() for name in values))
    lines = [
        f"<td><code>{escape(key)}</code></td>"
        + "".join(f"<td>{escape(str(values.get(name, '')))}</td>" for name in names)
        for key, values in differences.items()
    ]
    return _html("Settings that differ", _heads("setting", *names), lines)


def _heads(*names: str) -> str:
    return "".join(f"<th>{escape(name)}</th>" for name in names)


def _html(title: str, head: str, lines: Sequence[str]) -> str:
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<h2>{escape(title)}</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _figures(rows: Sequence[JsonMapping]) -> Iterator[str]:
    """Yield the page's figures as HTML, without figures that have no data.

    The first figure contains plotly's JavaScript code.
    """
    folders = {row["name"]: Path(row["runs"][0]) for row in rows if row["method"]}
    summaries = {name: read_json(folder / "summary.json") or {} for name, folder in folders.items()}
    reports = {
        escape(name): summary["after"]
        for name, summary in summaries.items()
        if (summary["after"]["greedy"].get("accuracy") or {}).get("value") is not None
    }
    figures = []
    if reports:
        kept = [one.get("before") for name, one in summaries.items() if escape(name) in reports]
        start = {"before training": kept[0]} if kept[0] else {}
        figures.append(outcomes_by_tier({**start, **reports}))
    points: dict[str, JsonMapping] = {
        escape(row["name"]): next(iter(row["metrics"].values()), {}) for row in rows
    }
    recalls = [name for cells in points.values() for name in cells if name.startswith("recall@")]
    points = {
        name: cells for name, cells in points.items() if {"precision", *recalls[:1]} <= cells.keys()
    }
    if recalls and points:
        figures.append(precision_and_recall(points, recalls[0]))
    curves = {escape(name): metrics_rows(folder) for name, folder in folders.items()}
    if curves:
        figures.append(learning_curves(curves))
    for number, figure in enumerate(figures):
        html = figure.to_html(
            full_html=False,
            include_plotlyjs=number == 0,
            config={"responsive": True, "displayModeBar": False},
        )
        yield f'<div class="figure">{html}</div>'
