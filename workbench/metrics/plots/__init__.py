"""Plotly figures of metrics, one function per figure, in colours for colour-blind readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.data.real_facts import TIERS as POPULARITY
from workbench.metrics import RATES, hacks
from workbench.types import JsonMapping, JsonObject
from workbench.world.facts import TIERS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

OUTCOME_COLOURS = {"accuracy": "#0072B2", "abstention": "#B8B8B8", "hallucination": "#E69F00"}
OUTCOME_NAMES = {"accuracy": "correct", "abstention": "abstained", "hallucination": "hallucinated"}
RUN_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
# when the colours are used up, they repeat with the next symbol
RUN_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
PERCENT = ".1~%"  # tick format of shares: 20%, 1.5%
FIFTHS: JsonObject = {"tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1], "tickformat": PERCENT}
# columns of training curves that are shares
SHARES = {*RATES, *hacks.SHARES} - {"sentences_per_fact"}


def write_pages(figures: Mapping[str, Figure], folder: Path) -> list[str]:
    """Write each figure as an HTML page into `folder` and return the paths of the pages.

    The figure "outcomes" is written to `folder`/outcomes.html. The folder also gets plotly's
    script, so that the pages work without a network.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        # one copy of the script for all pages: it has several megabytes
        figure.write_html(folder / f"{name}.html", include_plotlyjs="directory")
    return [str(folder / f"{name}.html") for name in figures]


def outcomes_by_tier(reports: Mapping[str, JsonMapping], mode: str = "greedy") -> Figure:
    """Plot stacked shares of outcomes: one panel per tier of questions, one bar per policy.

    A question about the generated closed world has a tier such as "known" or "unknown": how
    correctly the training documents state its facts. A question about a real country or city has
    the tier "top", "middle" or "rare", by population.

    Args:
        reports: label of a policy -> its report from `workbench evaluate`.
        mode: which answers of the report to plot, "greedy" or "sampled".
    """
    present = {tier for report in reports.values() for tier in report[mode]["by_tier"]}
    tiers = [tier for tier in (*TIERS, *POPULARITY) if tier in present]
    figure = side_by_side(["all", *tiers], 0.015)
    for column, tier in enumerate(["all", *tiers], 1):
        cells = [
            r[mode] if tier == "all" else r[mode]["by_tier"].get(tier) for r in reports.values()
        ]
        shares = {rate: [cell[rate]["value"] if cell else None for cell in cells] for rate in RATES}
        stack_outcomes(figure, column, list(reports), shares, f"%{{x}}, {tier}")
    figure.update_yaxes(range=[0, 1], tickformat=PERCENT)
    return styled(
        figure,
        panels=len(tiers) + 1,
        barmode="stack",
        title=f"Outcomes by exposure tier ({mode})",
        yaxis_title="share of answers",
    )


def side_by_side(titles: Sequence[str], spacing: float = 0.04) -> Figure:
    """Return a figure with empty panels in one row, one for each title, with a common y axis.

    Args:
        spacing: space between panels, as a share of the figure's width.
    """
    from plotly.subplots import make_subplots

    return make_subplots(
        1, len(titles), shared_yaxes=True, subplot_titles=titles, horizontal_spacing=spacing
    )


def stack_outcomes(
    figure: Figure,
    column: int,
    x: Sequence[str],
    shares: Mapping[str, Sequence[float | None]],
    hover: str = "%{x}",
) -> None:
    """Add stacked bars of correct, abstained and hallucinated shares to one panel of a figure.

    Args:
        column: number of the panel, from 1.
        x: label of each bar.
        shares: "accuracy", "abstention" and "hallucination" -> the share in each bar; None leaves
            a bar empty.
        hover: plotly's template for the first part of the hover label.
    """
    from plotly.graph_objects import Bar

    for rate, colour in OUTCOME_COLOURS.items():
        name = OUTCOME_NAMES[rate]
        bar = Bar(
            x=x,
            y=shares[rate],
            name=name,
            marker_color=colour,
            legendgroup=name,
            showlegend=column == 1,
            text=[f"{value:.0%}" if value and value >= 0.05 else "" for value in shares[rate]],
            textposition="inside",
            hovertemplate=f"{hover}: %{{y:.1%}} {name}<extra></extra>",
        )
        figure.add_trace(bar, 1, column)


def learning_curves(runs: Mapping[str, Sequence[JsonMapping]]) -> Figure:
    """Plot accuracy, abstention, hallucination and truthfulness of the rollouts over training.

    `runs` maps the label of a run to the rows of its metrics.jsonl.
    """
    return over_steps(runs, {rate: rate for rate in RATES}, "Rollouts during training")


