"""Figures of a policy's knowledge boundary, from the results of `workbench probe`."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from workbench.metrics import RATES
from workbench.metrics.boundary import SHARES
from workbench.metrics.plots import (
    OUTCOME_COLOURS,
    OUTCOME_NAMES,
    PERCENT,
    RUN_COLOURS,
    RUN_SYMBOLS,
    side_by_side,
    stack_outcomes,
    styled,
)
from workbench.types import JsonMapping

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SHARE_OF = dict(zip(RATES, SHARES, strict=False))
# more exposures than `MOST_BARS` are drawn in groups of `BAR_WIDTH`; exposure 0 has its own bar
MOST_BARS, BAR_WIDTH = 12, 4


def boundary_map(results: Mapping[str, JsonMapping]) -> "Figure":
    """Plot shares of outcomes by exposure, one panel per policy.

    A question may need several facts. Its exposure is the number of training documents that state
    the rarest of these facts. Many different exposures are drawn in groups.

    Args:
        results: label of a policy -> result of `workbench probe --bench tiny`. With another
            `--bench`, the exposure is not known, and the panel is empty.
    """
    figure = side_by_side([*results])
    for column, result in enumerate(results.values(), 1):
        groups = _grouped(result["exposure"] or {})
        x = [f"{count}<br>n = {row['n']}" for count, row in groups.items()]
        shares = {rate: [row[name] for row in groups.values()] for rate, name in SHARE_OF.items()}
        stack_outcomes(figure, column, x, shares)
    figure.update_xaxes(title_text="documents that state the fact", type="category")
    figure.update_yaxes(range=[0, 1], tickformat=PERCENT)
    return styled(
        figure,
        panels=len(results),
        barmode="stack",
        title="The boundary of knowledge",
        yaxis_title="share of samples",
    )


def _grouped(rows: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return rows by exposure, pooled over groups of exposures if there are many of them."""
    groups: dict[str, list[Mapping[str, float]]] = {}
    for count, row in rows.items():
        first = (int(count) - 1) // BAR_WIDTH * BAR_WIDTH + 1
        in_group = len(rows) > MOST_BARS and int(count) > 0
        name = f"{first}–{first + BAR_WIDTH - 1}" if in_group else count
        groups.setdefault(name, []).append(row)
    pooled = {}
    for name, members in groups.items():
        n = sum(row["n"] for row in members)
        shares = {share: sum(row["n"] * row[share] for row in members) / n for share in SHARES}
        pooled[name] = {"n": n, **shares}
    return pooled


def majority_at_k(results: Mapping[str, JsonMapping]) -> "Figure":
    """Plot the outcomes of majority answers against k, one panel per policy.

    The majority answer to a question is the most frequent one among its first k samples.

    Args:
        results: label of a policy -> result of `workbench probe`.
    """
    tables = [result["majority"] for result in results.values()]
    figure = _by_samples(results, tables, OUTCOME_COLOURS, OUTCOME_NAMES)
    return figure.update_layout(title="Majority of k samples", yaxis_title="share of questions")


def label_agreement(results: Mapping[str, JsonMapping]) -> "Figure":
    """Plot precision and recall of the label "out of knowledge" against k, one panel per policy.

    A question gets the label if its first k samples are all wrong or abstentions. The label is
    right if the question needs a fact that no training document states.

    Args:
        results: label of a policy -> result of `workbench probe --bench tiny`. With another
            `--bench`, the true labels are not known, and the panel is empty.
    """
    tables = [(result["agreement"] or {"by_k": {}})["by_k"] for result in results.values()]
    colours = dict(zip(("precision", "recall"), RUN_COLOURS, strict=False))
    title = "Out of knowledge: the label against the truth"
    figure = _by_samples(results, tables, colours, {})
    return figure.update_layout(title=title, yaxis_title="share of questions")


def _by_samples(
    results: JsonMapping,
    tables: Sequence[Mapping[str, Mapping[str, float]]],
    colours: Mapping[str, str],
    names: Mapping[str, str],
) -> "Figure":
    """Plot several shares against the number of samples, one panel per policy.

    Args:
        results: label of a policy -> its probe result; only the labels are used.
        tables: for each policy, {number of samples: {name of a share: its value}}.
        colours: name of a share -> colour of its line.
        names: name of a share -> its name in the legend, if the two differ.
    """
    from plotly.graph_objects import Scatter

    figure = side_by_side([*results])
    for column, table in enumerate(tables, 1):
        x = [int(k) for k in table]
        # lines also differ without colour
        for (share, colour), symbol in zip(colours.items(), RUN_SYMBOLS, strict=False):
            name = names.get(share, share)
            line = Scatter(
                x=x,
                y=[row[share] for row in table.values()],
                name=name,
                mode="lines+markers",
                marker_symbol=symbol,
                marker_size=9,
                line_color=colour,
                legendgroup=name,
                showlegend=column == 1,
                hovertemplate=f"%{{x}} samples: %{{y:.1%}} {name}<extra></extra>",
            )
            figure.add_trace(line, 1, column)
        ticks = {"tickvals": x, "ticktext": list(map(str, x))}
        figure.update_xaxes(title_text="samples", type="log", row=1, col=column, **ticks)
    figure.update_yaxes(range=[-0.03, 1.03], tickformat=PERCENT)
    return styled(figure, panels=len(results))


def risk_coverage(results: Mapping[str, JsonMapping]) -> "Figure":
    """Plot risk against coverage of the majority answers, one line per policy.

    Coverage is the share of answers that are given: those whose confidence reaches a threshold.
    Risk is the share of the given answers that are wrong. The confidence of a majority answer is
    the share of the question's samples that agree with it.

    Args:
        results: label of a policy -> result of `workbench probe`.
    """
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    for (label, result), colour in zip(results.items(), cycle(RUN_COLOURS), strict=False):
        points = result["risk_coverage"]
        area = "" if result["aurc"] is None else f", AURC {result['aurc']:.3f}"
        line = Scatter(
            x=[point["coverage"] for point in points],
            y=[point["risk"] for point in points],
            text=[f"confidence ≥ {point['threshold']:.2f}" for point in points],
            name=f"{label}{area}",
            showlegend=True,
            mode="lines+markers",
            marker_size=5,
            line_color=colour,
            hovertemplate="%{text}: %{x:.0%} answered, %{y:.1%} of those wrong<extra></extra>",
        )
        figure.add_trace(line)
    coverage, risk = "coverage: share of the answers that are given", "risk: share of those that"
    return styled(
        figure,
        title="Risk and coverage of the majority's answers",
        xaxis={"title": coverage, "range": [0, 1.03], "tickformat": PERCENT},
        yaxis={"title": f"{risk} are wrong", "rangemode": "tozero", "tickformat": PERCENT},
    )
