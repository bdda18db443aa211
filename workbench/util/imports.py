"""Import slow packages of others without parts that this process does not need."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any


class _Loader(SourceFileLoader):
    values: dict[str, Any]

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module).update(self.values)


class _Finder(MetaPathFinder):
    def __init__(self, name: str, values: dict[str, Any]) -> None:
        self.name, self.values = name, values

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.origin is not None:
            loader = _Loader(name, spec.origin)
            loader.values = self.values
            spec.loader = loader
        return spec


@contextlib.contextmanager
def replaced_at_import(module: str, **values: Any) -> Iterator[None]:
    """Replace attributes of a module, such as "gradio.component_meta", when it is imported.

    Only an import inside the `with` block is changed: a module that is loaded already stays as it
    is.
    """
    finder = _Finder(module, values)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextlib.contextmanager
def light_transformers() -> Iterator[None]:
    """Import transformers without scikit-learn and SciPy inside the `with` block.

    It imports them at start, for a kind of assisted generation and for losses of object detection,
    which no command uses. They take a third of its import's time and 130 MB. Only for processes of
    our own, because the rest of the process keeps this version of transformers.
    """

    def unavailable() -> bool:
        return False

    with replaced_at_import(
        "transformers.utils", is_sklearn_available=unavailable, is_scipy_available=unavailable
    ):
        yield
