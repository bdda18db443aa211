"""Configs: settings by their declared types, configs made of parts, and what was stored before
they had parts.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from workbench.util.config import (
    check_values,
    find,
    leaves,
    override,
    restore,
    scaled,
    setting,
    unset_values,
)


@dataclass(frozen=True)
class Inner:
    steps: int = setting(10, "how many")
    rate: float = setting(0.5, "how fast")


@dataclass(frozen=True)
class Settings:
    reward: Literal["ternary", "binary"] = setting("ternary", "what is paid")
    rate: float = setting(1.0, "of the whole")
    batch: int | None = setting(None, "how many at once")
    fast: bool = False
    inner: Inner = field(default=Inner())


def test_override_by_declared_types() -> None:
    changed = override(
        Settings(), "m", ["m.reward=binary", "m.rate=1e-3", "m.batch=4", "m.fast=true"]
    )
    assert changed == Settings("binary", 1e-3, 4, True)
    assert override(changed, "m", ["m.batch=none", "m.rate=5"]) == Settings(
        "binary", 5.0, None, True
    )


def test_a_part_is_set_by_its_name_or_where_the_config_has_no_such_field_without_it() -> None:
    assert override(Settings(), "m", ["m.inner.steps=3", "m.inner.rate=2"]).inner == Inner(3, 2.0)
    # as it was spelled before there were parts
    assert override(Settings(), "m", ["m.steps=3"]).inner == Inner(3, 0.5)
    changed = override(Settings(), "m", ["m.rate=2"])
    assert (changed.rate, changed.inner.rate) == (2.0, 0.5)  # the config's own field goes first


@pytest.mark.parametrize(("setting", "message"), examples("overrides"))
def test_override_says_what_is_wrong(setting: str, message: str) -> None:
    with raises_error(message):
        override(Settings(), "m", [setting])


def test_what_is_stored_is_read_in_parts_and_side_by_side() -> None:
    wanted = Settings("binary", 2.0, 4, True, Inner(3, 0.1))
    assert restore(Settings(), asdict(wanted)) == wanted
    side_by_side = {
        "reward": "binary",
        "rate": 2.0,
        "batch": 4,
        "fast": True,
        "steps": 3,
        "gone": "x",
    }
    # the config's own field goes first
    assert restore(Settings(), side_by_side) == replace(wanted, inner=Inner(3, 0.5))
    assert restore(Settings(), {}) == Settings()


@pytest.mark.parametrize("rate", ["1e308", "-1e308", "1e-310", "1e10", "9" * 400])
def test_numbers_whose_results_would_overflow_are_refused(rate: str) -> None:
    kind = int if rate.isdigit() else float
    with raises_error(r"rate is .*its absolute value must be 0 or between"):
        check_values(Settings(inner=Inner(rate=kind(rate))))


def test_values_that_cannot_be_are_found_in_parts_too() -> None:
    check_values(Settings())
    with raises_error("rate is inf: it must be a finite number"):
        check_values(Settings(inner=Inner(rate=float("inf"))))
    with raises_error("reward is 'both': choose one of ternary, binary"):
        check_values(Settings(reward="both"))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Outer:
    """What `Settings` became: it lies one part deeper, and two names have changed."""

    share: float | None = setting(0.5, least=0, most=1, was="part")
    count: int = setting(1, least=1, was="inner.number", unset=lambda config: 7)
    width: float = setting(0.5, above=0, below=1)
    settings: Settings = field(default=Settings(), metadata={"was": "old"})


def test_names_of_parts_may_be_left_out_and_former_names_are_known() -> None:
    assert find(Outer(), "steps") == find(Outer(), "inner.steps") == ["settings.inner.steps"]
    assert find(Outer(), "old.inner.steps") == find(Outer(), "settings.steps")
    assert find(Outer(), "part") == ["share"] and find(Outer(), "inner.number") == ["count"]
    changed = scaled(Outer(), steps=3, settings={"fast": True})
    assert changed == Outer(settings=Settings(fast=True, inner=Inner(3)))
    stored = {"part": 0.1, "inner": {"steps": 3, "number": 4}, "old": {"fast": True}}
    assert restore(Outer(), stored) == replace(changed, share=0.1, count=4)
    assert leaves(Outer(), "settings.inner") == ["settings.inner.steps", "settings.inner.rate"]
    assert unset_values(Outer()) == {"count": 7}


@pytest.mark.parametrize(("changes", "message"), examples("numbers"))
def test_numbers_outside_their_bounds_are_refused(changes: dict[str, Any], message: str) -> None:
    check_values(Outer(share=None))
    with raises_error(message):
        check_values(replace(Outer(), **changes))
