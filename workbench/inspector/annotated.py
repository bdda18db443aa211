"""Store the labels that a person gives to the claims of a run.

Each labelled response is stored as a feedback row in `annotations/RUN`. The row has only the
person's verdicts, so `workbench agree annotations/RUN RUN` compares them with the judge's verdicts.
Labelling a response again replaces its row.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock

from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view.payload import quoted
from workbench.runs.store import ROLLOUTS, iter_feedback, put_feedback
from workbench.types import CLAIM_LABELS, Feedback, JsonMapping, Verdict, WorkbenchError
from workbench.world.oracle import P_TRUE

ANNOTATIONS = "annotations"  # the folder, below the runs folder
PERSON = "annotation"  # `by` of a person's verdict
# claim id -> {"label", "informativeness"}, both optional; `annotate` removes the verdict for {}
Edits = Mapping[str, JsonMapping]

# an answer, and the id and text of each of its claims
Claims = tuple[str, tuple[tuple[int, str], ...]]

_writing = Lock()
# by path: the file's inode, size and time, and its rows
_cache: dict[Path, tuple[tuple[int, int, int], dict[str, Feedback]]] = {}


def relabelled(feedback: Feedback, edits: Edits) -> Feedback:
    """Return a copy of a graded response with a person's verdicts on some of its claims.

    Args:
        edits: claim id -> verdict that replaces the judge's verdict, such as
            {"2": {"label": "wrong", "informativeness": 3}}. If one of these keys is missing, the
            judge's value is kept.

    Raises:
        WorkbenchError: a label is unknown, or an informativeness is not 1 to 5 or None.
    """
    for claim, edit in edits.items():
        target = f"claim:{int(claim)}"
        old = feedback.verdict(target, "fact") or Verdict(target, "fact")
        label = edit.get("label", old.label)
        rating = edit.get("informativeness", old.informativeness)
        if label not in CLAIM_LABELS or rating not in (None, 1, 2, 3, 4, 5):
            raise WorkbenchError(
                f"the label must be one of {', '.join(CLAIM_LABELS)} (got '{label}'), and the"
                f" informativeness 1 to 5 (got {rating})"
            )
        # the judge's remarks and its reasons for not judging the claim no longer apply
        new = Verdict(target, "fact", label, P_TRUE[label], rating, quoted(old), PERSON)
        # a changed rating also removes the reason for the old one
        replaced = {"fact"} if rating == old.informativeness else {"fact", "subject"}
        others = [v for v in feedback.verdicts if v.target != target or v.aspect not in replaced]
        feedback = replace(feedback, verdicts=(new, *others))
    return feedback


def annotate(runs: Runs, run: str | None, feedback: Feedback, edits: Edits) -> str:
    """Store a person's verdicts on some claims of a graded response.

    Stored verdicts on other claims are kept, unless the answer or its claims have changed.

    Args:
        run: name of the run that has the response; None if no run has it.
        edits: claim id -> {"label", "informativeness"}, both optional, or {} to remove the stored
            verdict.

    Returns:
        The path of the file with the verdicts, relative to the runs folder.

    Raises:
        WorkbenchError: a claim, label or rating is not valid, or the annotations folder is a link
            or damaged.
    """
    if not isinstance(feedback.response.id, str):
        raise WorkbenchError(
            f"the row's id, {feedback.response.id!r:.20}, is not a text: fix the id, or label"
            " another row"
        )
    ids = {str(claim.id) for claim in feedback.claims}
    if unknown := [claim for claim in edits if str(claim) not in ids]:
        raise WorkbenchError(
            f"the answer has no claim {unknown[0]!r:.20}: choose one of its {len(ids)} claims"
        )
    folder = _folder(runs, run)
    with _writing:
        stored = labelled_rows(runs, run).get(feedback.response.id)
        verdicts: dict[str, Verdict] = {}
        # stored labels are dropped if the answer or its claims changed: the claims may be others
        if stored and labels_in(stored, claims_of(feedback)):
            verdicts = {v.target: v for v in stored.verdicts}
        for claim, edit in edits.items():
            target = f"claim:{claim}"
            old = verdicts.pop(target, None)
            if not edit:
                continue
            if old:
                edit = {"label": old.label, "informativeness": old.informativeness, **edit}
            row = relabelled(feedback, {claim: edit})
            verdicts[target] = next(v for v in row.verdicts if (v.target, v.by) == (target, PERSON))
        row = replace(feedback, verdicts=tuple(verdicts.values()), rewards={})
        put_feedback(folder, row, remove=not verdicts)
    return (folder.relative_to(runs.root) / ROLLOUTS).as_posix()


def labelled_rows(runs: Runs, run: str | None) -> dict[str, Feedback]:
    """Return a run's responses that a person has labelled: response id -> graded response.

    They contain only the person's verdicts. If `run` is None, return the labelled responses that
    belong to no run.

    Raises:
        WorkbenchError: the annotations folder is a link or damaged.
    """
    folder = _folder(runs, run)
    path = folder / ROLLOUTS
    with damage(f"'{folder.relative_to(runs.root)}'"):
        if not path.is_file():
            return {}
        stat = path.stat()
        if _cache.get(path, (None,))[0] != (stamp := (stat.st_ino, stat.st_size, stat.st_mtime_ns)):
            _cache[path] = stamp, {row.response.id: row for row in iter_feedback(folder)}
        return dict(_cache[path][1])


def labels(runs: Runs, run: str | None, feedback: Feedback) -> dict[int, str]:
    """Return the labels that a person gave to a response's claims: claim id -> label."""
    return labels_in(labelled_rows(runs, run).get(str(feedback.response.id)), claims_of(feedback))


def labels_in(stored: Feedback | None, claims: Claims) -> dict[int, str]:
    """Return the person's labels in a stored row: claim id -> label.

    Return {} if `stored` is None, or if its answer or claims are no longer those in `claims` (the
    result of `claims_of` for the current row).
    """
    return fact_labels(stored) if stored and claims_of(stored) == claims else {}


def fact_labels(row: Feedback) -> dict[int, str]:
    """Return how each claim of a row is labelled: claim id -> label, such as "wrong".

    Claims without a verdict, or whose judging failed, are left out.
    """
    verdicts = (v for v in row.verdicts if v.aspect == "fact" and v.target.startswith("claim:"))
    return {int(v.target[6:]): v.label for v in verdicts if v.label in CLAIM_LABELS and not v.error}


def claims_of(row: Feedback) -> Claims:
    """Return a row's answer, and the (id, text) of each of its claims."""
    return row.response.text, tuple((claim.id, claim.text) for claim in row.claims)


def _folder(runs: Runs, run: str | None) -> Path:
    """Return the folder of a run's annotations; raise a WorkbenchError for a link in its path."""
    if run is not None:
        runs.folder(run)  # raises for names that lead out of the runs folder
    # RUN.jsonl gets the folder RUN.rows, because a run in a folder RUN may exist, too
    folder = runs.root / ANNOTATIONS / re.sub(r"\.jsonl$", ".rows", run or "")
    paths = (folder / ROLLOUTS, folder, *folder.parents)
    if any(path.is_symlink() for path in paths if runs.root in path.parents):
        raise WorkbenchError(
            f"'{ANNOTATIONS}' in the runs folder, or a file in it, is a symbolic link: remove it"
        )
    return folder
