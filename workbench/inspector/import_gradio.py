"""Import gradio without its stub files.

Whenever gradio is imported, it parses the source of each component and updates a stub file (.pyi)
for type checkers in its own installation. This takes a third of the import's time, and nothing
here reads the stubs.
"""

import contextlib
import gc
import os
from collections.abc import Iterator
from types import ModuleType

from workbench.util.imports import around_imports


def import_gradio() -> None:
    """Import gradio, without its analytics and its stub files. Call this before `import gradio`."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
    collects = gc.isenabled()
    gc.disable()  # a sixth of the import's time: it creates many objects, and all of them stay
    try:
        with around_imports(["gradio.component_meta"], _without_stubs):
            import gradio  # noqa: F401
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def _without_stubs(module: ModuleType) -> Iterator[None]:
    yield
    vars(module)["create_or_modify_pyi"] = lambda *_, **__: None
