"""The check "out_of_knowledge", which TruthRL's knowledge-enhanced reward reads (arXiv 2509.25760,
section 3.2).
"""

from collections.abc import Mapping
from pathlib import Path

from workbench.types import KNOWLEDGE, Checked, Failure, Question, Verdict, Verify, WorkbenchError
from workbench.util.jsonl import iter_rows

KNOWN, UNKNOWN = KNOWLEDGE


def out_of_knowledge(probed: Mapping[str, bool | None]) -> Verify:
    """Return the check "out_of_knowledge" from the result of a probe.

    Args:
        probed: question id -> whether the question is out of knowledge. The verdict is a failure
            for a missing question, and for None: failed samples left the probe undecided.
    """

    def verdict(question: Question) -> Verdict:
        unknown = probed.get(question.id)
        if unknown is not None:
            label = UNKNOWN if unknown else KNOWN
            return Verdict("response", "out_of_knowledge", label, by="probe")
        why = (
            "has samples that could not be graded and no correct one"
            if question.id in probed
            else "was not probed"
        )
        error = Failure("verify", "not_probed", f"question '{question.id}' {why}")
        return Verdict("response", "out_of_knowledge", by="probe", error=error)

    return lambda batch: [Checked((verdict(response.question),)) for response, _ in batch]


def read_probe(path: Path | str) -> dict[str, bool | None]:
    """Return whether each question of a `probe.jsonl` is out of knowledge, by question id.

    Raises:
        WorkbenchError: no such file, or a row without this result.
    """
    probed: dict[str, bool | None] = {}
    for number, row in enumerate(iter_rows(path), start=1):
        name, unknown = row.get("question_id"), row.get("ook", "")
        if not isinstance(name, str) or unknown not in (True, False, None):
            raise WorkbenchError(
                f"'{path}': row {number} was not written by `workbench probe`: remove the file and"
                " run the probe again"
            )
        probed[name] = unknown
    return probed
