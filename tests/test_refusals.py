"""A command that is refused writes nothing: no folder, no lock, no empty file, and what was
there is as it was.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import world_rows, write
from workbench.cli import main
from workbench.runs.folder import lock, open_run
from workbench.scoring import Options, score_file
from workbench.types import WorkbenchError

FOREIGN = {"mine": 1}
REFUSED = {
    "score: no question in any row": "score --in empty.jsonl --out new/a/f.jsonl",
    "score: claims without passages": "score --in bare.jsonl --out new/a/f.jsonl --judge local",
    "score: a judge without passages": (
        "score --in bare.jsonl --out new/f.jsonl --judge http://127.0.0.1:9/v1 --model m"
    ),
    "score: and a cache": (
        "score --in bare.jsonl --out new/f.jsonl --judge http://127.0.0.1:9/v1 --model m --cache"
        " c/d.sqlite"
    ),
    "klcf prepare: a judge of its own": (
        "klcf prepare --out new --judge http://127.0.0.1:9/v1 --judge-model m"
    ),
    "klcf prepare: no samples": "klcf prepare --out new --set klcf.prepare.samples=0",
    "probe: no Ray, or no cluster": "probe --out new/a --actors 2 --address 127.0.0.1:9",
    "probe: a cluster without actors": "probe --out new/a --address 127.0.0.1:9",
    "klcf prepare: no such kind": "klcf prepare --out new --kind nonsense",
    "score: no such check": (
        "score --in rows.jsonl --out new/f.jsonl --judge world --set klcf.w_general=1 --method klcf"
    ),
    "score: no such index": "score --in bare.jsonl --out new/f.jsonl --judge local --store nowhere",
    "score: no such verdict in a store": (
        "score --in rows.jsonl --out new/f.jsonl --judge world --tokenizer ./nowhere"
    ),
    "score: questions of something else": (
        "score --in rows.jsonl --out foreign/f.jsonl --judge world"
    ),
    "score: passages of something else": "score --in rows.jsonl --out pages/f.jsonl --judge world",
    "score: other settings": (
        "score --in rows.jsonl --out scored/f.jsonl --judge world --method rlfh --set rlfh.alpha=2"
    ),
    "score: an index for other settings": (
        "score --in bare.jsonl --out scored/f.jsonl --method rlfh --passages many.jsonl"
    ),
    "score: actors of no engine": (
        "score --in rows.jsonl --out new/a/f.jsonl --judge world --actors 2"
    ),
    "score: no Ray, or no cluster": (
        "score --in rows.jsonl --out new/f.jsonl --judge world --engine ray --address 127.0.0.1:9"
    ),
    "train: no such bench": "train truthrl --out new/run --bench huge",
    "train: no questions": "train truthrl --out new/run --bench paper",
    "train: no such field": "train truthrl --out new/run --set truthrl.none=1",
    "train: a folder of something else": "train truthrl --out foreign --steps 1",
    "demo: a folder of something else": "demo --out demo",
    "world export: a folder of something else": "world export --out foreign",
    "world build: a finished build": "world build --out built --size small",
    "index build: no such file": "index build a --root new/indexes --from nowhere.jsonl",
    "index build: no text": "index build a --root new/indexes --from foreign/questions.jsonl",
    "index build: empty texts": "index build a --root new/indexes --from blank.jsonl",
    "index build: a folder of something else": "index build ./foreign --from pages.jsonl",
    "import: nothing that was logged": "import trl rows.jsonl --out new/a/f.jsonl",
    "import: questions of something else": "import trl logged.jsonl --out foreign/f.jsonl",
    "verifier train: no pairs": "verifier train --data rows.jsonl --out new/verifier",
    "metrics: figures of one file": "metrics scored/f.jsonl --figures new/figures",
}


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    for name in ("foreign", "pages", "demo/ternary", "built"):
        (folder / name).mkdir(parents=True)
    write(folder / "rows.jsonl", world_rows(2))
    write(folder / "bare.jsonl", [{"id": 1, "question": "Who?", "response": "Ada is a painter."}])
    write(folder / "empty.jsonl", [{"id": 1}])
    write(folder / "blank.jsonl", [{"text": " "}])
    write(folder / "pages.jsonl", [{"text": "Ada is a painter."}])
    write(folder / "many.jsonl", [{"text": f"Ada has {number} pictures."} for number in range(600)])
    write(folder / "logged.jsonl", [{"step": 1, "prompt": "Who?", "completion": "Ada.", "r": 1.0}])
    for name in (
        "foreign/questions.jsonl",
        "foreign/metrics.jsonl",
        "pages/passages.jsonl",
        "demo/ternary/metrics.jsonl",
    ):
        write(folder / name, [FOREIGN])
    (folder / "built" / "card.json").write_text('{"seed": 9}')
    score_file(Options(folder / "rows.jsonl", folder / "scored" / "f.jsonl", "rlfh", "world"))
    (folder / "scored" / ".lock").unlink()
    return folder


@pytest.mark.parametrize("command", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(place)
    before = tree(place)
    with pytest.raises(SystemExit) as exit:
        main(command.split())
    assert exit.value.code == 2, capsys.readouterr().err
    assert tree(place) == before


TYPOS = {
    "train truthrl --out new/run --set truthrl.rewrd=binary": "has no field 'rewrd'",
    "train truthrl --out new/run --set truthrl.reward=binry": "choose one of ternary, binary",
    "train truthrl --out new/run --set truthrl.kinds=singel": "choose among ",
    "train truthrl --out new/run --policy nowhere": "no policy folder 'nowhere'",
    "evaluate nowhere --split test": "no policy folder 'nowhere'",
    "evaluate sft --split test --kind singel --kind single": (
        "no questions of kinds singel in split 'test': choose among "
    ),
    "probe --policy nowhere": "no policy folder 'nowhere'",
    "probe --kind singel": "of kinds singel in split 'validation': choose among ",
    "answer Who? --policy nowhere": "no policy folder 'nowhere'",
    "score --in rows.jsonl --out new/f.jsonl --set rlfh.alpa=2": "has no field 'alpa'",
    "score --in rows.jsonl --out new/f.jsonl --judge wrld": "no judge 'wrld'",
    "score --in nothing.jsonl --out new/f.jsonl": "the file is empty: name one with rows",
    "score --in latin.jsonl --out new/f.jsonl": ("save it as UTF-8; no row can be scored\n"),
    "train truthrl --out new/run --bench small --questions latin.jsonl": "save it as UTF-8",
}
HEAVY = ("torch", "transformers", "trl", "peft", "datasets")
TOLD = """
import json, sys
from workbench.cli import main
for command in json.load(sys.stdin):
    try:
        main(command.split())
    except SystemExit as exit:
        loaded = [name for name in %r if name in sys.modules]
        print(json.dumps([exit.code, loaded]), file=sys.stdout)
        print("", file=sys.stderr)
