"""Shared parts of the tabs: the page's script and style, components, and one-line errors."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from workbench.inspector.token_view import as_json, script, style
from workbench.types import JsonMapping, JsonObject, WorkbenchError

if TYPE_CHECKING:
    from gradio import HTML
    from gradio.themes import Base

ServerFunction = Callable[[object], JsonObject]  # called by the page with a JSON value
T = TypeVar("T")
HERE = Path(__file__).parent
SCRIPTS = "app.js curves.js runs.js what_if.js answer.js same_prompt.js annotate.js keys.js".split()
# options of gradio events: without a progress display, or with a small one
QUIET: JsonObject = {"api_visibility": "private", "show_progress": "hidden", "queue": False}
BUSY: JsonObject = {"api_visibility": "private", "show_progress": "minimal"}
MOUNTS = ("Inspect", "Compare", "WhatIf", "Runs", "List", "Note", "Answer", "Annotate")


@cache
def head() -> str:
    """Return the style and script of the page's head, which all components use.

    Only the mounting functions are global, as `window.workbench`.
    """
    own = "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    mounts = ", ".join(f"{name}: mount{name}" for name in MOUNTS)
    # in the head, because gradio's `css` drops rules that it does not know, such as @container
    look = f"<style>{style()}{(HERE / 'app.css').read_text(encoding='utf-8')}</style>"
    return (
        f"{look}<script>window.workbench = (() => {{\n{script()}\n{own}\nreturn"
        f" {{{mounts}}};\n}})();</script>"
    )


def component(
    mount: str, value: object = None, functions: tuple[ServerFunction, ...] = (), **options: object
) -> "HTML":
    """Return a component that the script's function `mount<Name>` draws.

    Its value is JSON text and never becomes markup. `functions` can be called by the script.
    """
    import gradio as gr

    assert mount in MOUNTS, mount
    start = (
        f"window.workbench.{mount}"
        "(element.querySelector('.wb-root'), {trigger, props, watch, server});"
    )
    return gr.HTML(
        value=None if value is None else as_json(value),
        html_template='<div class="wb-root"></div>',
        js_on_load=(
            f"(function go() {{ if (!window.workbench) return setTimeout(go, 20); {start} }})();"
        ),
        apply_default_css=False,
        server_functions=[_in_thread(function) for function in functions] or None,
        **options,
    )


def _in_thread(function: ServerFunction) -> Callable[[object], Awaitable[JsonObject]]:
    """Run the function in a thread of its own; gradio would block its event loop."""

    @wraps(function)
    async def call(request: object) -> JsonObject:
        return await asyncio.to_thread(function, request)

    return call


def message(error: WorkbenchError | None = None, note: str = "") -> str:
    """Return the value of a note component, as JSON text: an error, a note or nothing."""
    return as_json({"error": one_line(error)} if error else {"note": note} if note else {})


def one_line(error: Exception) -> str:
    """Return an error's message as one line, with its type unless it is a WorkbenchError."""
    text = " ".join(str(error).split())
    return text if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {text}"


def page_json(
    error_type: type[Exception] = WorkbenchError,
) -> Callable[[Callable[..., JsonMapping]], Callable[..., str]]:
    """Return a decorator for functions of the page.

    The decorated function returns its result as JSON text, or `{"error": …}` for an exception of
    `error_type`.
    """

    def decorate(function: Callable[..., JsonMapping]) -> Callable[..., str]:
        @wraps(function)
        def call(*arguments: object, **options: object) -> str:
            try:
                return as_json(function(*arguments, **options))
            except error_type as error:
                return as_json({"error": one_line(error)})

        return call

    return decorate


def server_function(function: Callable[[JsonObject], JsonObject]) -> ServerFunction:
    """Wrap a function that the page calls: return its errors as {"error": …}."""

    @wraps(function)
    def call(request: object) -> JsonObject:
        try:
            return function(request if isinstance(request, dict) else {})
        except WorkbenchError as error:
            return {"error": one_line(error)}
        except OSError as error:  # a full disk, or a folder without write permission
            reason = error.strerror or type(error).__name__
            words = f"a file in the runs folder cannot be read or written ({reason})"
            return {"error": f"{words}: fix that, and try again"}
        # a malformed request, which the page itself does not send
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            kind = type(error).__name__
            return {"error": f"the request cannot be read ({kind}): reload the page"}

    return call


def gradio_arguments(**kinds: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a decorator that annotates arguments which gradio fills, as in `event="EventData"`.

    Gradio finds them by their annotations, but cannot resolve the text annotations of these
    modules, which import gradio late.
    """
    import gradio as gr

    def annotate(function: Callable[..., T]) -> Callable[..., T]:
        function.__annotations__.update({name: getattr(gr, kind) for name, kind in kinds.items()})
        return function

    return annotate


def theme() -> "Base":
    """Gradio's base theme with system fonts, so that no font is loaded; `app.css` sets colours."""
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
