"""Frozen config dataclasses: fields with their help and bounds, configs made of parts, and
`--set name.field=value`.

A config may hold other configs as parts: `TruthRL(grpo=GRPO(optim=Optim(learning_rate=1e-5)))`,
spelled `truthrl.grpo.optim.learning_rate=1e-5`. The names of parts may be left out:
`truthrl.grpo.learning_rate=1e-5` or `truthrl.learning_rate=1e-5`, unless the config itself has a
field of that name. Stored configs of earlier versions are read by the same rule.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar

from workbench.types import WorkbenchError

Config = TypeVar("Config")
Value = TypeVar("Value")

WORDS_FOR_BOOL = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def setting(
    default: Value,
    help: str = "",
    range: tuple[float, float, float] | None = None,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    trains: bool = False,
    was: str = "",
    unset: Callable[[Any], Any] | None = None,
) -> Value:
    """A config's field, with its help in the page of settings and in the inspector.

    Args:
        range: least, most and step of its control in the inspector; it bounds nothing else.
        least, most, above, below: bounds of a number, which `check_values` checks.
        trains: the field says how a method is trained and changes no reward.
        was: the field's path in earlier versions, which `--set` and stored configs may still use.
        unset: config -> the value that None stands for.
    """
    bounds = {"least": least, "most": most, "above": above, "below": below}
    told = {"help": help, "range": range, "trains": trains, "was": was, "unset": unset}
    return field(default=default, metadata={**told, **bounds})


def help_of(config: Any) -> dict[str, str]:
    """The help of each of a config's own fields."""
    return {f.name: f.metadata.get("help", "") for f in fields(config)}


def range_of(config: Any, name: str) -> tuple[float, float, float]:
    """Least, most and step of a number's control, by default a range around its value."""
    one = next(one for one in fields(config) if one.name == name)
    if one.metadata.get("range"):
        return one.metadata["range"]
    usual = one.default if isinstance(one.default, int | float) and one.default else 1.0
    step = 10.0 ** (math.floor(math.log10(abs(usual))) - 1)
    return -30 * step, 30 * step, step


def unset_values(config: Any) -> dict[str, Any]:
    """The values that None stands for, by field, for the fields that declare one."""
    return {f.name: make(config) for f in fields(config) if (make := f.metadata.get("unset"))}


def parts(config: Any) -> dict[str, Any]:
    """The configs that a config is made of, by field."""
    return {f.name: value for f in fields(config) if is_dataclass(value := getattr(config, f.name))}


