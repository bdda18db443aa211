"""Stages shared by runs: copied whole or not at all, and only between runs with equal inputs."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.helpers import examples
from tests.helpers.short_runs import short_bench
from workbench.experiments.experiment import configured, identity_of, stages_of
from workbench.methods import METHODS
from workbench.runs.shared import Shared
from workbench.training.stage import Stage
from workbench.util.jsonl import write_json

IDENTITY = {
    "method": "knowrl",
    "config": {"steps": 1},
    "seed": 1,
    "threads": 2,
    "world_hash": "w",
    "policy_hash": "p",
}


def made(folder: Path, text: str = "weights", status: str = "done") -> Path:
    (folder / "policy").mkdir(parents=True)
    (folder / "policy" / "model").write_text(text)
    write_json(folder / "summary.json", {"stage": "cold_start", "seconds": 1.0, "status": status})
    return folder


def test_a_finished_stage_is_copied_with_its_origin(tmp_path: Path) -> None:
    shared = Shared(tmp_path / "stages", IDENTITY)
    place = shared.folder([("cold_start", {"epochs": 1})])
    assert not shared.take(place, tmp_path / "two")
    shared.keep(place, made(tmp_path / "one"))
    begun = tmp_path / "two"
    begun.mkdir()
    (begun / "half").write_text("of a run that was killed")
    assert shared.take(place, begun)
    assert (begun / "policy" / "model").read_text() == "weights" and not (begun / "half").exists()
    assert f'"shared": "{place.name}"' in (begun / "summary.json").read_text()
    assert "shared" not in (tmp_path / "one" / "summary.json").read_text()


def test_a_second_run_waits_for_a_stage_and_copies_it(tmp_path: Path) -> None:
    """`flock` locks the open file, so two threads are like two processes."""
    shared = Shared(tmp_path / "stages", IDENTITY)
    place, entered = shared.folder([("cold_start", None)]), Event()

    def first() -> None:
        with shared.one_at_a_time(place):
            entered.set()
            time.sleep(0.3)
            shared.keep(place, made(tmp_path / "one"))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(first)
        entered.wait()
        with shared.one_at_a_time(place):
            assert shared.take(place, tmp_path / "two")


def test_an_unfinished_stage_is_not_copied(tmp_path: Path) -> None:
    shared = Shared(tmp_path / "stages", IDENTITY)
    place = made(shared.folder([("cold_start", None)]), status="interrupted")
    assert not shared.take(place, tmp_path / "two") and not (tmp_path / "two").exists()


def test_a_failed_copy_leaves_no_files(tmp_path: Path) -> None:
    shared = Shared(tmp_path / "stages", IDENTITY)
    place, one = shared.folder([("cold_start", None)]), made(tmp_path / "one")
    # a broken link fails like a full disk
    (one / "policy" / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError):
        shared.keep(place, one)
    assert not place.exists() and not list((tmp_path / "stages").iterdir())


def test_the_files_of_a_killed_copy_are_removed(tmp_path: Path) -> None:
    """Its rows would count among the run's."""
    shared = Shared(tmp_path / "shared", IDENTITY)
    place, out = shared.folder([("cold_start", None)]), tmp_path / "run" / "stages" / "cold_start"
    made(out.parent / ".cold_start.partial")
    assert not shared.take(place, out) and not list(out.parent.iterdir())
    made(place.parent / f".{place.name}.partial")
    shared.keep(place, made(tmp_path / "one"))
    made(out.parent / ".cold_start.partial")
    assert shared.take(place, out)
    assert [path.name for path in out.parent.iterdir()] == ["cold_start"] and [
        *place.parent.iterdir()
    ] == [place]


@pytest.mark.parametrize("other", examples("other_starts"))
def test_runs_with_other_inputs_share_no_stages(other: dict[str, Any], tmp_path: Path) -> None:
    way = [("cold_start", {"epochs": 1})]
    one, two = Shared(tmp_path, IDENTITY), Shared(tmp_path, {**IDENTITY, **other})
    assert one.folder(way) != two.folder(way)
    assert one.folder(way) == Shared(tmp_path, {**IDENTITY, "method": "m", "config": {}}).folder(
        way
    )
    assert (
        one.folder(way)
        != one.folder([("cold_start", {"epochs": 2})])
        != one.folder([("probe", {"n": 1}), *way])
    )


def ways(name: str, stage: str, tmp_path: Path, *settings: str) -> Path:
    """The shared folder of that stage for a run with these settings."""
    place, method = short_bench(24), METHODS[name]
    config = configured(method, place, overrides=settings)
    found = stages_of(method, config, place, 1)
    way = found[: [one.name for one in found].index(stage) + 1]
    assert all(isinstance(one, Stage) and one.cache_key is not None for one in way)
    return Shared(tmp_path, identity_of(method, config, place, seed=1)).folder(
        [(one.name, one.cache_key) for one in way]
    )


@pytest.mark.parametrize(("name", "stage", "alike", "apart"), examples("cache_keys"))
def test_a_stages_folder_depends_on_its_settings(
    name: str, stage: str, alike: list[str], apart: list[str], tmp_path: Path
) -> None:
    usual = ways(name, stage, tmp_path)
    assert {ways(name, stage, tmp_path, setting) for setting in alike} == {usual}
    assert (
        len({usual, *(ways(name, stage, tmp_path, setting) for setting in apart)}) == len(apart) + 1
    )


def test_a_given_preparation_is_shared_with_or_without_its_samples(tmp_path: Path) -> None:
    named = "klcf.prepare.folder=somewhere"
    plain, copied = (
        ways("klcf", "prepare", tmp_path, named, *more) for more in ((), ("klcf.w_general=1",))
    )
    assert (
        plain
        != copied
        == ways("klcf", "prepare", tmp_path, named, "klcf.w_general=0.5", "klcf.w_check=0")
    )
