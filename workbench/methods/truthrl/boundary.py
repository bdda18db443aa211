"""The "out_of_knowledge" check, read by TruthRL's knowledge-enhanced reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.types import (
    KNOWLEDGE,
    Checked,
    Claims,
    Failure,
    Question,
    Response,
    Verdict,
    Verify,
    WorkbenchError,
)
from workbench.util.jsonl import iter_rows

KNOWN, UNKNOWN = KNOWLEDGE


def out_of_knowledge(found: Mapping[str, bool | None]) -> Verify:
    """Aspect "out_of_knowledge": what a probe found about a response's question (TruthRL, arXiv
    2509.25760, section 3.2).

    `found` says by question id whether it is out of knowledge. A question that was not probed,
    or that a failed sample leaves open (None), is a failure: it is neither known nor unknown.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [Checked((_verdict(found, response.question),)) for response, _ in batch]

    return verify


def _verdict(found: Mapping[str, bool | None], question: Question) -> Verdict:
    verdict, ook = Verdict("response", "out_of_knowledge", by="probe"), found.get(question.id)
    if ook is None:
        why = (
            "has samples that could not be graded and no correct one"
            if question.id in found
            else "was not probed"
        )
        return replace(
            verdict, error=Failure("verify", "not_probed", f"question '{question.id}' {why}")
        )
    return replace(verdict, label=UNKNOWN if ook else KNOWN)


def read_probe(path: Path | str) -> dict[str, bool | None]:
    """Whether each question of a `probe.jsonl` is out of knowledge, for `out_of_knowledge`.

    Raises:
        WorkbenchError: there is no such file, or a row says nothing about that.
    """
    found: dict[str, bool | None] = {}
    for number, row in enumerate(iter_rows(path), start=1):
        if not isinstance(row.get("question_id"), str) or row.get("ook", "") not in (
            True,
            False,
            None,
        ):
            raise WorkbenchError(
                f"{path}: row {number} is not one that `workbench probe` writes: remove that file,"
                " and probe anew"
            )
        found[row["question_id"]] = row["ook"]
    return found
