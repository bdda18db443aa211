import pytest

pytest.importorskip("ipywidgets", reason="the notebooks extra is not installed")

from workbench.widgets import as_html, browser


def test_the_panel_follows_the_choice():
    box, panel = browser(["a", "b"], lambda name: {"name": name, "facts": [{"relation": "r", "object": name * 3}]}).children
    assert "aaa" in panel.value
    box.value = "b"
    assert "bbb" in panel.value and "aaa" not in panel.value


def test_hostile_text_stays_text():
    html = as_html({"<b>": ["<script>alert(1)</script>", {"x": "<img src=x onerror=y>"}], "rows": [{"a": "<i>"}]})
    assert "<script" not in html and "<img" not in html and "<i>" not in html and "<b>" not in html