def settings(config: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """(path, value, help) of every field; the fields of parts as "part.field"."""
    inner = parts(config)
    for name, help in help_of(config).items():
        if name in inner:
            yield from settings(inner[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", getattr(config, name), help


def find(config: Any, path: str) -> list[str]:
    """The full paths that `path` may mean: names of parts may be left out. A config's own field
    goes before the fields of its parts."""
    inner = parts(config)
    head, _, rest = path.partition(".")
    if rest and head in inner and (found := find(inner[head], rest)):
        return [f"{head}.{one}" for one in found]
    for one in fields(config):
        was = one.metadata.get("was")
        if one.name not in inner and path in (one.name, was):
            return [one.name]
        if was and one.name in inner and path.startswith(f"{was}."):
            found = find(inner[one.name], path.removeprefix(f"{was}."))
            if found:
                return [f"{one.name}.{name}" for name in found]
    return [f"{part}.{name}" for part, value in inner.items() for name in find(value, path)]


def leaves(config: Any, path: str) -> list[str]:
    """The full paths of all fields that a part, or a field, of that path has."""
    every = [name for name, _, _ in settings(config)]
    return [name for name in every if name.startswith(f"{path}.")] or find(config, path)


def get(config: Any, path: str) -> Any:
    """The value at a full path."""
    for name in path.split("."):
        config = getattr(config, name)
    return config


def put(config: Config, path: str, value: Any) -> Config:
    """`config` with another value at a full path."""
    head, _, rest = path.partition(".")
    return replace(config, **{head: put(getattr(config, head), rest, value) if rest else value})  # type: ignore[type-var]


def scaled(config: Config, **changes: Any) -> Config:
    """`config` with other values, by the names that `--set` takes; a mapping changes a part."""
    for path, value in _flat(changes):
        paths = [path] if is_dataclass(value) else find(config, path)
        assert paths, f"{type(config).__name__} has no field '{path}'"
        for full in paths:
            config = put(config, full, value)
    return config


def override(config: Config, name: str, settings: Sequence[str]) -> Config:
    """Apply settings such as "truthrl.reward=binary" to `config`, whose settings start with `name`.

    Raises:
        WorkbenchError: no such field (the fields are listed) or a value of the wrong type.
    """
    for setting in settings:
        target, equals, text = setting.partition("=")
        prefix, _, path = target.strip().partition(".")
        if not equals or prefix != name or not path:
            raise WorkbenchError(f"--set {setting}: write {name}.FIELD=VALUE")
        for full in _known(config, path, name, f"--set {setting}"):
            owner, _, field_name = full.rpartition(".")
            kind = _kinds(type(get(config, owner) if owner else config))[field_name]
            config = put(config, full, parse(text.strip(), kind, f"--set {setting}"))
    return config


def _known(config: Any, path: str, name: str, where: str) -> list[str]:
    if paths := find(config, path):
        return paths
    head, _, rest = path.partition(".")
    if rest and head in (inner := parts(config)):
        config, name, path = inner[head], f"{name}.{head}", rest
    known = ", ".join(path for path, _, _ in settings(config))
    raise WorkbenchError(f"{where}: {name} has no field '{path}'; its fields are {known}")


def restore(config: Config, stored: Mapping[str, Any]) -> Config:
    """`config` with the values of a stored one, whichever of its parts that one has.

    A field that the stored config lacks keeps its value; a field that no longer exists is left
    out.
    """
    for path, value in _flat(stored):
        for full in find(config, path):
            config = put(config, full, value)
    return config


def _flat(stored: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in stored.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def check_values(config: Any) -> None:
    """Raise a WorkbenchError for a value that a field's Literal does not list, a number that is
    not finite, and one outside the field's bounds.
    """
    for part in parts(config).values():
        check_values(part)
    kinds = _kinds(type(config))
    for one in fields(config):
        name, kind, value = one.name, kinds[one.name], getattr(config, one.name)
        options = typing.get_args(kind)
        if value is None and type(None) in options:
            continue
        for literal in (kind, *options):
            allowed = typing.get_args(literal)
            if typing.get_origin(literal) is Literal and value not in allowed:
                listed = ", ".join(map(str, allowed))
                raise WorkbenchError(f"{name} is '{value}': choose one of {listed}")
        if isinstance(value, float) and not math.isfinite(value):
            raise WorkbenchError(f"{name} is {value}: it must be a finite number")
        if isinstance(value, int | float):
            _check_bounds(name, value, one.metadata)


def _check_bounds(name: str, value: float, bounds: Mapping[str, Any]) -> None:
    least, most, above, below = (bounds.get(key) for key in ("least", "most", "above", "below"))
    wrong = ""
    if above is not None and value <= above:
        wrong = f"be above {above:g}"
    elif below is not None and value >= below:
        wrong = f"be below {below:g}"
    elif most is not None and not (least or 0) <= value <= most:
        wrong = f"lie between {least or 0:g} and {most:g}"
    elif least is not None and value < least:
        wrong = f"be at least {least:g}"
    if wrong:
        raise WorkbenchError(f"{name} is {value}: it must {wrong}")


def parse(text: str, kind: Any, where: str) -> Any:
    """`text` as a value of the annotated type `kind` (bool, int, float, str, Literal, or one of
    these or None).
    """
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if text.lower() in ("none", "null") and type(None) in options:
            return None
        return parse(text, next(option for option in options if option is not type(None)), where)
    if origin is Literal:
        if text not in options:
            raise WorkbenchError(f"{where}: choose one of {', '.join(map(str, options))}")
        return text
    if kind is bool:
        if text.lower() not in WORDS_FOR_BOOL:
            raise WorkbenchError(f"{where}: write true or false")
        return WORDS_FOR_BOOL[text.lower()]
    try:
        return kind(text)
    except ValueError as error:
        raise WorkbenchError(
            f"{where}: '{text}' is not {'an' if kind is int else 'a'} {kind.__name__}"
        ) from error


# The type of each field of a config class, resolved once: every reward checks its config.
_kinds: Callable[[Any], dict[str, Any]] = cache(typing.get_type_hints)
