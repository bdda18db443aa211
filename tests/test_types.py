"""The stored form of feedback: its keys, and the round trip of a row."""

import json

from workbench.types import (
    Claim,
    Cost,
    Event,
    Failure,
    Feedback,
    Passage,
    Question,
    Response,
    Reward,
    Verdict,
)

QUESTION = Question("q1", "Where was Toma Ardel born?", ("Vetra",), meta={"tier": "known"})
FULL = Feedback(
    response=Response(
        id="r1",
        question=QUESTION,
        text="Vetra 城 👍",
        group="g1",
        sample=2,
        step=3,
        token_ids=(5, 6, 7),
        offsets=((0, 5), (5, 7), (7, 9)),
        logprobs=(-0.1, -0.2, -0.3),
        ref_logprobs=(-0.2, -0.2, -0.2),
        values=(0.1, 0.2, 0.3),
        advantages=(0.0, 1.0, -1.0),
        ratios=(1.0, 0.9, 1.1),
        finish="length",
        source="sampled",
    ),
    sentences=((0, 9),),
    claims=(Claim(0, "Vetra", "answer", 0, (0, 5), 5, 1.0), Claim(1, "nowhere")),
    verdicts=(
        Verdict(
            "claim:0", "fact", "correct", 0.9, 5, ({"passage": "p1", "span": [0, 5]},), "judge"
        ),
        Verdict("outcome", "answer", error=Failure("verify", "no_gold", "x", "raw")),
    ),
    rewards={
        "rlfh": Reward(
            1.3,
            {"truth": 1.3},
            (Event("truth", 1.3, 5, 0), Event("info", 0.0)),
            (0.0, 1.3, 0.0),
            (1,),
        ),
        "truthrl": Reward(None, error=Failure("verify", "no_gold", "nothing to compare with")),
    },
    error=Failure("extract", "parse", "not an object", "{"),
    cost=Cost(2, 1, 30, 4, 0.5),
)
BARE = Feedback(Response("r2", QUESTION, ""))

KEYS = (
    "schema id question_id group sample step response finish tokens sentences claims verdicts"
    " rewards error cost"
)
PART_KEYS = {
    "claims": "id text section sentence span end coverage",
    "verdicts": "target aspect label p informativeness evidence by error",
}


def test_a_row_survives_a_round_trip() -> None:
    for feedback in (FULL, BARE):
        row = json.loads(json.dumps(feedback.to_row()))
        assert Feedback.from_row(row, QUESTION) == feedback
        assert json.loads(json.dumps(Feedback.from_row(row, QUESTION).to_row())) == row


def test_a_row_has_the_keys_that_other_tools_read() -> None:
    row = json.loads(json.dumps(FULL.to_row()))
    assert set(row) == set(KEYS.split()) and row["schema"] == 1
    assert set(row["tokens"]) >= {"source", "ids", "offsets"}
    for name, keys in PART_KEYS.items():
        for part in row[name]:
            assert set(part) == set(keys.split())
    for reward in row["rewards"].values():
        assert set(reward) == {*"value parts events tokens unplaced error".split()}
    assert set(row["rewards"]["rlfh"]["events"][0]) >= {"part", "value", "end", "claim"}
    assert set(row["error"]) == {"stage", "kind", "message", "raw"}
    assert set(row["cost"]) == {"calls", "cached", "tokens_in", "tokens_out", "seconds"}
    assert row["claims"][1]["span"] is None and row["rewards"]["truthrl"]["value"] is None


def test_messages_put_passages_before_the_question() -> None:
    question = Question(
        "q", "Where?", passages=(Passage("p", "Vetra", "Vetra is a city."),), system="Think first."
    )
    assert question.messages() == [
        {"role": "system", "content": "Think first."},
        {"role": "user", "content": "Vetra is a city. Where?"},
    ]


def test_first_verdict_on_a_target() -> None:
    assert FULL.verdict("claim:0") == FULL.verdicts[0]
    assert FULL.verdict("reasoning") is None
    assert FULL.verdict("claim:0", "fact") == FULL.verdicts[0]
    assert FULL.verdict("claim:0", "truth") is None
