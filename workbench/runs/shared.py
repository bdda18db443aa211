"""Share finished stages, such as a cold start, between the runs of a queue."""

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench.runs.folder import finished, versions
from workbench.types import JsonMapping
from workbench.util.jsonl import json_digest, write_json

# parts of a run's identity that are not in the digest; a cache key has the parts of the config
# that its stage uses
OWN = ("method", "config")


class Shared:
    """Cache of finished stages, in a folder that the runs of a queue share.

    A run may consist of several trainings. Each of them is a stage, such as the cold start or the
    training of a reward model.

    Args:
        root: folder of the cache, with a subfolder for each stage.
        identity: the content of the config.json of the run that uses the cache.
    """

    def __init__(self, root: Path, identity: JsonMapping) -> None:
        run = {key: value for key, value in identity.items() if key not in OWN}
        self.root, self.common = root, [run, versions()]

    def folder(self, stages: Sequence[tuple[str, object]]) -> Path:
        """Return the cache folder of one stage of the run; it may not exist yet.

        Args:
            stages: (name, cache key) of the run's earlier stages and of this stage, in order. The
                cache key (`Stage.cache_key`) is the settings that determine a stage's result.
        """
        # library versions are in the key: another version may train other weights
        return self.root / json_digest([*self.common, stages])

    @contextlib.contextmanager
    def one_at_a_time(self, folder: Path) -> Iterator[None]:
        """Context manager: other runs that need the same stage wait, and can then copy it.

        Args:
            folder: cache folder of the stage.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / f".{folder.name}.lock").open("ab") as file:
            with contextlib.suppress(OSError):  # network file systems without locks
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    print(f"another run has the stage of '{folder}': waiting", file=sys.stderr)
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def take(self, folder: Path, out: Path) -> bool:
        """Replace `out` by a copy of a finished stage; return whether this was done.

        Args:
            folder: cache folder of the stage. If it has no finished stage, `out` is not replaced.
            out: folder of the stage in the run.
        """
        # remains of a killed copy: commands would count its rows as rows of this run
        shutil.rmtree(_partial(out), ignore_errors=True)
        if not (summary := finished(folder)):
            return False
        shutil.rmtree(out, ignore_errors=True)
        _copy(folder, out, {**summary, "shared": folder.name})
        return True

    def keep(self, folder: Path, out: Path) -> None:
        """Copy a finished stage into the cache, for other runs.

        Args:
            folder: cache folder of the stage. If it exists, nothing is copied.
            out: folder of the stage in the run.
        """
        if not folder.exists():
            _copy(out, folder, finished(out) or {})


def _copy(source: Path, target: Path, summary: JsonMapping) -> None:
    """Copy a folder and replace its summary; `target` appears only when the copy is complete."""
    partial = _partial(target)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        shutil.copytree(source, partial)
        write_json(partial / "summary.json", summary)
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _partial(target: Path) -> Path:
    return target.parent / f".{target.name}.partial"
