"""The cached fingerprint of a world, and when it is computed again."""

from pathlib import Path

import pytest

from workbench.world import fingerprint
from workbench.world.facts import WorldConfig
from workbench.world.fingerprint import cached_fingerprint
from workbench.world.world import World

SMALL, OTHER = WorldConfig(scale=0.1), WorldConfig(scale=0.1, seed=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of fingerprints in these tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "factuality-workbench" / "worlds"


def never() -> str:
    raise AssertionError("it was made anew")


A, B = "a" * 16, "b" * 16


def test_a_cached_fingerprint_is_used_without_writing_documents(
    folder: Path,
) -> None:
    first, again = World(SMALL), World(SMALL)
    assert first.hash == again.hash
    assert "documents" in vars(first) and "documents" not in vars(again)
    assert len(list(folder.iterdir())) == 1


def test_other_sources_recompute_it_in_the_same_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached_fingerprint(SMALL, lambda: A)
    monkeypatch.setattr(fingerprint, "SOURCES", "edited")
    assert cached_fingerprint(SMALL, lambda: B) == B
    assert cached_fingerprint(SMALL, never) == B
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("damage", [b"\xff\xfe\x00", b"0" * 16 + b" " + b"a" * 16 + b"\n"])
def test_a_damaged_or_foreign_file_is_replaced(folder: Path, damage: bytes) -> None:
    cached_fingerprint(SMALL, lambda: A)
    [file] = folder.iterdir()
    for content in (damage, file.read_bytes()[:20]):
        file.write_bytes(content)
        assert cached_fingerprint(SMALL, lambda: B) == B
        assert cached_fingerprint(SMALL, never) == B  # repaired
    folder.joinpath(file.name).unlink()
    folder.rmdir()
    folder.write_text("a file stands where the folder would be")
    assert cached_fingerprint(SMALL, lambda: B) == B
