"""What the tabs share: the page's script and style, components that the script draws, and
one-line errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

from workbench.inspector.token_view import as_json, script, style
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
    """Gradio's plainest theme with the system's fonts, so that nothing is loaded; `app.css` sets
    its colours.
    """
    import gradio as gr

    return gr.themes.Base(
        primary_hue="blue",
        neutral_hue="gray",
        text_size="md",
        radius_size="md",
        spacing_size="sm",
        font=("system-ui", "-apple-system", "Segoe UI", "sans-serif"),
        font_mono=("ui-monospace", "Menlo", "Consolas", "monospace"),
    )
