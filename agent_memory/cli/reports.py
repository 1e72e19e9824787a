"""The texts of commands' results: duplicates, histories, backups, erasures, imports and others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_memory import OnSecret
from agent_memory.cli.hits import memory_cells
from agent_memory.cli.tables import clip, safe, styled, table
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory import (
        AddMemoryResponse,
        AgentSummary,
        BackupFile,
        CheckReport,
        Duplicate,
        DuplicateGroup,
        ErasureReceipt,
        FoundSecrets,
        HistoryEntry,
        ImportReport,
        RebuildReport,
        Rejection,
        Review,
        TidyReport,
    )


def count_text(total: int, archived: int | None) -> str:
    """Say how many memories there are, and how many of them are archived."""
    return counted(total) + (f" ({archived:,} of them archived)" if archived else "")


def backups_text(backups: Sequence[BackupFile]) -> str:
    """Show backups, newest first, one per line."""
    if not backups:
        return "no backups"
    return table(
        ("made", "before", "with archived", "MB", "path"),
        [
            (
                f"{backup.made_at:%Y-%m-%d %H:%M:%S}",
                backup.reason or "-",
                "-" if backup.memory_count is None else f"{backup.memory_count:,}",
                f"{backup.size_bytes / 1e6:.2f}",
                backup.path + (f" ({backup.problem})" if backup.problem else ""),
            )
            for backup in backups
        ],
    )


def tidy_text(report: TidyReport) -> str:
    """Show what was archived or would be, and what stays although a limit is exceeded."""
    lines = []
    if report.archived:
        rows = [
            (memory.memory_id, memory.kind, memory.reason, memory.content)
            for memory in report.archived
        ]
        lines.append(table(("id", "kind", "reason", "content"), rows))
    verb = "would be archived" if report.dry_run else "archived"
    lines.append(f"{len(report.archived):,} {verb}")
    return "\n".join([*lines, *map(safe, report.kept)])


def secrets_text(all_secrets: Sequence[FoundSecrets]) -> str:
    """Show which memories seem to contain secrets, and what can be done about it."""
    if not all_secrets:
        return "no memory seems to contain a secret"
    rows = [
        (secrets.memory_id, ", ".join(secrets.kinds), ", ".join(secrets.fields))
        for secrets in all_secrets
    ]
    advice = (
        "change the secret where it is used; `erase ID` removes a memory for good, `reject`"
        " keeps a value out, `configure on_secret mask` masks new ones"
    )
    return f"{table(('id', 'looks like', 'in'), rows)}\n{len(all_secrets):,} found: {advice}"


def rejections_text(rejections: Sequence[Rejection]) -> str:
    """Show what is rejected, one per line; the values themselves are not known."""
    if not rejections:
        return "nothing is rejected"
    return table(
        ("number", "words", "since", "reason"),
        [
            (
                str(rejection.rejection_id),
                str(rejection.word_count),
                f"{rejection.rejected_at:%Y-%m-%d %H:%M}",
                rejection.reason or "-",
            )
            for rejection in rejections
        ],
    )


def receipt_text(receipt: ErasureReceipt) -> str:
    """Show what was erased, and what was found to remain."""
    removed = f"{counted(receipt.memories)}, {counted(receipt.changes, 'change', 'changes')}"
    by_hand = ""
    if receipt.by_hand:
        by_hand = ", " + counted(
            receipt.by_hand, "entity or relationship", "entities and relationships"
        )
        by_hand += " stated by hand"
    count = receipt.files_scanned
    files = counted(count, "file", "files") if count else "rows"
    looked = f"{receipt.bytes_scanned:,} bytes of {files}"
    lines = [
        f"erased: {removed}, {counted(receipt.embeddings, 'vector', 'vectors')}{by_hand}",
        f"searched {looked}: {'nothing' if receipt.clean else 'something'} is left",
    ]
    lines += [f"left: {safe(text)}" for text in receipt.found]
    lines += [
        f"the operator of the database may still have it in {text}" for text in receipt.beyond
    ]
    for copy in receipt.backups:
        state = "erased" if copy.erased else "still contains it" if copy.found else "untouched"
        lines.append(f"{copy.path}: {state}" + (f" ({copy.problem})" if copy.problem else ""))
    if not receipt.with_backups and any(copy.found for copy in receipt.backups):
        lines.append(
            "run it again with --backups and the same IDs, user, run or session to erase from"
            " these too"
        )
    if receipt.also_in:
        lines.append(f"other memories contain part of it: {' '.join(receipt.also_in[:10])}")
    return "\n".join(lines)


def import_text(report: ImportReport) -> str:
    """Show what happened to the entries of a file, or would happen."""
    counts = [
        (report.new, "new"),
        (report.changed, "changed"),
        (report.same, "same"),
        (report.kept, "kept as they were"),
        (report.refused, "refused"),
        (report.erased, "skipped, as erased"),
    ]
    outcome = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    outcome = outcome or ("settings" if report.settings else "no memories")
    lines = [f"{report.format}: {outcome}" + (" (nothing was changed)" if report.dry_run else "")]
    lines += [f"setting {name}: {value}" for name, value in report.settings.items()]
    for notes, count, word in (
        (report.refusals, report.refused, "refused"),
        (report.repairs, report.repaired, "repaired"),
        (report.erasures, report.erased, "skipped"),
    ):
        lines += [
            safe(": ".join(filter(None, (word, note.place, note.message))), one_line=True)
            for note in notes[:20]
        ]
        if count > 20:
            lines.append(f"and {count - 20:,} more {word}: --json lists them")
    lines += [safe(note) for note in report.notes]
    if report.backup:
        lines.append(f"backup: {report.backup}")
    return "\n".join(lines)


def added_text(answer: AddMemoryResponse, *, foreseen: bool) -> str:
    """Return what happened to the facts of a conversation, one per line."""
    lines = [
        f"{memory.event:<7}{f'{memory.id}  ' if memory.id else ''}{memory.memory}"
        + (
            f"  (was: {memory.previous_memory})"
            if memory.previous_memory not in (None, memory.memory)
            else ""
        )
        for memory in answer.data
    ]
    how = answer.metadata
    verb = "that would be done" if foreseen else "done"
    by = f", by {how.decided_by}" if how.decided_by else ""
    if how.reason:
        by += f": {how.reason}"
    lines.append(f"facts: {how.facts_extracted}, operations {verb}: {how.operations_performed}{by}")
    if how.reviews:
        lines.append(f"{len(how.reviews)} under review: `agent-memory review` lists them")
    return "\n".join(lines)


def reviews_text(reviews: Sequence[Review]) -> str:
    """Return the memories under review, each with the reason."""
    if not reviews:
        return "no memory is under review"
    from agent_memory.models.decision import IS_UNKNOWN  # noqa: PLC0415 - most show no review

    lines = []
    for review in reviews:
        sure = "" if review.confidence is None else f" ({review.confidence:.0%} sure)"
        lines.append(f"{review.review_id}. {review.memory_id}  {review.content}{sure}")
        if review.replaced_by:
            lines.append(f"   contradicted by {review.replaced_by}")
        if review.reasoning:
            lines.append(f"   because: {review.reasoning}")
        if review.remaining:
            lines.append(f"   approving leaves: {review.remaining}")
        elif review.remaining is None and review.reasoning not in IS_UNKNOWN:
            lines.append("   only a part of it is contradicted: update it yourself, or dismiss")
    return "\n".join(lines)


def check_text(report: CheckReport) -> str:
    """Show the results of a check, one problem per line."""
    lines = [
        f"{styled(problem.kind, 'bad')}: {problem.detail}"
        f"{' (repaired)' if problem.repaired else ''}"
        for problem in report.problems
    ]
    lines += [f"note: {note}" for note in report.notes]
    total, archived = report.memory_count, report.archived_count
    count = "unknown memories" if total is None else count_text(total, archived)
    state = styled("sound", "good") if report.ok else styled("NOT sound", "bad")
    lines.append(f"{count}, {state}")
    return "\n".join(lines)


def rebuilt_text(report: RebuildReport) -> str:
    """Show what a file was rebuilt from."""
    text = f"rebuilt with {counted(report.memory_count)}: {report.from_file:,} from the old file,"
    text += f" {report.from_backup:,} from the backup"
    text += f", without {len(report.erased):,} that were erased" if report.erased else ""
    text += f". The old file is {report.set_aside}" if report.set_aside else ""
    return "\n".join([text, *map(safe, report.skipped)])


def duplicate_text(duplicate: Duplicate, memory_id: str) -> str:
    """Say in one line what a text repeats; it is now stored as ``memory_id``."""
    earlier = f'{duplicate.memory_id} "{clip(duplicate.content, 60)}"'
    if duplicate.grade == "similar":
        return f"similar to {earlier}: if this corrects it, `update` that one"
    if memory_id != duplicate.memory_id:
        return f"{duplicate.grade} duplicate of {earlier}: both are kept"
    why = ", which was just recalled" if duplicate.recalled_at else ""
    return f"{duplicate.grade} duplicate of {earlier}{why}: not stored again"


def duplicates_text(duplicates: Sequence[Duplicate]) -> str:
    """Show what a text repeats, best grade first, one per line."""
    if not duplicates:
        return "no duplicates"
    return table(
        ("grade", "words", "id", "content"),
        [
            (
                duplicate.grade,
                f"{duplicate.shared_words:.0%}",
                duplicate.memory_id,
                duplicate.content,
            )
            for duplicate in duplicates
        ],
    )


def groups_text(groups: Sequence[DuplicateGroup]) -> str:
    """Show groups of memories that say the same, each after its grade and size."""
    if not groups:
        return "no duplicates"
    return table(
        ("grade", "count", "id", "date", "category", "content"),
        [
            (*((group.grade, str(group.count)) if place == 0 else ("", "")), *memory_cells(memory))
            for group in groups
            for place, memory in enumerate(group.memories)
        ],
    )


def history_text(entries: Sequence[HistoryEntry]) -> str:
    """Show changes, newest first, one per line."""
    return table(
        ("change", "when", "event", "memory", "session", "old", "new"),
        [
            (
                str(entry.change_id),
                f"{entry.changed_at:%Y-%m-%d %H:%M}",
                entry.event,
                entry.memory_id,
                entry.session_id or "-",
                _changed(entry.old_values),
                _changed(entry.new_values),
            )
            for entry in entries
        ],
        flexible=3,
    )


def _changed(values: dict[str, Any] | None) -> str:
    if not values:
        return "-"
    if "content" in values:
        return str(values["content"])
    return json.dumps(values, ensure_ascii=False)


def agents_text(agents: Sequence[AgentSummary]) -> str:
    """Show the agents, one per line."""
    if not agents:
        return "no agents"
    return table(
        ("agent", "memories", "MB", "last used", "problem"),
        [
            (
                agent.agent_id,
                "-" if agent.memory_count is None else f"{agent.memory_count:,}",
                f"{agent.storage_size_mb:.2f}",
                f"{agent.last_accessed:%Y-%m-%d %H:%M}" if agent.last_accessed else "-",
                agent.problem or "",
            )
            for agent in agents
        ],
    )


def secret_text(secrets: FoundSecrets) -> str:
    """Say what looks like a secret in a stored memory, and what can be done."""
    if secrets.decision == OnSecret.MASK:
        return f"{secrets.memory_id}: masked {secrets}"
    return (
        f"{secrets.memory_id} seems to contain a secret ({secrets}): stored as it is; `erase"
        f" {secrets.memory_id}` removes it, `configure on_secret mask` masks new ones"
    )
