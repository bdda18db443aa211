"""The figures 4 to 9 of RLFH (arXiv 2406.12221), from feedback before and after training.

`workbench.metrics.distributions` computes the numbers and defines the terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, cycle
from typing import TYPE_CHECKING, Any

from workbench.metrics import Row
from workbench.metrics import distributions as tables
from workbench.metrics.plots import (
    FIFTHS,
    PERCENT,
    RUN_COLOURS,
    RUN_SYMBOLS,
    side_by_side,
    styled,
)
from workbench.types import JsonMapping, JsonObject

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

WHEN = ("before", "after")


def figures(
    before: Sequence[Row], after: Sequence[Row], names: Sequence[str] = WHEN
) -> dict[str, Figure]:
    """Return RLFH's figures 4 to 9 as a dict from name, such as "fig4_accuracy", to figure.

    Args:
        before: graded responses before training, as read by `metrics.read_rows`.
        after: graded responses to the same questions after training.
        names: labels for `before` and `after`; by default "before" and "after".
    """
    plots = {
        "fig4_accuracy": accuracy_distribution,
        "fig5_accuracy_and_claims": accuracy_and_claims,
        "fig6_claims_per_response": claims_per_response,
        "fig7_claims_by_accuracy": claims_by_accuracy,
    }
    return {
        **{name: plot(before, after, names=names) for name, plot in plots.items()},
        "fig8_refusal": refusal_by_accuracy(before, after),
        "fig9_trade_off": trade_off({names[0]: before, names[1]: after}),
    }


def accuracy_distribution(*rows: Sequence[Row], names: Sequence[str] = WHEN) -> Figure:
    """Plot RLFH's figure 4: the distribution of accuracy over responses that were not refused.

    The accuracy of a response is the share of its claims that are supported.

    Args:
        rows: for each policy, its graded responses.
        names: the label of each policy; by default "before" and "after".
    """
    from plotly.graph_objects import Bar, Figure

    figure = Figure()
    for group, style in _each(rows, names):
        table = tables.accuracy_distribution(group)
        figure.add_trace(Bar(x=_labels(table), y=_column(table, "share"), **style))
    return styled(
        figure,
        barmode="group",
        title="Claim accuracy of responses",
        xaxis_title="share of a response's claims that are supported",
        yaxis={"title": "share of responses", "tickformat": PERCENT},
    )


def accuracy_and_claims(*rows: Sequence[Row], names: Sequence[str] = WHEN) -> Figure:
    """Plot RLFH's figure 5: the joint distribution of accuracy and number of claims.

    The accuracy of a response is the share of its claims that are supported. Each policy has its
    own panel.

    Args:
        rows: for each policy, its graded responses.
        names: the label of each policy; by default "before" and "after".
    """
    from plotly.graph_objects import Histogram2d

    figure = side_by_side(names[: len(rows)])
    for column, group in enumerate(rows, 1):
        points = tables.accuracy_and_claims(group)
        trace = Histogram2d(
            x=_column(points, "accuracy"),
            y=_column(points, "claims"),
            xbins={"start": -0.05, "end": 1.05, "size": 0.1},
            ybins={"start": 0.5, "size": 1},
            histnorm="probability",
            coloraxis="coloraxis",
            hovertemplate="accuracy %{x}, %{y} claims: %{z:.1%} of responses<extra></extra>",
        )
        figure.add_trace(trace, 1, column)
    figure.update_xaxes(title_text="accuracy", range=[-0.05, 1.05], showgrid=False, **FIFTHS)
    figure.update_yaxes(tickformat="d", showgrid=False)
    bar = {"title": {"text": "share of<br>responses"}, "thickness": 14, "tickformat": PERCENT}
    return styled(
        figure,
        panels=2,
        legend=False,
        title="Accuracy and number of claims",
        yaxis_title="claims in the response",
        coloraxis={"colorscale": "Blues", "cmin": 0, "colorbar": bar},
    )


def claims_per_response(*rows: Sequence[Row], names: Sequence[str] = WHEN) -> Figure:
    """Plot RLFH's figure 6: the distributions of all, correct and wrong claims per response.

    Args:
        rows: for each policy, its graded responses.
        names: the label of each policy; by default "before" and "after".
    """
    from plotly.graph_objects import Bar

    figure = side_by_side([f"{which} claims" for which in tables.COUNTS], 0.03)
    for column, which in enumerate(tables.COUNTS, 1):
        for group, style in _each(rows, names):
            table = tables.claims_per_response(group, which)
            x, y = _column(table, "claims"), _column(table, "share")
            style |= {"legendgroup": style["name"], "showlegend": column == 1}
            figure.add_trace(Bar(x=x, y=y, **style), 1, column)
    figure.update_xaxes(title_text="claims in the response", tickformat="d")
    figure.update_yaxes(tickformat=PERCENT)
    return styled(
        figure,
        panels=3,
        barmode="group",
        title="Claims per response",
        yaxis_title="share of responses",
    )


def claims_by_accuracy(*rows: Sequence[Row], names: Sequence[str] = WHEN) -> Figure:
    """Plot RLFH's figure 7: the number of claims by accuracy of the response, as box plots.

    The accuracy of a response is the share of its claims that are supported.

    Args:
        rows: for each policy, its graded responses.
        names: the label of each policy; by default "before" and "after".
    """
    from plotly.graph_objects import Box, Figure

    figure = Figure()
    for group, style in _each(rows, names):
        table = tables.claims_by_accuracy(group)
        counts = _column(table, "claims")
        x = [label for label, bin in zip(_labels(table), counts, strict=True) for _ in bin]
        figure.add_trace(Box(x=x, y=list(chain(*counts)), boxmean=True, **style))
    order = {"categoryorder": "array", "categoryarray": _labels(tables.claims_by_accuracy(()))}
    return styled(
        figure,
        boxmode="group",
        title="Claims per response by accuracy",
        xaxis={"title": "share of claims that are supported", **order},
        yaxis_title="claims",
    )


def refusal_by_accuracy(before: Sequence[Row], after: Sequence[Row]) -> Figure:
    """Plot RLFH's figure 8: the share of refusals after training by accuracy before training.

    The accuracy of a response is the share of its claims that are supported.

    Args:
        before: graded responses before training.
        after: graded responses to the same questions after training.
    """
    from plotly.graph_objects import Bar, Figure

    table = tables.refusal_by_accuracy(before, after)
    bar = Bar(
        x=_labels(table),
        y=_column(table, "refused"),
        text=[f"n = {row['questions']}" if row["questions"] else "" for row in table],
        textposition="outside",
        cliponaxis=False,
        marker_color=RUN_COLOURS[0],
        hovertemplate="accuracy %{x} before: %{y:.1%} refused<extra></extra>",
    )
    return styled(
        Figure(bar),
        legend=False,
        title="Refusals after training",
        xaxis_title="accuracy before training of n questions' responses",
        yaxis={"title": "share of responses refused", "range": [0, 1.06], **FIFTHS},
    )


def trade_off(runs: Mapping[str, Sequence[Row]]) -> Figure:
    """Plot RLFH's figure 9: mean accuracy (y) against mean number of claims per response (x).

    The figure has a line for each run, with a point for each step. The paper calls the accuracy
    truthfulness, and the number of claims helpfulness.

    Args:
        runs: label of a run -> its graded responses. Responses without a step make one point.
    """
    return _trade_off(tables.trade_off(runs), list(runs))


def trade_off_in_training(runs: Mapping[str, Sequence[JsonMapping]]) -> Figure:
    """Plot RLFH's figure 9 from the metrics that runs logged in training.

    The x axis is the mean number of correct and wrong claims per response. The y axis is the share
    of these claims that are correct. Refusals count as responses without claims.

    Args:
        runs: label of a run -> rows with `step`, `claims_correct` and `claims_wrong`. The last two
            are mean numbers of claims per response.
    """
    points = [
        {
            "run": label,
            "step": row["step"],
            "claims": claims,
            "accuracy": row["claims_correct"] / claims,
        }
        for label, rows in runs.items()
        for row in rows
        if (claims := (row["claims_correct"] or 0) + (row["claims_wrong"] or 0))
    ]
    return _trade_off(points, list(runs))


def _trade_off(points: Sequence[JsonMapping], runs: Sequence[str]) -> Figure:
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    for number, label in enumerate(runs):
        run_points = [point for point in points if point["run"] == label]
        line = Scatter(
            x=_column(run_points, "claims"),
            y=_column(run_points, "accuracy"),
            text=["" if step is None else f"step {step}" for step in _column(run_points, "step")],
            name=label,
            mode="lines+markers",
            marker_color=RUN_COLOURS[number % len(RUN_COLOURS)],
            # a larger marker for the last step shows the direction of the run
            marker_size=[7] * (len(run_points) - 1) + [13] * bool(run_points),
            marker_symbol=RUN_SYMBOLS[number // len(RUN_COLOURS) % len(RUN_SYMBOLS)],
            hovertemplate="%{text} %{x:.2f} claims, accuracy %{y:.1%}",
        )
        figure.add_trace(line)
    x, y = _around(_column(points, "claims"), 1.0), _around(_column(points, "accuracy"), 0.1)
    supported = {"title": "share of claims that are supported", "tickformat": PERCENT}
    styled(
        figure,
        title="Truthfulness against helpfulness",
        xaxis={"title": "claims per response", "range": x},
        yaxis={**supported, "range": y},
    )
    if len(runs) > len(RUN_COLOURS):  # a long legend does not fit below the panel
        legend = {"orientation": "v", "x": 1.02, "y": 1, "yref": "paper", "yanchor": "top"}
        figure.update_layout(legend=legend, margin_b=64, height=max(430, 120 + 20 * len(runs)))
    return figure


def _around(values: Sequence[float], least: float) -> list[float] | None:
    """Return an axis range [low, high] with a margin of at least `least` around the values.

    The margin keeps small differences from looking large. For values that are not negative, `low`
    is at most slightly below 0. Return None without values.
    """
    if not values:
        return None
    space = max(least, 0.1 * (max(values) - min(values)))
    return [max(0.0, min(values) - space) - 0.02 * space, max(values) + space]


def _labels(table: Sequence[JsonMapping]) -> list[str]:
    return [f"{row['low']:.0%}–{row['high']:.0%}" for row in table]


def _column(table: Sequence[JsonMapping], name: str) -> list[Any]:
    return [row[name] for row in table]


def _each(
    rows: Sequence[Sequence[Row]], names: Sequence[str]
) -> list[tuple[Sequence[Row], JsonObject]]:
    """Return a pair (rows, name and colour for plotly) for each policy."""
    return [
        (group, {"name": name, "marker_color": colour})
        for group, name, colour in zip(rows, names, cycle(RUN_COLOURS), strict=False)
    ]
