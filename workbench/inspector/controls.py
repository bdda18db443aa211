"""The constants of a method's config as controls: what each sets, what it may be, and how it is
drawn.
"""

from __future__ import annotations

import typing
from typing import Any, Literal

from workbench.methods.method import reward_settings
from workbench.util.config import help_of, range_of, unset_values

# Heads over the fields that begin with these.
HEADS = {
    "f_correct": "f: what a claim is worth, by its verdict",
    "g_5": "g: its factor, by informativeness",
    "alpha": "Weights and bounds",
}


def controls(config: Any) -> list[dict[str, Any]]:
    """A control for each constant of the reward in `config`; `mode`, how claims are asked for,
    changes no stored row.
    """
    kinds = typing.get_type_hints(type(config))
    settings = reward_settings(config).items()
    candidates = (
        control(name, kinds[name], value, config) for name, value in settings if name != "mode"
    )
    return [item for item in candidates if item]


def control(name: str, kind: Any, value: Any, config: Any) -> dict[str, Any] | None:
    """What the page needs to draw one field: a choice, a flag or a number; None for anything
    else, such as text.
    """
    options = typing.get_args(kind)
    plain = [option for option in options if option is not type(None)]
    entry: dict[str, Any] = {
        "name": name,
        "label": _worded(name),
        "value": value,
        "head": HEADS.get(name),
    }
    entry |= {"help": help_of(config)[name]}
    if typing.get_origin(kind) is Literal:
        return entry | {"kind": "choice", "options": [str(option) for option in options]}
    if kind is bool:
        return entry | {"kind": "flag"}
    if plain == [bool]:
        words = {None: "none", True: "true", False: "false"}
        return entry | {"kind": "choice", "options": list(words.values()), "value": words[value]}
    if kind in (int, float) or plain in ([int], [float]):
        low, high, step = range_of(config, name)
        unset = unset_values(config)
        if value is None and name in unset:
            return entry | {
                "kind": "number",
                "min": low,
                "max": high,
                "step": step,
                "value": unset[name],
            }
        optional = type(None) in options and name not in unset
        return entry | {
            "kind": "number",
            "min": low,
            "max": high,
            "step": step,
            "optional": optional,
        }
    return None


def _worded(name: str) -> str:
    """`f_hedged_wrong` is f of a label and `g_5` g of a rating, as the paper writes them."""
    function, _, argument = name.partition("_")
    return (
        f"{function}({argument.replace('_', ' ')})"
        if function in ("f", "g") and argument
        else name.replace("_", " ")
    )
