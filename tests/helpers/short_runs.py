"""Short runs on the tiny bench: fewer questions, a method's stages, and changes of the weights."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.helpers.credit import weights
from workbench.experiments.experiment import configured, stages_of
from workbench.methods.bench import Bench, bench
from workbench.methods.method import Method
from workbench.training.stage import Stage


def short_bench(count: int | None = None, policy: str | None = None, each: int = 1) -> Bench:
    """The tiny bench with at most `count` questions of each split, or every `each`-th question."""
    tiny = bench("tiny").with_policy(policy)
    part = slice(None, count, each)
    return replace(tiny, questions=lambda *args, **kwargs: tiny.questions(*args, **kwargs)[part])


def stages(method: Method, place: Bench, settings: Sequence[str] = ()) -> Sequence[Stage]:
    return stages_of(method, configured(method, place, overrides=settings), place, 1)


def weights_moved(out: Path) -> bool:
    """Whether training changed the adapter, whose second factor starts at zero."""
    return any(weight.abs().max() > 0 for name, weight in weights(out).items() if "lora_B" in name)
