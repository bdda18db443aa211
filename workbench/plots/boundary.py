"""The boundary of a policy's knowledge, from results of `workbench probe`: one function per
figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.metrics import RATES
from workbench.metrics.boundary import SHARES
from workbench.plots import OUTCOME_COLOURS, OUTCOME_NAMES, RUN_COLOURS, styled

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SHARE_OF = dict(zip(RATES, SHARES, strict=False))
SYMBOLS = ("circle", "square", "diamond")  # so that lines are told apart without their colours, too


def boundary_map(results: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Shares of correct, abstaining and wrong samples by how many documents state the fact; one
    panel for each policy.

    `results` maps a label to what a probe on the tiny bench found; several, as before and after
    training, stand side by side.
    """
    from plotly.graph_objects import Bar

    figure = _panels(results)
    for column, result in enumerate(results.values(), 1):
        groups = result["exposure"] or {}
        x = [f"{count}<br>n = {row['n']}" for count, row in groups.items()]
        for rate, colour in OUTCOME_COLOURS.items():
            name, y = OUTCOME_NAMES[rate], [row[SHARE_OF[rate]] for row in groups.values()]
            text = [f"{value:.2f}" if value and value >= 0.05 else "" for value in y]
            style = {
                "text": text,
                "textposition": "inside",
                "legendgroup": name,
                "showlegend": column == 1,
            }
            hover = f"%{{x}}: %{{y:.3f}} {name}<extra></extra>"
            figure.add_trace(
                Bar(x=x, y=y, name=name, marker_color=colour, hovertemplate=hover, **style),
                1,
                column,
            )
    figure.update_xaxes(title_text="documents that state the fact", type="category")
    figure.update_yaxes(range=[0, 1])
    figure.update_layout(
        barmode="stack", title="The boundary of knowledge", yaxis_title="share of samples"
    )
    return styled(figure, panels=len(results))


def majority_at_k(results: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Outcomes of the answer that most of k samples give, against k; one panel for each policy."""
    from plotly.graph_objects import Scatter

    figure = _panels(results)
    for column, result in enumerate(results.values(), 1):
        x = [int(k) for k in result["majority"]]
        for (rate, colour), symbol in zip(OUTCOME_COLOURS.items(), SYMBOLS, strict=True):
            name, y = OUTCOME_NAMES[rate], [row[rate] for row in result["majority"].values()]
            style = {
                "mode": "lines+markers",
                "marker_symbol": symbol,
                "marker_size": 9,
                "line_color": colour,
            }
            hover = f"majority of %{{x}}: %{{y:.3f}} {name}<extra></extra>"
            shown = {"legendgroup": name, "showlegend": column == 1, "hovertemplate": hover}
            figure.add_trace(Scatter(x=x, y=y, name=name, **style, **shown), 1, column)
        _of_samples(figure, x, row=1, col=column)
    figure.update_yaxes(range=[-0.03, 1.03])
    figure.update_layout(title="Majority of k samples", yaxis_title="share of questions")
    return styled(figure, panels=len(results))


def label_agreement(results: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Precision and recall of the label "out of knowledge" against k; one panel for each policy."""
    from plotly.graph_objects import Scatter

    figure = _panels(results)
    for column, result in enumerate(results.values(), 1):
        by_k = (result["agreement"] or {"by_k": {}})["by_k"]
        x = [int(k) for k in by_k]
        for name, colour, symbol in zip(
            ("precision", "recall"), RUN_COLOURS, SYMBOLS, strict=False
        ):
            style = {
                "mode": "lines+markers",
                "marker_symbol": symbol,
                "marker_size": 9,
                "line_color": colour,
            }
            hover = f"%{{x}} samples: %{{y:.3f}} {name}<extra></extra>"
            shown = {"legendgroup": name, "showlegend": column == 1, "hovertemplate": hover}
            figure.add_trace(
                Scatter(x=x, y=[row[name] for row in by_k.values()], name=name, **style, **shown),
                1,
                column,
            )
        _of_samples(figure, x, row=1, col=column)
    figure.update_yaxes(range=[-0.03, 1.03])
    figure.update_layout(
        title="Out of knowledge: the label against the truth", yaxis_title="share of questions"
    )
    return styled(figure, panels=len(results))


def risk_coverage(results: Mapping[str, Mapping[str, Any]]) -> Figure:
    """The share of wrong answers among the most confident ones, against how many those are; a
    line for each policy.
    """
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    for (label, result), colour in zip(results.items(), RUN_COLOURS, strict=False):
        points = result["risk_coverage"]
        x, y = [point["coverage"] for point in points], [point["risk"] for point in points]
        least = [f"confidence ≥ {point['threshold']:.2f}" for point in points]
        hover = "%{text}: %{x:.2f} answered, %{y:.3f} of those wrong<extra></extra>"
        area = "" if result["aurc"] is None else f", AURC {result['aurc']:.3f}"
        style = {
            "mode": "lines+markers",
            "marker_size": 5,
            "line_color": colour,
            "text": least,
            "hovertemplate": hover,
        }
        figure.add_trace(Scatter(x=x, y=y, name=f"{label}{area}", showlegend=True, **style))
    figure.update_xaxes(title_text="coverage: share of the answers that are given", range=[0, 1.03])
    figure.update_yaxes(title_text="risk: share of those that are wrong", rangemode="tozero")
    figure.update_layout(title="Risk and coverage of the majority's answers")
    return styled(figure)


def _panels(results: Mapping[str, Any]) -> Any:
    from plotly.subplots import make_subplots

    return make_subplots(
        1, len(results), shared_yaxes=True, subplot_titles=list(results), horizontal_spacing=0.04
    )


def _of_samples(figure: Any, sizes: list[int], **place: int) -> None:
    figure.update_xaxes(
        title_text="samples", type="log", tickvals=sizes, ticktext=list(map(str, sizes)), **place
    )
