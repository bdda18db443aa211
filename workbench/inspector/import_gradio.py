"""Import gradio without its stub files.

Whenever gradio is imported, it parses the source of each component and updates a stub file (.pyi)
for type checkers in its own installation. This takes a third of the import's time, and nothing
here reads the stubs.
"""

import gc
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module)["create_or_modify_pyi"] = lambda *_, **__: None


class _Finder(MetaPathFinder):
    """Finds `gradio.component_meta`, the module that writes the stub files."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gradio.component_meta":
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


def import_gradio() -> None:
    """Import gradio, without its analytics and its stub files. Call this before `import gradio`."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
    finder, collects = _Finder(), gc.isenabled()
    sys.meta_path.insert(0, finder)
    gc.disable()  # a sixth of the import's time: it creates many objects, and all of them stay
    try:
        import gradio  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
        if collects:
            gc.enable()
