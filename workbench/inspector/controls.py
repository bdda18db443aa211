"""The constants of a method's config as controls: their values, ranges and kinds."""

from __future__ import annotations

import typing
from typing import Any, Literal

from workbench.methods.method import reward_settings
from workbench.types import JsonObject
from workbench.util.config import help_of, range_of, unset_values

# headings above the fields with these names
HEADS = {
    "f_correct": "f: value of a claim by its verdict",
    "g_5": "g: factor by informativeness",
    "alpha": "Weights and bounds",
}


def controls(config: Any) -> list[JsonObject]:
    """A control for each constant of the reward in `config`.

    `mode`, which selects how claims are extracted, does not change a stored row and is left out.
    """
    kinds = typing.get_type_hints(type(config))
    settings = reward_settings(config).items()
    candidates = (
        control(name, kinds[name], value, config) for name, value in settings if name != "mode"
    )
    return [item for item in candidates if item]


def control(name: str, kind: Any, value: Any, config: Any) -> JsonObject | None:
    """The data to draw one field: a choice, a flag or a number; None for other types."""
    options = typing.get_args(kind)
    plain = [option for option in options if option is not type(None)]
    function, _, argument = name.partition("_")
    words = argument.replace("_", " ")
    entry: JsonObject = {
        "name": name,
        # f_hedged_wrong is f(hedged wrong), as the paper writes it
        "label": f"{function}({words})"
        if function in ("f", "g") and argument
        else name.replace("_", " "),
        "value": value,
        "head": HEADS.get(name),
        "help": help_of(config)[name],
    }
    if typing.get_origin(kind) is Literal:
        return entry | {"kind": "choice", "options": [str(option) for option in options]}
    if kind is bool:
        return entry | {"kind": "flag"}
    if plain == [bool]:
        labels = {None: "none", True: "true", False: "false"}
        return entry | {"kind": "choice", "options": list(labels.values()), "value": labels[value]}
    if kind in (int, float) or plain in ([int], [float]):
        low, high, step = range_of(config, name)
        entry |= {"kind": "number", "min": low, "max": high, "step": step}
        unset = unset_values(config)
        if name not in unset:
            return entry | {"optional": type(None) in options}
        return entry | ({"value": unset[name]} if value is None else {"optional": False})
    return None
