"""Group items by a key, or split them into batches."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key")


def group_by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Group items by `key(item)`: ["a", "b", "cc"] by `len` → {1: ["a", "b"], 2: ["cc"]}.

    Keys, and items within a key, keep the order of `items`.
    """
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def split_batches(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Split items into batches of `size`; the last one may be smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]
