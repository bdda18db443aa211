"""The table of all findings, from stored results and by its command."""

import tomllib
from pathlib import Path

from benchmarks import scorecard
from tests.helpers import Cli, examples, printed, read_json, refusal, write_json


def test_the_deciding_contrast_is_the_first_with_the_result(tmp_path: Path) -> None:
    contrasts = examples("contrasts")
    finding = {"id": "K99", "source": "table 1", "statement": "It rises.", "result": "fails"}
    write_json(tmp_path / "klcf.json", {"findings": [{**finding, "contrasts": contrasts}]})
    (row,) = scorecard.scorecard(tmp_path, ["K99"])
    assert scorecard.cells(row)[1:] == [
        "fails",
        "It rises. (table 1)",
        "f1 on test: a − 0.5 × b, at least 0.1",
        "+0.010 [-0.020, +0.040]",
        "3",
    ]
    assert "1 fails" in scorecard.counts([row])
    # statements without results are listed, each once
    rest = scorecard.scorecard(tmp_path, ["rlfh_real", "rlfh_real_guarded"])
    assert [row["id"] for row in rest] == [f"H{n}" for n in range(1, 8)]
    assert {row["result"] for row in rest} == {"not run"}


def test_an_id_names_one_finding() -> None:
    files = sorted(scorecard.FINDINGS.glob("*.toml"))
    tables = (tomllib.loads(file.read_text(encoding="utf-8")) for file in files)
    ids = [one["id"] for table in tables for one in table.get("finding", ())]
    assert len(ids) > 100 and len(ids) == len(set(ids))


def test_the_command_prints_the_committed_results(cli: Cli) -> None:
    (found,) = printed(cli("scorecard --only D1 --json"))["findings"]
    stored = read_json(scorecard.RESULTS / "rlfh.json")["findings"][0]
    assert (found["statement"], found["result"]) == (stored["statement"], stored["result"])
    assert found["contrasts"][0]["effect"] == stored["contrasts"][0]["value"]
    assert " findings: " in cli("scorecard")[1]
    error = refusal(cli("scorecard --only D1 --only R999"))
    assert cli("scorecard --quick")[0] == 2
    assert "no finding R999: name one such as D1" in error
