"""The shares of a profile, by package."""

import cProfile
import time

import torch

from benchmarks.profiles import TITLES, largest, shares, table


def test_waiting_is_left_out_and_torch_is_named() -> None:
    def work() -> None:
        time.sleep(0.5)
        for _ in range(20):
            torch.mm(torch.ones(300, 300), torch.ones(300, 300))

    profile = cProfile.Profile()
    profile.runcall(work)
    found = shares(profile)
    # with the waiting, the package of this function, which calls `sleep`, would come first
    assert next(iter(found)) == "torch" and 0.99 < sum(found.values()) < 1.01


def test_small_shares_are_one_part() -> None:
    assert largest({"a": 97, "b": 2, "c": 1, "d": 100}) == {"d": 0.5, "a": 0.485, "other": 0.015}
    parts = {name: {"torch": 0.5} for name in TITLES}
    shown = table({**parts, "verifier": {"peak": 7}})
    assert "torch 50%" in shown and "peak 7 MB" in shown
