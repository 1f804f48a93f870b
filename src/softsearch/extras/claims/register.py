"""When the comparisons of a claim were written, and what was known then.

A comparison is registered with the date and the commit before the first training of its claim. One that is added or
changed later keeps for ever what was known: the results of trainings that had finished. The register is in
``results.json``; dropped comparisons stay in it.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from softsearch.app import code_state, describe_machine
from softsearch.extras.claims.claim import Claim, Comparison
from softsearch.extras.claims.measures import digest
from softsearch.extras.claims.verdict import margin_of
from softsearch.files import new_file
from softsearch.text.parts import read_json

Register = Mapping[str, Mapping[str, Any]]  # by hash of the comparison: says, date, commit, known (null: nothing)
_CHANGES = "+changes"
STARTS = "starts.txt"  # in the folder of a training: date, commit and machine of each start


def comparison_hash(comparison: Comparison, margins: Mapping[str, float]) -> str:
    """Returns the hash of what a comparison tests; its words do not count."""
    cells = [str(side) for side in (comparison.left, comparison.right)]
    return digest([*cells, margin_of(comparison, margins), comparison.chance])


def program_hash(claim: Claim) -> str:
    """Returns the hash of what is trained and measured, except the seeds."""
    parts = {**claim.files, **claim.measures}
    nodes = {name: OmegaConf.to_container(node, resolve=True) for name, node in parts.items() if node is not None}
    return digest([nodes, *(getattr(claim, key) for key in ("common", "sizes", "runs"))])


def registered(claim: Claim, register: Register, known: str | None) -> Register:
    """Returns the register with the comparisons of a claim that are not in it.

    Args:
        claim: the claim.
        register: the register so far.
        known: which results are known; None: none.
    """
    now = {"date": today(), "commit": _commit(), "known": known}
    hashes = {comparison_hash(each, claim.margins): each.says for each in claim.holds}
    kept = {key: {**entry, "says": hashes.get(key, entry["says"])} for key, entry in register.items()}
    return kept | {key: {"says": says, **now} for key, says in hashes.items() if key not in register}


def register_before(claim: Claim, path: Path, register: Register, finished: int, known: str | None) -> Register:
    """Registers the comparisons of a claim before its trainings, in a file that stays.

    Args:
        claim: the claim.
        path: the file.
        register: that of published results, if there are any.
        finished: how many of its trainings have finished.
        known: which results are published; None: none.
    """
    known = known or (f"{finished} trainings had finished" if finished else None)
    found = registered(claim, {**register, **(read_json(path) if path.is_file() else {})}, known)
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path) as file:
        file.write(json.dumps(found, ensure_ascii=False, indent=1).encode())
    return found


def note_start(folder: Path) -> None:
    """Notes the date, the commit and the machine of a start of a training."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / STARTS).open("a", encoding="utf-8") as file:
        file.write(f"{today()} {_commit() or 'unknown'} {describe_machine()}\n")


def noted_now() -> dict[str, Any]:
    """Returns the date and the commit of a measurement."""
    return {"date": today(), "commits": [_commit() or "unknown"]}


def noted_starts(folder: Path) -> dict[str, Any]:
    """Returns the machine and the date of the last start of a training, and the commits of all."""
    path = folder / STARTS
    starts = (
        [line.split(maxsplit=2) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    )
    date, _, machine = starts[-1] if starts else (None, None, describe_machine())
    return {"machine": machine, "date": date, "commits": list(dict.fromkeys(commit for _, commit, _ in starts))}


def _commit() -> str | None:
    """Returns the commit, and whether code or configs have changes, which pages that are published do not count as."""
    state = code_state("src", "configs")
    return state["commit"] and f"{state['commit']}{_CHANGES * state['dirty']}"


def short_commit(commit: str) -> str:
    """Returns the first digits of a commit, and whether there were changes."""
    return f"{commit[:8]}{_CHANGES * commit.endswith(_CHANGES)}"


def today() -> str:
    """Returns the date, such as 2025-01-31."""
    return datetime.now(UTC).date().isoformat()
