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
    """Return the page's style and script, as HTML for its head.

    The script defines `window.workbench`. Its functions, such as `window.workbench.Runs`, draw the
    components of the page. `MOUNTS` lists their names.
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
    """Return a gradio component that the page's script draws.

    Args:
        mount: a name in `MOUNTS`, such as "Runs". The script's function `mountRuns` then draws the
            component.
        value: data to draw. It is sent as JSON text and never becomes markup.
        functions: Python functions that the script can call with a JSON value; each returns a
            JSON object.
        options: further arguments of `gr.HTML`.
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
    """Return a coroutine function that runs `function` in a thread.

    Without a thread, the function would block gradio's event loop.
    """

    @wraps(function)
    async def call(request: object) -> JsonObject:
        return await asyncio.to_thread(function, request)

    return call


def message(error: WorkbenchError | None = None, note: str = "") -> str:
    """Return the value of a note component as JSON text.

    The value is {"error": one line} for an error, {"note": note} for a note, or {} without either.
    """
    return as_json({"error": one_line(error)} if error else {"note": note} if note else {})


def one_line(error: Exception) -> str:
    """Return an error as one line: its type and message, or a WorkbenchError's message only."""
    text = " ".join(str(error).split())
    return text if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {text}"


def page_json(
    error_type: type[Exception] = WorkbenchError,
) -> Callable[[Callable[..., JsonMapping]], Callable[..., str]]:
    """Return a decorator that makes a function return its result as JSON text.

    If the function raises an `error_type`, the text is {"error": message}.
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
    """Wrap a function that the page calls, and turn expected errors into {"error": message}.

    Expected errors are WorkbenchErrors, file errors, and errors of malformed requests.
    """

    @wraps(function)
    def call(request: object) -> JsonObject:
        try:
            return function(request if isinstance(request, dict) else {})
        except WorkbenchError as error:
            return {"error": one_line(error)}
        except OSError as error:  # a full disk, or a folder without write permission
            reason = error.strerror or type(error).__name__
            words = f"a file in the runs folder cannot be read or written ({reason})"
            return {"error": f"{words}: remove the cause, and try again"}
        # a malformed request, which the page itself does not send
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            kind = type(error).__name__
            return {"error": f"the request cannot be read ({kind}): reload the page"}

    return call


def gradio_arguments(**kinds: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a decorator that annotates the arguments of a function with gradio classes.

    For example, `gradio_arguments(event="EventData")` annotates `event` with `gr.EventData`. Gradio
    then passes the event to the function.
    """
    # gradio cannot resolve a string annotation: these modules import gradio inside functions
    import gradio as gr

    def annotate(function: Callable[..., T]) -> Callable[..., T]:
        function.__annotations__.update({name: getattr(gr, kind) for name, kind in kinds.items()})
        return function

    return annotate


def theme() -> "Base":
    """Return gradio's base theme with system fonts, so that no font is downloaded."""
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