def over_steps(
    runs: Mapping[str, Sequence[JsonMapping]], columns: Mapping[str, str], title: str
) -> Figure:
    """Plot training metrics over steps: a panel for each metric, a line for each run.

    A metric that has no value in any row gets no panel.

    Args:
        runs: label of a run -> its rows, each with a `step`, as in metrics.jsonl.
        columns: name of a metric in the rows -> title of its panel.
        title: the title of the figure.
    """
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    rows = [row for one in runs.values() for row in one]
    names = [name for name in columns if any(row.get(name) is not None for row in rows)]
    across = 2 if len(names) in (2, 4) else max(1, min(3, len(names)))
    down = max(1, -(-len(names) // across))  # rounded up
    # row and column of each panel
    places = [{"row": n // across + 1, "col": n % across + 1} for n in range(len(names))]
    spacing = {"horizontal_spacing": 0.08, "vertical_spacing": 0.16 if down < 3 else 0.1}
    figure = make_subplots(
        down, across, subplot_titles=[columns[name] for name in names], **spacing
    )
    for number, (label, own) in enumerate(runs.items()):
        # when the colours are used up, they repeat with the next kind of line
        repeat, colour = divmod(number, len(RUN_COLOURS))
        line = {"color": RUN_COLOURS[colour]}
        if repeat:
            line["dash"] = ("dash", "dot")[(repeat - 1) % 2]
        steps = [row["step"] for row in own]
        for panel, name in enumerate(names):
            trace = Scatter(
                x=steps,
                y=[row.get(name) for row in own],
                name=label,
                mode="lines",
                line=line,
                legendgroup=label,
                showlegend=panel == 0,
                hovertemplate=f"step %{{x}}: %{{y:.3f}}<extra>{label}</extra>",
            )
            figure.add_trace(trace, **places[panel])
    for name, place in zip(names, places, strict=True):
        if name in SHARES:
            figure.update_yaxes(tickformat=PERCENT, **place)
    for place in places[-across:]:  # only the lowest panels have an axis title
        figure.update_xaxes(title_text="step", **place)
    return styled(figure, panels=across, rows=down, title=title)


def precision_and_recall(points: Mapping[str, JsonMapping], recall: str) -> Figure:
    """Plot the precision of claims (y) against recall@K (x): a point for each policy.

    Args:
        points: label of a policy -> its metrics, `{metric: {value, low, high}}`, with "precision"
            and `recall`. Without `low` or `high`, the point has no error bar.
        recall: name of the metric on the x axis, such as "recall@6".
    """
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    for number, (label, cells) in enumerate(points.items()):
        axes = {"x": cells[recall], "y": cells["precision"]}
        point = Scatter(
            **{axis: [cell["value"]] for axis, cell in axes.items()},
            **{f"error_{axis}": _error_bars([cell]) for axis, cell in axes.items()},
            name=label,
            mode="markers",
            marker_color=RUN_COLOURS[number % len(RUN_COLOURS)],
            marker_symbol=RUN_SYMBOLS[number // len(RUN_COLOURS) % len(RUN_SYMBOLS)],
            marker_size=11,
        )
        figure.add_trace(point)
    return styled(
        figure,
        title="Precision and recall of claims",
        xaxis={"title": recall, "tickformat": PERCENT},
        yaxis={"title": "precision", "tickformat": PERCENT},
    )


def rates_with_intervals(reports: Mapping[str, JsonMapping], mode: str = "greedy") -> Figure:
    """Plot accuracy, abstention, hallucination and truthfulness of policies, with intervals.

    Args:
        reports: label of a policy -> its evaluation report.
        mode: which answers of the report to plot, "greedy" or "sampled".
    """
    from plotly.graph_objects import Bar, Figure

    figure = Figure()
    for (label, report), colour in zip(reports.items(), cycle(RUN_COLOURS), strict=False):
        cells = [report[mode][rate] for rate in RATES]
        bar = Bar(
            x=RATES,
            y=[cell["value"] for cell in cells],
            error_y=_error_bars(cells),
            name=label,
            marker_color=colour,
        )
        figure.add_trace(bar)
    return styled(
        figure,
        barmode="group",
        title=f"Rates with 95 % intervals ({mode})",
        yaxis={"title": "rate", "tickformat": PERCENT},
    )


def _error_bars(cells: Sequence[JsonMapping]) -> JsonObject:
    return {
        "array": [_distance(cell["value"], cell.get("high")) for cell in cells],
        "arrayminus": [_distance(cell.get("low"), cell["value"]) for cell in cells],
    }


def _distance(low: float | None, high: float | None) -> float | None:
    return None if low is None or high is None else high - low


def styled(
    figure: Figure, panels: int = 1, rows: int = 1, legend: bool = True, **layout: Any
) -> Figure:
    """Apply the common style to a figure and return it.

    The title is at the top of the figure. The legend is at the bottom, outside the panels. Without
    a `width`, a figure is as wide as the notebook's cell or the page.

    Args:
        panels: the number of panels in a row.
        rows: the number of rows of panels.
        legend: whether to leave space for a legend.
        layout: further arguments of plotly's `update_layout`.
    """
    figure.update_layout(**layout).update_layout(
        template="plotly_white",
        height=190 + 230 * rows if rows > 1 else 430,
        font_size=13,
        title={
            "x": 0.01,
            "xanchor": "left",
            "y": 0.98,
            "yref": "container",
            "yanchor": "top",
            "font_size": 17,
        },
        margin={"l": 70, "r": 24, "t": 84 if panels > 1 else 56, "b": 96 if legend else 64},
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0.01,
            "yref": "container",
            "yanchor": "bottom",
        },
        hoverlabel_align="left",
    )
    figure.update_annotations(yshift=5)  # moves panel titles away from the panels
    figure.update_xaxes(automargin=True, title_standoff=10)
    figure.update_yaxes(automargin=True, title_standoff=10)
    return figure
