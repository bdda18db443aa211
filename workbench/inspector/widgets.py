"""Widgets for notebooks. Text from models and files is escaped, never rendered as HTML."""

import json
import os
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from workbench.inspector.controls import controls
from workbench.inspector.opened import with_rewards
from workbench.inspector.token_view import PICTURES, VIEW, as_json, payload, script, style
from workbench.inspector.what_if import changed, differences
from workbench.methods import method_configs
from workbench.types import Feedback, JsonMapping, WorkbenchError

if TYPE_CHECKING:
    from anywidget import AnyWidget
    from ipywidgets import VBox, Widget


def token_view(
    feedback: Feedback, method: str | None = None, group: Sequence[Feedback] = ()
) -> "AnyWidget":
    """Return a notebook widget that shows a response with the rewards of its claims and tokens.

    The widget's attribute `selected` is what the user clicked last: `{"claim": id or None, "token":
    position or None}`. Its method `show` draws another response.

    Args:
        method: the method whose rewards are shown first; None: the first of `feedback.rewards`.
        group: the responses to the same prompt, to compute advantages.
    """
    widget = _token_view_class()()
    widget.show(feedback, method, group)
    return widget


@cache
def _token_view_class() -> "type[AnyWidget]":
    from anywidget import AnyWidget
    from traitlets import Dict, Unicode

    class TokenView(AnyWidget):
        _esm = f"{script()}\n{_RENDER}"
        _css = style()
        data = Unicode("null").tag(sync=True)  # JSON text, as in the app
        selected = Dict().tag(sync=True)
        summary = ""

        def show(
            self, feedback: Feedback, method: str | None = None, group: Sequence[Feedback] = ()
        ) -> None:
            view = payload(feedback, method, group)
            self.summary = (
                f"{view['id']}, {view['method']}, {len(view['tokens'])} tokens,"
                f" {len(view['claims'])} claims"
            )
            self.data = as_json(view)

        def __repr__(self) -> str:  # without the data and random ids
            return f"TokenView({self.summary})"

        def _repr_mimebundle_(self, **kwargs: object) -> object:
            """Add the data to the output's metadata when `make notebooks` draws pictures of it."""
            bundle = super()._repr_mimebundle_(**kwargs)
            if bundle is None or not os.environ.get(PICTURES):
                return bundle
            data, metadata = bundle
            return data, {**metadata, VIEW: json.loads(self.data)}

    return TokenView


_RENDER = """
function render({model, el}) {
  const onSelect = (selected) => { model.set("selected", selected); model.save_changes(); };
  const view = tokenView(el, {onSelect});
  const draw = () => view.update(JSON.parse(model.get("data")));
  model.on("change:data", draw);
  draw();
}
export default {render};
"""


def what_if(
    feedback: Feedback,
    method: str = "rlfh",
    group: Sequence[Feedback] = (),
    fields: Sequence[str] = (),
) -> "VBox":
    """Return a notebook widget to change the settings of a method's reward.

    The widget shows the reward, a control for each setting, and the token view. Changing a setting
    recomputes the rewards from the stored verdicts.

    Args:
        group: the responses to the same prompt, to compute advantages.
        fields: names of the settings that get a control; () selects all.
    """
    from ipywidgets import HTML, VBox

    config = method_configs((method,))[method]
    boxes = {
        item["name"]: _box(item)
        for item in controls(config)
        if not fields or item["name"] in fields
    }
    message, view = HTML(), token_view(with_rewards(feedback, {method: config}), method, group)

    def show(_: object = None) -> None:
        changes = {name: _value(box) for name, box in boxes.items() if _value(box) != box.start}
        try:
            configs = changed({method: config}, {method: changes})
            row = with_rewards(feedback, configs)
        except WorkbenchError as error:
            message.value = escape(str(error))
            return
        reward = row.rewards[method]
        message.value = escape(
            f"{method}: {'not scored' if reward.value is None else f'{reward.value:+.4f}'} "
            f" {' '.join(differences(method, configs[method]))}"
        )
        view.show(
            row,
            method,
            [
                row if member.response.id == row.response.id else with_rewards(member, configs)
                for member in group
            ],
        )

    for box in boxes.values():
        box.observe(show, "value")
    show()
    return VBox([message, VBox(list(boxes.values())), view])


def _box(control: JsonMapping) -> "Widget":
    """Return an ipywidgets control for a setting; its attribute `start` is its initial value."""
    from ipywidgets import Checkbox, Dropdown, FloatSlider, Layout

    shared = {
        "description": control["label"],
        "style": {"description_width": "11em"},
        "layout": Layout(width="30em"),
    }
    value = control["value"]
    if control["kind"] == "choice":
        box = Dropdown(options=control["options"], value=str(value), **shared)
    elif control["kind"] == "flag":
        box = Checkbox(value=value, **shared)
    else:  # an unset optional number is at its minimum, and not applied until it is moved
        box = FloatSlider(
            value=control["min"] if value is None else value,
            min=control["min"],
            max=control["max"],
            step=control["step"],
            **shared,
        )
    box.start = _value(box)
    return box


def _value(box: "Widget") -> object:
    """Return the value of a control; floats are rounded, because sliders add rounding errors."""
    return round(box.value, 6) if isinstance(box.value, float) else box.value
