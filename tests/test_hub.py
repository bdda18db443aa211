"""Names on the hub, with a local server that has one model and one data set."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import hub_server
from tests.helpers.hub_server import Hub, Shelf
from workbench.util.hub import from_disk_or_hub, reach


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_server.logged_in(monkeypatch) as served:
        for name in ("ada/kern", "datasets/ada/facts"):
            served.repositories[name] = Shelf(private=False)
        yield served


def asked(hub: Hub) -> list[str]:
    """The requests about repositories, without other requests of the client."""
    return [one for one in hub.asked if "ada" in one]


class Loader:
    """Like a library's loader: it uses the hub unless `local_files_only` is set."""

    def __init__(self, *here: str) -> None:
        self.here, self.calls = here, 0

    def __call__(
        self, name: str, *, trust_remote_code: bool, local_files_only: bool = False, size: int = 1
    ) -> tuple[str, int]:
        assert trust_remote_code is False
        self.calls += 1
        if local_files_only and name not in self.here:
            raise ValueError("not in the cache")
        return name, size


def test_local_files_need_no_request(hub: Hub, tmp_path: Path) -> None:
    assert from_disk_or_hub(Loader("ada/kern"), "ada/kern", size=3) == ("ada/kern", 3)
    assert from_disk_or_hub(Loader(), str(tmp_path)) == (str(tmp_path), 1)
    assert asked(hub) == []


def test_a_known_name_is_requested_once_and_loaded(hub: Hub) -> None:
    loader = Loader()
    assert from_disk_or_hub(loader, "ada/kern", size=2) == ("ada/kern", 2)
    assert (loader.calls, len(asked(hub))) == (2, 1)
    reach("dataset", "ada/facts")
    assert asked(hub)[-1] == "GET /api/datasets/ada/facts"


def test_errors_of_a_local_model_are_raised_unchanged(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    def broken(name: str, **_: bool) -> None:
        raise ValueError("the tokenizer cannot be read")

    def out_of_memory(name: str, **_: bool) -> None:
        raise RuntimeError("out of memory")

    snapshot = tmp_path / "models--ada--kern" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (tmp_path / "models--ada--kern" / "refs").mkdir()
    (tmp_path / "models--ada--kern" / "refs" / "main").write_text("abc")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match="the tokenizer cannot be read"):
        from_disk_or_hub(broken, "ada/kern")
    with pytest.raises(RuntimeError, match="out of memory"):
        from_disk_or_hub(out_of_memory, "ada/nobody")
    assert asked(hub) == []


def test_an_unknown_name_or_an_unreachable_hub_is_a_one_line_error(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    loader = Loader()
    with pytest.raises(OSError, match="not available on the hub") as caught:
        from_disk_or_hub(loader, "ada/nobody")
    assert "\n" not in str(caught.value) and loader.calls == 1 and len(asked(hub)) == 1
    with pytest.raises(OSError):
        reach("dataset", "ada/kern")  # a model, not a data set
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(OSError, match="not on this machine"):
        reach("model", "ada/kern")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    reach("model", "ada/kern")  # offline: the loader reports what is missing
