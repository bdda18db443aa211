"""`workbench export --claims`: one row per claim, and no formulas in CSV files."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers import Cli, refusal
from tests.helpers.errors import raises_error
from workbench.experiments.claims_table import export_claims, write_table
from workbench.runs.store import append_feedback
from workbench.types import Claim, Event, Feedback, Passage, Question, Response, Reward, Verdict

TOWER = Passage("p", "Tower", "It is in Paris. It was built in 1889.")


def feedback(text: str = "=1+1 is in Paris.") -> Feedback:
    question = Question("q", "@Where?", passages=(TOWER,))
    response = Response("r-1", question, text, offsets=((0, 4), (5, 7), (8, 17)))
    claim = Claim(0, text, sentence=0, span=(5, 17), end=17)
    fact = Verdict(
        "claim:0", "fact", "correct", 0.9, 3, evidence=({"passage": "p", "span": [0, 15]},)
    )
    events = (Event("truth", 2.0, 17, 0), Event("length", -0.5, None))
    rewards = {
        "rlfh": Reward(1.5, {}, events, (0.0, 0.0, 1.5)),
        "truthrl": Reward(1.0, {}, (Event("outcome", 1.0),)),
    }
    return Feedback(response, ((0, 17),), (claim,), (fact,), rewards)


@pytest.mark.parametrize("name", ["c.csv", "new/c.parquet"])
def test_a_row_has_the_claim_its_verdict_evidence_rewards_and_tokens(
    tmp_path: Path, cli: Cli, name: str
) -> None:
    one = feedback()
    append_feedback(
        tmp_path / "r.jsonl", [replace(one, claims=(replace(one.claims[0], section="a\udc80"),))]
    )
    code, out, _ = cli(f"export {tmp_path / 'r.jsonl'} --claims {tmp_path / name} --json")
    assert code == 0 and '"claims": 1' in out
    read = pd.read_csv if name.endswith("csv") else pd.read_parquet
    [row] = read(tmp_path / name).to_dict("records")
    quote = "'" if name.endswith("csv") else ""
    assert (row["question"], row["text"]) == (f"{quote}@Where?", f"{quote}=1+1 is in Paris.")
    wanted = {"id": "r-1", "question_id": "q", "claim": 0, "start": 5, "end": 17, "p": 0.9}
    wanted |= {"label": "correct", "evidence": "It is in Paris.", "reward_rlfh": 2.0}
    wanted |= {"first_token": 1, "tokens": 2, "section": "a\ufffd"}
    wanted |= {"response_rlfh": 1.5, "response_truthrl": 1.0}
    assert {key: row[key] for key in wanted} == wanted
    assert pd.isna(row["reward_truthrl"])  # it rewards no claims


@pytest.mark.parametrize("start", [*"=+-@＝＠", "\t=", "x\n=", "x\r=", "x\t@"])
def test_no_cell_and_no_header_of_a_csv_file_is_a_formula(tmp_path: Path, start: str) -> None:
    path = tmp_path / "c.csv"
    with path.open("wb") as file:
        write_table(pd.DataFrame({f"{start}h": [f"{start}c"]}), file, "csv")
    cells = path.read_text().replace("\n", "\t").replace('"', "\t").split("\t")
    assert not [cell for cell in cells if cell[:1] in {*"=+-@＝＠"} - {""}]


def test_unknown_formats_existing_files_and_wrong_options_are_refused(
    tmp_path: Path, cli: Cli
) -> None:
    append_feedback(tmp_path / "r.jsonl", [feedback()])
    (tmp_path / "c.csv").touch()
    for name, message in (
        ("c.xlsx", r"name a \.csv or a \.parquet file"),
        ("c.csv", "exists already"),
    ):
        with raises_error(message):
            export_claims(tmp_path / "r.jsonl", tmp_path / name)
    for options in ("", "--claims x.csv --merged x"):
        err = refusal(cli(f"export {tmp_path / 'r.jsonl'} {options}"))
        assert "--merged DIR" in err and "--claims FILE" in err
    for option in ("--push ada/kern", "--public"):
        err = refusal(cli(f"export {tmp_path / 'r.jsonl'} --claims {tmp_path / 'x.csv'} {option}"))
        assert f"{option.split()[0]} uploads a model" in err and "--merged DIR" in err
        assert not (tmp_path / "x.csv").exists()


def test_without_claims_the_table_has_its_columns(tmp_path: Path) -> None:
    append_feedback(tmp_path / "r.jsonl", [replace(feedback(), claims=(), verdicts=(), rewards={})])
    assert export_claims(tmp_path / "r.jsonl", tmp_path / "c.csv")["claims"] == 0
    columns = pd.read_csv(tmp_path / "c.csv").columns
    assert {"id", "text", "label", "evidence", "first_token"} <= {*columns}
