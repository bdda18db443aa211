"""Notebook controls. Everything shown is text: what comes from a model or a file is escaped, never rendered as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipywidgets import VBox


def browser(options: Sequence[str], describe: Callable[[str], Mapping[str, Any]], label: str = "show") -> VBox:
    """A search box over `options` with a panel that shows `describe(choice)` as it changes."""
    from ipywidgets import HTML, Combobox, Layout, VBox

    box = Combobox(options=list(options), value=options[0], description=label, ensure_option=True, layout=Layout(width="28em"))
    panel = HTML()

    def show(_: Any = None) -> None:
        if box.value in options:
            panel.value = as_html(describe(box.value))

    box.observe(show, "value")
    show()
    return VBox([box, panel])


def as_html(value: Any) -> str:
    """Nested mappings and sequences as escaped tables and lists."""
    if isinstance(value, Mapping):
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(str(k))}</th><td>{as_html(v)}</td></tr>" for k, v in value.items()
        )
        return f"<table>{rows}</table>"
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, Mapping) for item in value):
            head = "".join(f"<th>{escape(str(key))}</th>" for key in value[0])
            body = "".join("<tr>" + "".join(f"<td>{as_html(v)}</td>" for v in item.values()) + "</tr>" for item in value)
            return f"<table><tr>{head}</tr>{body}</table>"
        return "<br>".join(as_html(item) for item in value)
    return escape(str(value))
