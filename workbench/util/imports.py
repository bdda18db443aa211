"""Import slow third-party packages without parts that this process does not need."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

Around = Callable[[ModuleType], AbstractContextManager[None]]

# Modules of transformers that import scikit-learn or SciPy at their top, if available: for a kind
# of assisted generation, and for losses of object detection.
OPTIONAL_IMPORTS = ("transformers.generation.candidate_generator", "transformers.loss.loss_*")


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, around: Around) -> None:
        super().__init__(name, path)
        self.around = around

    def exec_module(self, module: ModuleType) -> None:
        with self.around(module):
            super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, patterns: Sequence[str], around: Around) -> None:
        self.patterns, self.around = patterns, around

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not any(fnmatchcase(name, pattern) for pattern in self.patterns):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin, self.around)
        return spec


@contextlib.contextmanager
def around_imports(patterns: Sequence[str], around: Around) -> Iterator[None]:
    """Run the code of some modules inside `around`, if they are imported in the `with` block.

    Args:
        patterns: full names of modules, or patterns such as "package.part_*". Modules that are
            loaded already are not run again.
        around: returns a context manager for a new module, whose code runs inside of it.
    """
    finder = _Finder(patterns, around)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextlib.contextmanager
def light_transformers() -> Iterator[None]:
    """Import transformers without scikit-learn and SciPy inside the `with` block.

    Some of its modules import them at their top, which takes a third of the import's time and about
    130 MB. No command uses what needs them: the losses of object detection, and assisted generation
    with a threshold that adapts (`assistant_confidence_threshold`). Use this only in processes that
    this package starts, because these modules stay as they are.
    """
    with around_imports(OPTIONAL_IMPORTS, _without_optional_packages):
        yield


@contextlib.contextmanager
def _without_optional_packages(_: ModuleType) -> Iterator[None]:
    utils = vars(sys.modules["transformers.utils"])
    names = ("is_sklearn_available", "is_scipy_available")
    originals = {name: utils[name] for name in names}
    utils.update(dict.fromkeys(names, lambda: False))
    try:
        yield
    finally:
        utils.update(originals)
