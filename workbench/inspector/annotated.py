"""What people said of claims: a record of its own for each run, below the runs folder, with a
row for each labelled answer.

It is like any other record (`workbench agree annotations/RUN RUN` compares the two): a row has
the person's verdicts alone, since those are what a judge is compared with, and a row that is
labelled again stands in the place of the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from workbench.failures import is_remark, unjudged
from workbench.inspector.runs import Runs, damage
from workbench.store import ROLLOUTS, iter_feedback, put_feedback
from workbench.types import CLAIM_LABELS, Feedback, Verdict, WorkbenchError
from workbench.world.oracle import P_TRUE

ANNOTATIONS = "annotations"  # the folder, below the runs folder
PERSON = "annotation"  # what `by` of a person's verdict says
# by claim: "label" and "informativeness", each if it was given; {}: taken back
Edits = Mapping[str, Mapping[str, Any]]

Claims = tuple[str, tuple[tuple[int, str], ...]]

_writing = Lock()
# how each record looked, and its rows
_known: dict[Path, tuple[tuple[int, int, int], dict[str, Feedback]]] = {}


def relabelled(feedback: Feedback, edits: Edits) -> Feedback:
    """The row with verdicts on claims as a person gave them.

    Raises:
        WorkbenchError: a label or a rating that there is none of.
    """
    verdicts = list(feedback.verdicts)
    for claim, edit in edits.items():
        target = f"claim:{int(claim)}"
        place = next(
            (n for n, v in enumerate(verdicts) if v.target == target and v.aspect == "fact"), None
        )
        old = Verdict(target, "fact") if place is None else verdicts[place]
        label, rating = (
            edit.get("label", old.label),
            edit.get("informativeness", old.informativeness),
        )
        if label not in CLAIM_LABELS or rating not in (None, 1, 2, 3, 4, 5):
            raise WorkbenchError(
                f"'{label}' with informativeness {rating} is no verdict: choose one of"
                f" {', '.join(CLAIM_LABELS)}, and 1 to 5"
            )
        # this person could read it
        read = (item for item in old.evidence if not unjudged({"evidence": (item,)}))
        evidence = tuple(item for item in read if not is_remark(item))
        new = Verdict(
            target,
            "fact",
            label,
            p=P_TRUE[label],
            informativeness=rating,
            evidence=evidence,
            by=PERSON,
        )
        verdicts = (
            [*verdicts, new] if place is None else [*verdicts[:place], new, *verdicts[place + 1 :]]
        )
        if rating != old.informativeness:  # of no use for a reason that holds no more
            verdicts = [
                verdict
                for verdict in verdicts
                if (verdict.target, verdict.aspect) != (target, "subject")
            ]
    return replace(feedback, verdicts=tuple(verdicts))


def annotate(runs: Runs, run: str | None, feedback: Feedback, edits: Edits) -> str:
    """Keep a person's verdicts on a row of a run, or of none, beside those given before; returns
    the name of the file.

    Raises:
        WorkbenchError: there is no such claim, label or rating; or the record of annotations
        leads elsewhere, or is damaged.
    """
    if not isinstance(feedback.response.id, str):
        raise WorkbenchError("the row's id is no text: mend it, or label another")
    known = {str(claim.id) for claim in feedback.claims}
    if strange := [claim for claim in edits if str(claim) not in known]:
        raise WorkbenchError(
            f"the answer has no claim {strange[0]!r:.20}: choose one of its {len(known)}"
        )
    folder = _folder(runs, run)
    with _writing:
        stored = labelled_rows(runs, run).get(feedback.response.id)
        given = (
            {v.target: v for v in stored.verdicts}
            if stored and said_of(stored, claims_of(feedback))
            else {}
        )
        for claim, edit in edits.items():
            target = f"claim:{claim}"
            old = given.pop(target, None)
            if edit:
                kept = {"label": old.label, "informativeness": old.informativeness} if old else {}
                row = relabelled(feedback, {claim: {**kept, **edit}})
                given[target] = next(
                    v for v in row.verdicts if (v.target, v.by) == (target, PERSON)
                )
        put_feedback(
            folder, replace(feedback, verdicts=tuple(given.values()), rewards={}), remove=not given
        )
    return (folder.relative_to(runs.root) / ROLLOUTS).as_posix()


def labelled_rows(runs: Runs, run: str | None) -> dict[str, Feedback]:
    """The labelled rows of a run by id, with a person's verdicts alone; {} where nobody has
    labelled any.

    Raises:
        WorkbenchError: the record leads elsewhere, or is damaged.
    """
    folder = _folder(runs, run)
    path = folder / ROLLOUTS
    with damage(f"'{folder.relative_to(runs.root)}'"):
        if not path.is_file():
            return {}
        stat = path.stat()
        if _known.get(path, (None,))[0] != (look := (stat.st_ino, stat.st_size, stat.st_mtime_ns)):
            _known[path] = look, {row.response.id: row for row in iter_feedback(folder)}
        return dict(_known[path][1])


def labels(runs: Runs, run: str, feedback: Feedback) -> dict[int, str]:
    """What a person said of each claim of a row of a run."""
    return said_of(labelled_rows(runs, run).get(str(feedback.response.id)), claims_of(feedback))


def said_of(stored: Feedback | None, claims: Claims) -> dict[int, str]:
    """What a person said of these claims; nothing where others were read under that id, as
    before a run was trained anew.
    """
    if stored is None or claims_of(stored) != claims:
        return {}
    return {
        int(v.target[6:]): v.label
        for v in stored.verdicts
        if v.target.startswith("claim:") and v.label in CLAIM_LABELS
    }


def claims_of(row: Feedback) -> Claims:
    """What a row says: its answer, and each of its claims."""
    return row.response.text, tuple((claim.id, claim.text) for claim in row.claims)


def _folder(runs: Runs, run: str | None) -> Path:
    """Where the annotations of a run are kept; no link on the way there is followed."""
    folder = (
        runs.root / ANNOTATIONS
        if run is None
        else runs.root / ANNOTATIONS / runs.folder(run).relative_to(runs.root)
    )
    inside = [
        folder / ROLLOUTS,
        folder,
        *(path for path in folder.parents if runs.root in path.parents),
    ]
    if any(path.is_symlink() for path in inside):
        raise WorkbenchError(
            f"'{ANNOTATIONS}' in the runs folder, or a file in it, is a link: remove it"
        )
    return folder
