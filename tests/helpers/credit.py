"""Token rewards for tests of trainers, and differences between two runs' weights."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workbench.runs.checkpoints import metrics_rows
from workbench.types import Event, Feedback, Grade, JsonObject, Response, Reward, Verdict


def by_token(responses: Sequence[Response]) -> list[Feedback]:
    """Reward every token by its id; about one response in six is not scored."""
    return [_by_token(response) for response in responses]


def all_scored(responses: Sequence[Response]) -> list[Feedback]:
    """`by_token` with -1 for unscored responses, which only TRL keeps in its denominators."""
    return [f if f.rewards["m"].value is not None else _worst(f) for f in by_token(responses)]


def _worst(feedback: Feedback) -> Feedback:
    tokens = (-1.0, *(0.0 for _ in feedback.response.token_ids[1:]))
    return replace(feedback, rewards={"m": Reward(-1.0, tokens=tokens)})


def _by_token(response: Response) -> Feedback:
    tokens = tuple((id % 5 - 2.0) * (place % 2) for place, id in enumerate(response.token_ids))
    if sum(response.token_ids) % 6 == 0:
        return Feedback(response, rewards={"m": Reward(None)})
    events = tuple(
        Event("odd", value, end)
        for value, (_, end) in zip(tokens, response.offsets, strict=True)
        if value
    )
    verdicts = (
        Verdict("claim:0", "fact", "wrong"),
        Verdict("claim:1", "fact", "correct"),
        Verdict("outcome", "answer", "correct"),
    )
    return Feedback(
        response,
        verdicts=verdicts,
        rewards={"m": Reward(sum(tokens), {"odd": sum(tokens)}, events, tokens, (7,))},
    )


def interrupting(grade: Grade, call: int) -> Grade:
    """Raise Ctrl-C in call number `call` of `grade`."""
    calls: list[int] = []

    def graded(responses: Sequence[Response]) -> list[Feedback]:
        calls.append(len(responses))
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return grade(responses)

    return graded


def weights(out: Path) -> JsonObject:
    from safetensors.torch import load_file

    return load_file(out / "policy" / "adapter_model.safetensors")


def largest_difference(one: Path, other: Path) -> float:
    first, second = weights(one), weights(other)
    return max((first[name] - second[name]).abs().max().item() for name in first)


def steps_of(out: Path) -> list[JsonObject]:
    """A run's metrics without values that differ between equal runs."""
    return [
        {name: value for name, value in row.items() if not name.startswith("seconds")}
        for row in metrics_rows(out)
    ]
