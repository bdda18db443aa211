"""Configs: settings by declared type, nested configs, and stored configs in former formats."""

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


def test_nested_settings_need_no_prefix_unless_the_outer_config_has_the_name() -> None:
    assert override(Settings(), "m", ["m.inner.steps=3", "m.inner.rate=2"]).inner == Inner(3, 2.0)
    # without the prefix
    assert override(Settings(), "m", ["m.steps=3"]).inner == Inner(3, 0.5)
    changed = override(Settings(), "m", ["m.rate=2"])
    assert (changed.rate, changed.inner.rate) == (2.0, 0.5)  # the outer field has precedence


@pytest.mark.parametrize(("setting", "message"), examples("overrides"))
def test_override_says_what_is_wrong(setting: str, message: str) -> None:
    with raises_error(message):
        override(Settings(), "m", [setting])


def test_stored_configs_are_read_nested_and_flat() -> None:
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
    # the outer field has precedence
    assert restore(Settings(), side_by_side) == replace(wanted, inner=Inner(3, 0.5))
    assert restore(Settings(), {}) == Settings()


@pytest.mark.parametrize("rate", ["1e308", "-1e308", "1e-310", "1e10", "9" * 400])
def test_numbers_whose_results_would_overflow_are_refused(rate: str) -> None:
    kind = int if rate.isdigit() else float
    with raises_error(r"rate is .*its absolute value must be 0 or between"):
        check_values(Settings(inner=Inner(rate=kind(rate))))


def test_invalid_values_are_found_in_nested_configs() -> None:
    check_values(Settings())
    with raises_error("rate is inf: it must be a finite number"):
        check_values(Settings(inner=Inner(rate=float("inf"))))
    with raises_error("reward is 'both': choose one of ternary, binary"):
        check_values(Settings(reward="both"))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Outer:
    """`Settings`, one level deeper."""

    share: float | None = setting(0.5, least=0, most=1)
    count: int = setting(1, least=1, unset=lambda config: 7)
    width: float = setting(0.5, above=0, below=1)
    settings: Settings = Settings()


def test_prefixes_are_optional() -> None:
    assert find(Outer(), "steps") == find(Outer(), "inner.steps") == ["settings.inner.steps"]
    assert find(Outer(), "share") == ["share"] and find(Outer(), "inner.number") == []
    changed = scaled(Outer(), steps=3, settings={"fast": True})
    assert changed == Outer(settings=Settings(fast=True, inner=Inner(3)))
    stored = {"share": 0.1, "inner": {"steps": 3, "number": 4}, "settings": {"fast": True}}
    assert restore(Outer(), stored) == replace(changed, share=0.1)
    assert leaves(Outer(), "settings.inner") == ["settings.inner.steps", "settings.inner.rate"]
    assert unset_values(Outer()) == {"count": 7}


@pytest.mark.parametrize(("changes", "message"), examples("numbers"))
def test_numbers_outside_their_bounds_are_refused(changes: dict[str, Any], message: str) -> None:
    check_values(Outer(share=None))
    with raises_error(message):
        check_values(replace(Outer(), **changes))
