"""Frozen config dataclasses: fields with their help, configs made of parts, and `--set
name.field=value`.

A config may hold other configs as `part`s: `TruthRL(grpo=GRPO(steps=10))`, spelled
`truthrl.grpo.steps=10`. A part's fields can also be spelled without its name,
`truthrl.steps=10`, as long as the config itself has no field of that name; so they were before
configs had parts, and what was stored then is still read.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

from workbench.types import WorkbenchError

Config = TypeVar("Config")
Value = TypeVar("Value")

WORDS_FOR_BOOL = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def setting(
    default: Value,
    help: str,
    range: tuple[float, float, float] | None = None,
    *,
    trains: bool = False,
) -> Value:
    """A config's field with its help, which stands in the page of settings and beside its
    control in the inspector.

    `range` is what the control of a number goes through: least, most and step. It bounds nothing
    else. What `trains` says how a method is trained, and changes nothing of what it pays.
    """
    return field(default=default, metadata={"help": help, "range": range, "trains": trains})


def help_of(config: Any) -> dict[str, str]:
    """The help of each of a config's own fields."""
    return {f.name: f.metadata.get("help", "") for f in fields(config)}


def range_of(config: Any, name: str) -> tuple[float, float, float]:
    """What the control of a number goes through: what its field says, else a range around its
    default that has it on a step.
    """
    one = next(one for one in fields(config) if one.name == name)
    if one.metadata.get("range"):
        return one.metadata["range"]
    usual = one.default if isinstance(one.default, int | float) and one.default else 1.0
    step = 10.0 ** (math.floor(math.log10(abs(usual))) - 1)
    return -30 * step, 30 * step, step


def parts(config: Any) -> dict[str, Any]:
    """The configs that a config is made of, by field."""
    return {f.name: value for f in fields(config) if is_dataclass(value := getattr(config, f.name))}


def settings(config: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """(name, value, help) of every field, those of the parts as "part.field"."""
    inner = parts(config)
    for name, help in help_of(config).items():
        if name in inner:
            yield from settings(inner[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", getattr(config, name), help


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
        config = _set(config, path, text.strip(), where=f"--set {setting}", name=name)
    return config


def home(config: Any, path: str) -> set[str]:
    """The parts of a config that a setting is of, with the part's name or without; none where it
    is the config's own.
    """
    inner, head = parts(config), path.partition(".")[0]
    if head in inner or head in _names(config):
        return {head} & set(inner)
    return {part for part, value in inner.items() if head in _names(value)}


def _set(config: Any, path: str, text: str, where: str, name: str) -> Any:
    inner, field_name, (head, _, rest) = parts(config), path, path.partition(".")
    if rest and head in inner:
        return replace(
            config, **{head: _set(inner[head], rest, text, where=where, name=f"{name}.{head}")}
        )
    own = [f.name for f in fields(config) if f.name not in inner]
    if field_name in own:
        return replace(config, **{field_name: parse(text, _kinds(type(config))[field_name], where)})
    homes = {part: value for part, value in inner.items() if field_name in _names(value)}
    if not homes:
        known = [
            *own,
            *(
                f"{part}.{inner_name}"
                for part, value in inner.items()
                for inner_name in _names(value)
            ),
        ]
        raise WorkbenchError(
            f"{where}: {name} has no field '{field_name}'; its fields are {', '.join(known)}"
        )
    return replace(
        config,
        **{
            part: _set(value, field_name, text, where=where, name=name)
            for part, value in homes.items()
        },
    )


def restore(config: Config, stored: Mapping[str, Any]) -> Config:
    """`config` with the values of a stored one: a mapping of fields and parts, or of all fields
    side by side as they once were.

    What the stored one does not have keeps its value, and what this config no longer has is left
    out.
    """
    inner = parts(config)
    known = {
        f.name: stored[f.name] for f in fields(config) if f.name in stored and f.name not in inner
    }  # type: ignore[arg-type]
    for part, value in inner.items():
        own = stored.get(part)
        known[part] = restore(value, own if isinstance(own, Mapping) else stored)
    return replace(config, **known)  # type: ignore[type-var]


def check_values(config: Any) -> None:
    """Raise a WorkbenchError for a value that a field's Literal does not list and for a number
    that is not finite.
    """
    for part in parts(config).values():
        check_values(part)
    for name, kind in _kinds(type(config)).items():
        value = getattr(config, name)
        literal = next(
            (one for one in (kind, *typing.get_args(kind)) if typing.get_origin(one) is Literal),
            None,
        )
        unset = value is None and type(None) in typing.get_args(kind)
        if literal is not None and not unset and value not in typing.get_args(literal):
            raise WorkbenchError(
                f"{name} is '{value}': choose one of"
                f" {', '.join(map(str, typing.get_args(literal)))}"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise WorkbenchError(f"{name} is {value}: it must be a finite number")


def check_numbers(
    config: Any,
    least: Mapping[str, float],
    positive: Sequence[str] = (),
    shares: Sequence[str] = (),
) -> None:
    """Raise a WorkbenchError for a field below its `least`, for one of `positive` that is not
    above 0, and for one of `shares` that is not between 0 and 1; fields that are none pass."""
    held = {name: getattr(config, name) for name in (*least, *positive, *shares)}
    for name, value in held.items():
        if value is None:
            continue
        if value < least.get(name, value):
            raise WorkbenchError(f"{name} is {value}: it must be at least {least[name]}")
        if name in positive and value <= 0:
            raise WorkbenchError(f"{name} is {value}: it must be above 0")
        if name in shares and not 0 <= value <= 1:
            raise WorkbenchError(f"{name} is {value}: it must lie between 0 and 1")


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


_known_kinds: dict[type, dict[str, Any]] = {}


def _kinds(config: type) -> dict[str, Any]:
    """What each field of a config may be. Configs are checked at every row that is paid; their
    types stay.
    """
    if config not in _known_kinds:
        _known_kinds[config] = typing.get_type_hints(config)
    return _known_kinds[config]


def _names(config: Any) -> list[str]:
    return [f.name for f in fields(config)]
