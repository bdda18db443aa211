import json

import pytest

pytest.importorskip("ipywidgets", reason="the notebooks extra is not installed")
pytest.importorskip("anywidget", reason="the notebooks extra is not installed")

from workbench.inspector.examples import worked_example
from workbench.inspector.token_view import PICTURES, VIEW
from workbench.inspector.widgets import token_view, what_if
from workbench.methods import method_configs, reward_fns
from workbench.pipeline import rescore


def test_the_token_view_shows_a_response(monkeypatch):
    row = worked_example()
    widget = token_view(rescore(row, reward_fns(method_configs(("rlfh",)))), "rlfh")
    assert repr(widget) == "TokenView(tarven/0, rlfh, 41 tokens, 4 claims)"
    assert json.loads(widget.data)["methods"]["rlfh"]["value"] == pytest.approx(1.65509, abs=1e-5)
    widget.show(row)
    assert json.loads(widget.data)["methods"] == {}
    # other notebooks do not store the data twice
    assert VIEW not in widget._repr_mimebundle_()[1]
    monkeypatch.setenv(PICTURES, "1")
    data, output = widget._repr_mimebundle_()
    assert output[VIEW] == json.loads(widget.data) and data["text/plain"].startswith(
        "TokenView(tarven/0"
    )
    # compared when notebooks are replayed
    assert set(data) == {"text/plain", "application/vnd.jupyter.widget-view+json"}


def test_sliders_recompute_rewards():
    output, controls, view = what_if(worked_example(), "rlfh").children
    box = {control.description: control for control in controls.children}
    assert output.value == "rlfh: +1.6551  "
    box["alpha"].value = 2.0  # 2·(−0.25) + 1.9051
    assert output.value == "rlfh: +1.4051  rlfh.alpha=2"
    assert json.loads(view.data)["methods"]["rlfh"]["value"] == pytest.approx(1.40509, abs=1e-5)
    box["alpha"].value = 1.0
    box["f(wrong)"].value = -1.0  # the wrong claim of weight 1.0 costs one unit less
    assert output.value == "rlfh: +2.6551  rlfh.f_wrong=-1"


def test_an_invalid_setting_is_an_error():
    output, controls, view = what_if(
        worked_example(), "klcf", fields=("w_check", "w_truth")
    ).children
    before = view.data
    for control in controls.children:
        control.value = 0.0
    assert "at least one above 0" in output.value
    assert json.loads(view.data)["methods"]["klcf"]["value"] is not None
    assert len(controls.children) == 2 and before
