"""What the tabs share: the page's script and style, components that the script draws, and
one-line errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

from workbench.token_view import as_json, script, style
from workbench.types import WorkbenchError

HERE = Path(__file__).parent
SCRIPTS = (
    "app.js",
    "curves.js",
    "runs.js",
    "what_if.js",
    "answer.js",
    "beside.js",
    "annotate.js",
    "keys.js",
)
MOUNTS = ("Inspect", "Compare", "WhatIf", "Runs", "List", "Note", "Answer", "Annotate")


@cache
def head() -> str:
    """The style and script of the page, once for all components; the mounting functions are all
    that is left on the window.
    """
    own = "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    mounts = ", ".join(f"{name}: mount{name}" for name in MOUNTS)
    # In the head, not in gradio's `css`, which drops the rules it does not know (@container among
    # them).
    look = f"<style>{style()}{(HERE / 'app.css').read_text(encoding='utf-8')}</style>"
    return (
        f"{look}<script>window.workbench = (() => {{\n{script()}\n{own}\nreturn"
        f" {{{mounts}}};\n}})();</script>"
    )


def component(
    mount: str, value: Any = None, functions: tuple[Callable[[Any], Any], ...] = (), **more: Any
) -> Any:
    """A component that `mount<Name>` of the script draws from its value, which is JSON text and
    never becomes markup.
    """
    import gradio as gr

    assert mount in MOUNTS, mount
    start = (
        "window.workbench."
        + mount
        + "(element.querySelector('.wb-root'), {trigger, props, watch, server});"
    )
    return gr.HTML(
        value=None if value is None else as_json(value),
        html_template='<div class="wb-root"></div>',
        js_on_load=(
            f"(function go() {{ if (!window.workbench) return setTimeout(go, 20); {start} }})();"
        ),
        apply_default_css=False,
        server_functions=[_beside(function) for function in functions] or None,
        **more,
    )


def _beside(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    """The function in a thread of its own: gradio would call it where it serves everything else."""

    @wraps(function)
    async def call(request: Any) -> Any:
        return await asyncio.to_thread(function, request)

    return call


def message(error: WorkbenchError | None = None, note: str = "") -> str:
    """What a note component shows: an error, a remark or nothing."""
    return as_json(
        {"error": " ".join(str(error).split())} if error else {"note": note} if note else {}
    )


def answered(function: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """A function that the page calls: whatever goes wrong comes back as {"error": …}."""

    @wraps(function)
    def call(request: Any) -> dict[str, Any]:
        try:
            return function(request if isinstance(request, dict) else {})
        except WorkbenchError as error:
            return {"error": " ".join(str(error).split())}
        except OSError as error:  # a full disk, or a folder that may not be written
            reason = error.strerror or type(error).__name__
            return {
                "error": (
                    f"a file in the runs folder cannot be read or written ({reason}): mend that,"
                    " and try again"
                )
            }
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
        ) as error:  # a request that this page does not make
            return {"error": f"the request cannot be read ({type(error).__name__})"}

    return call


def told(**kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have gradio fill these arguments (`event="EventData"`, `request="Request"`), which it does
    by their annotations.

    Annotations are text in these modules, and gradio, imported late, is not among the names that
    they are looked up in.
    """
    import gradio as gr

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__annotations__.update({name: getattr(gr, kind) for name, kind in kinds.items()})
        return function

    return mark


def theme() -> Any:
    """Gradio's plainest theme in the colours of the token view, with the system's own fonts:
    nothing is loaded.
    """
    import gradio as gr

    base = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="gray",
        text_size="md",
        radius_size="md",
        spacing_size="sm",
        font=("system-ui", "-apple-system", "Segoe UI", "sans-serif"),
        font_mono=("ui-monospace", "Menlo", "Consolas", "monospace"),
    )
    look = {
        "body_background_fill": ("#fafbfc", "#101317"),
        "body_text_color": ("#1a1f26", "#e7eaee"),
        "body_text_color_subdued": ("#5b6470", "#a5aeb9"),
        "background_fill_primary": ("#ffffff", "#171b20"),
        "background_fill_secondary": ("#f5f6f8", "#1f242a"),
        "border_color_primary": ("#e2e5e9", "#2e343c"),
        "block_background_fill": ("transparent", "transparent"),
        "block_label_text_color": ("#5b6470", "#a5aeb9"),
        "block_title_text_color": ("#5b6470", "#a5aeb9"),
        "input_background_fill": ("#ffffff", "#171b20"),
        "input_border_color": ("#e2e5e9", "#2e343c"),
        "button_secondary_background_fill": ("#ffffff", "#171b20"),
        "button_secondary_background_fill_hover": ("#eef1f5", "#262c34"),
        "button_secondary_border_color": ("#e2e5e9", "#2e343c"),
        "button_primary_background_fill": ("#0072b2", "#0072b2"),
        "button_primary_background_fill_hover": ("#005f96", "#0a7fc2"),
        "button_primary_text_color": ("#ffffff", "#ffffff"),
        "checkbox_label_background_fill": ("#ffffff", "#171b20"),
        "checkbox_label_background_fill_selected": ("#e3eff7", "#12303f"),
        "checkbox_label_border_color": ("#e2e5e9", "#2e343c"),
        "checkbox_background_color_selected": ("#0072b2", "#0072b2"),
        "checkbox_border_color_selected": ("#0072b2", "#0072b2"),
        "slider_color": ("#0072b2", "#56b4e9"),
        "color_accent": ("#0072b2", "#56b4e9"),
        "color_accent_soft": ("#e3eff7", "#12303f"),
    }
    colours = {
        key: value
        for name, (light, dark) in look.items()
        for key, value in ((name, light), (f"{name}_dark", dark))
    }
    plain = {
        "block_border_width": "0px",
        "block_shadow": "none",
        "block_padding": "0",
        "block_label_background_fill": "transparent",
        "input_border_width": "1px",
        "checkbox_label_border_width": "1px",
    }
    button = {
        "button_secondary_border_width": "1px",
        "button_border_width": "1px",
        "button_large_text_weight": "500",
        "button_large_text_size": "14px",
        "button_large_padding": "7px 14px",
        "block_title_text_size": "12.5px",
        "block_title_text_weight": "500",
        "checkbox_label_padding": "5px 10px",
    }
    return base.set(
        **{
            name: value
            for name, value in {**colours, **plain, **button}.items()
            if hasattr(base, name)
        }
    )