"""


@pytest.mark.slow
def test_a_typo_is_told_before_anything_heavy_is_imported(place: Path) -> None:
    write(place / "nothing.jsonl", [])
    (place / "latin.jsonl").write_bytes('{"question": "Zoé?", "response": "x"}\n'.encode("latin-1"))
    code = [sys.executable, "-c", TOLD % (HEAVY,)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        code, input=json.dumps([*TYPOS]), capture_output=True, text=True, cwd=place, env=environment
    )
    told = done.stderr.split("\n\n")
    assert len(told) == len(TYPOS) + 1, done.stderr
    for (command, remedy), line, message in zip(
        TYPOS.items(), done.stdout.splitlines(), told, strict=False
    ):
        assert json.loads(line) == [2, []], (command, line, message)
        assert remedy in f"{message}\n" and message.count("\n") == 0, (command, message)
    assert not (place / "new").exists() and not (place / "runs").exists()


def test_a_run_whose_policy_cannot_be_loaded_leaves_nothing(tmp_path: Path) -> None:
    """Its config.json goes as well, unless it was there before or something else has been
    written.
    """
    with raises_error("cannot load"), lock(tmp_path / "new" / "run"):
        open_run(tmp_path / "new" / "run", {"method": "truthrl"})
        raise WorkbenchError("cannot load")
    assert not (tmp_path / "new").exists()
    folder = tmp_path / "begun"
    with raises_error("later"), lock(folder):
        open_run(folder, {"method": "truthrl"})
        (folder / "before.json").write_text("{}")
        raise WorkbenchError("later")
    assert (folder / "config.json").exists()
    (folder / "before.json").unlink()
    with raises_error("again"), lock(folder):
        raise WorkbenchError("again")
    assert (folder / "config.json").exists()


def test_a_refusal_takes_back_its_own_lock_alone(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with lock(tmp_path / "held"):
        with raises_error("another process"), lock(tmp_path / "held"):
            pass
        assert (tmp_path / "held" / ".lock").exists()
    with raises_error("mine"), lock(tmp_path / "held"):
        raise WorkbenchError("mine")
    assert (tmp_path / "held" / ".lock").exists()  # from before
    with raises_error("mine"), lock(tmp_path / "new" / "run"):
        raise WorkbenchError("mine")
    assert not (tmp_path / "new").exists()


def test_a_lock_that_was_taken_back_holds_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that opened the file before its holder took it back has the lock of a file that
    is not there any more.
    """
    fcntl = pytest.importorskip("fcntl")
    flock = fcntl.flock

    def late(file: Any, how: int) -> None:
        (tmp_path / ".lock").unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with raises_error("another process"), lock(tmp_path):
        pass
