"""Values as JSON, for programs. Text from history is verbatim unless it is masked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from backstory.notes.daily_logs import first_heading
from backstory.notes.facts import list_facts
from backstory.render.hit_parts import (
    CUT_MARK,
    Mask,
    cut_message,
    mask_and_escape,
    mask_lines,
    number_hits,
    show_hit,
    shown_excerpt,
)
from backstory.render.models.sessions import SessionExtract, ShownExtract, ShownMessage
from backstory.settings import Chosen
from backstory.text.escape import UNSAFE, neutralize
from backstory.text.excerpts import EXCERPT_CHARS
from backstory.text.memories_frame import MAX_GIVEN_LINES
from backstory.text.shell import show_command
from backstory.values.access import AccessToken
from backstory.values.activity import Activity, DayActivity
from backstory.values.exports import ExportReport, ImportReport
from backstory.values.forgetting import ForgetReport, Forgetting
from backstory.values.history import Message, Problem, Session
from backstory.values.hits import (
    Episode,
    EpisodeResult,
    Hit,
    Recalled,
    RecallResult,
    SearchResult,
)
from backstory.values.moments import Moment
from backstory.values.notes import FactOrigin
from backstory.values.pushes import PushReport
from backstory.values.query import Query
from backstory.values.reports import (
    CheckedFile,
    IndexReport,
    ListedLog,
    SourceSummary,
    Status,
)
from backstory.values.runs import RunHit, RunItem
from backstory.values.statistics import Statistics

if TYPE_CHECKING:
    from backstory.notes.notebook import NotesSummary
    from backstory.search.prompt_context import Context


def to_json(value: object) -> str:
    """A value as readable JSON, with terminal control characters escaped."""
    written = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def session_object(session: Session, resume: str | None = None) -> dict[str, object]:
    return {
        "host": session.host,
        "id": session.native_id,
        "title": session.title,
        "project": session.project,
        "git_branch": session.git_branch,
        "parent": session.parent_id,
        "started_at": to_iso(session.started),
        "last_active_at": to_iso(session.last_active),
        "messages": session.message_count,
        "preview": session.preview,
        "read_from": session.read_from,
        "last_logged_message_id": session.last_logged_message_id,
        "resume": resume,
    }


def message_object(message: Message) -> dict[str, object]:
    return {
        "number": message.message_id,
        "id": message.native_id,
        "position": message.position,
        "role": message.role.value,
        "text": message.text,
        "tool_name": message.tool_name,
        "call_id": message.call_id,
        "sent_at": to_iso(message.sent),
        "full_bytes": message.full_bytes,
    }


def report_object(report: IndexReport) -> dict[str, object]:
    return {
        "read": report.read,
        "unchanged": report.unchanged,
        "excluded": report.excluded,
        "of_unknown_format": report.unknown,
        "skipped": report.skipped,
        "new_sessions": report.new_sessions,
        "new_messages": report.new_messages,
        "changed_messages": report.changed_messages,
        "read_bytes": report.read_bytes,
        "problems": [problem_object(problem) for problem in report.problems],
    }


def problem_object(problem: Problem) -> dict[str, object]:
    return {"path": problem.path, "line": problem.line, "reason": problem.reason}


def checked_object(file: CheckedFile) -> dict[str, object]:
    return {
        "path": str(file.path),
        "problems": list(file.problems),
        "not_checked": file.not_checked or None,
    }


def forget_object(report: ForgetReport) -> dict[str, object]:
    return {
        "sessions": [
            {
                "host": each.session.host,
                "id": each.session.native_id,
                "title": each.session.title,
                "messages": each.messages,
                "whole": each.is_whole,
            }
            for each in report.sessions
        ],
        "messages": report.messages,
        "log_entries": [
            {"day": entry.day.isoformat(), "heading": entry.heading}
            for entry in report.log_entries
        ],
        "facts": [{"text": fact.text, "copies": fact.copies} for fact in report.facts],
        "with_notes": report.with_notes,
        "copies": [str(path) for path in report.copies],
        "erasure": report.erasure,
        "forgetting": report.forgetting and forgetting_object(report.forgetting),
    }


def forgetting_object(forgetting: Forgetting) -> dict[str, object]:
    return {
        "number": forgetting.forgetting_id,
        "forgotten_at": forgetting.forgotten_at.isoformat(),
        "sessions": forgetting.sessions,
        "messages": forgetting.messages,
        "hosts": list(forgetting.hosts),
        "facts": forgetting.facts,
        "reason": forgetting.reason,
    }


def export_object(report: ExportReport) -> dict[str, object]:
    return {
        "path": str(report.path),
        "sessions": report.sessions,
        "messages": report.messages,
        "memory": report.has_memory,
        "daily_logs": report.daily_logs,
        "masked": report.is_masked,
        "kept_sessions": report.kept_sessions,
        "files_written": report.written,
        "files_unchanged": report.unchanged,
        "files_deleted": report.deleted,
        "size_bytes": report.size_bytes,
        "problems": [problem_object(problem) for problem in report.problems],
    }


def import_object(report: ImportReport) -> dict[str, object]:
    return {
        "path": str(report.path),
        "dry_run": report.is_dry_run,
        "sessions": report.sessions,
        "changed_sessions": report.changed_sessions,
        "new_sessions": report.new_sessions,
        "new_messages": report.new_messages,
        "known_messages": report.known_messages,
        "forgotten_messages": report.forgotten_messages,
        "excluded_sessions": report.excluded_sessions,
        "memory_blocks": report.memory_blocks,
        "log_blocks": report.log_blocks,
        "logs": report.logs,
        "damaged": [problem_object(problem) for problem in report.damaged],
        "extra": list(report.extra),
        "problems": [problem_object(problem) for problem in report.problems],
    }


def source_object(source: SourceSummary) -> dict[str, object]:
    return {
        "host": source.host,
        "name": source.title,
        "places": list(source.places),
        "found": source.found,
        "found_bytes": source.found_bytes,
        "indexed": source.indexed,
        "sessions": source.sessions,
        "messages": source.messages,
        "excluded": source.excluded,
    }


def statistics_object(stats: Statistics) -> dict[str, object]:
    return {
        "first": None if stats.first is None else stats.first.isoformat(),
        "last": None if stats.last is None else stats.last.isoformat(),
        "sessions": stats.sessions,
        "messages": stats.messages,
        "other_sessions": stats.other_sessions,
        "left_out_sessions": stats.left_out_sessions,
        "days": [
            {
                "day": each.day.isoformat(),
                "sessions": each.sessions,
                "messages": each.messages,
                "projects": each.projects,
                "sessions_by_host": dict(each.sessions_by_host),
            }
            for each in stats.days
        ],
        "hosts": [
            {"host": each.name, "sessions": each.sessions, "messages": each.messages}
            for each in stats.hosts
        ],
        "projects": [
            {"project": each.name, "sessions": each.sessions, "messages": each.messages}
            for each in stats.projects
        ],
        "hours": list(stats.hours),
        "notices": list(stats.notices),
    }


def status_object(status: Status) -> dict[str, object]:
    last_read_at = status.last_read_at
    return {
        "home": status.home,
        "store": status.store or None,
        "sessions": status.sessions,
        "messages": status.messages,
        "size_bytes": status.size_bytes,
        "sessions_by_host": dict(status.sessions_by_host),
        "last_read_at": last_read_at.isoformat() if last_read_at else None,
        "problems": [problem_object(problem) for problem in status.problems],
        "index": {
            "findable": status.index.units,
            "to_embed": status.index.with_meaning,
            "embedded": status.index.embedded,
            "embedder": status.index.embedder,
            "size_bytes": status.index.size_bytes,
            "is_behind": status.index.is_behind,
            "problem": status.index.problem or None,
        },
        "logs": {
            "is_enabled": status.logs.is_enabled,
            "model": status.logs.model or None,
            "due": status.logs.due,
            "set_aside": status.logs.set_aside,
            "calls_today": status.logs.calls_today,
            "tokens_today": status.logs.tokens_today,
            "daily_tokens": status.logs.daily_tokens,
            "problem": status.logs.problem or None,
        },
        "excluded": [
            {
                "name": each.name,
                "sessions": each.sessions,
                "messages": each.messages,
                "command": each.command,
            }
            for each in status.excluded
        ],
        "last_forgetting": status.last_forgetting
        and forgetting_object(status.last_forgetting),
    }


def setting_object(chosen: Chosen) -> dict[str, object]:
    value = chosen.shown
    return {
        "name": chosen.setting.name,
        "value": list(value) if isinstance(value, tuple) else value,
        "from": chosen.origin,
        "summary": chosen.setting.summary,
    }


def push_object(report: PushReport) -> dict[str, object]:
    return {
        "url": report.url,
        "sessions": report.sessions,
        "messages": report.messages,
        "new_messages": report.new_messages,
        "forgotten": report.forgotten,
        "excluded": report.excluded,
        "sent_bytes": report.sent_bytes,
        "problems": [str(problem) for problem in report.problems],
    }


def token_object(token: AccessToken) -> dict[str, object]:
    return {
        "number": token.token_id,
        "name": token.name,
        "tenant": token.tenant or None,
        "scope": token.scope.value,
        "beginning": token.beginning,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_on": token.last_used_on,
    }


def to_iso(moment: Moment | None) -> str | None:
    """A time with its offset; a day without a time is a date alone."""
    if moment is None:
        return None
    written = moment.in_own_zone()
    return (written.date() if moment.is_day else written).isoformat()


def search_object(
    result: SearchResult,
    *,
    scope: str,
    mask: Mask = mask_and_escape,
    by_date: bool = False,
    resumes: Mapping[int, str] | None = None,
) -> dict[str, object]:
    """Hits as JSON; ``resumes`` adds the commands that continue their sessions."""
    query = result.parsed
    found: dict[str, object] = {
        "query": mask(result.query),
        "scope": scope,
        "results": [
            hit_object(hit, query, mask=mask) | _resume_object(hit.session, resumes)
            for _, hit in number_hits(result, by_date)
        ],
        "notices": list(map(mask, result.notices)),
    }
    if result.activity is not None:
        found["activity"] = _activity_object(result.activity, mask)
    return found


def _activity_object(activity: Activity, mask: Mask) -> dict[str, object]:
    return {
        "days": [_day_object(day, mask) for day in activity.days],
        "left_out_days": activity.left_out_days,
    }


def _day_object(day: DayActivity, mask: Mask) -> dict[str, object]:
    return {
        "day": day.day.isoformat(),
        "log": list(map(mask, day.log)),
        "projects": [
            {
                "project": _masked(project.project, mask),
                "sessions": [
                    {
                        "session": _session_object(each.session, mask),
                        "host": mask(each.session.host),
                        "messages": each.messages,
                        "first": to_iso(each.first),
                        "last": to_iso(each.last),
                        "show": show_command(each.name),
                    }
                    for each in project.sessions
                ],
            }
            for project in day.projects
        ],
        "left_out": day.left_out,
    }


def hit_object(
    hit: Hit, query: Query, *, mask: Mask = mask_and_escape
) -> dict[str, object]:
    return {
        "source": hit.source.value,
        "host": _masked(hit.host, mask),
        "project": _masked(hit.project, mask),
        "session": _session_object(hit.session, mask),
        "message_id": hit.message_id,
        "role": None if hit.role is None else hit.role.value,
        "date": to_iso(hit.said),
        "score": hit.score,
        "strength": hit.strength.value,
        "excerpt": shown_excerpt(hit, query, mask),
        "reply": _reply_object(hit.reply, mask),
        "newer": _newer_object(hit.newer, mask),
        "path": _masked(hit.path, mask),
        "heading": mask(hit.heading),
        "parts": {part.name: part.value for part in hit.parts},
        "show": show_hit(hit),
        "server": hit.server or None,
    }


def _reply_object(reply: Message | None, mask: Mask) -> dict[str, object] | None:
    if reply is None:
        return None
    return {
        "message_id": reply.message_id,
        "date": to_iso(reply.sent),
        "excerpt": cut_message(mask(reply.text), None, EXCERPT_CHARS - len(CUT_MARK)),
    }


def _newer_object(newer: Hit | None, mask: Mask) -> dict[str, object] | None:
    if newer is None:
        return None
    return {
        "source": newer.source.value,
        "session": _session_object(newer.session, mask),
        "message_id": newer.message_id,
        "date": to_iso(newer.said),
        "path": _masked(newer.path, mask),
        "show": show_hit(newer),
    }


def _resume_object(
    session: Session | None, resumes: Mapping[int, str] | None
) -> dict[str, object]:
    """Nothing for an agent, who cannot type the command."""
    if resumes is None:
        return {}
    return {"resume": resumes.get(session.session_id) if session else None}


def episodes_object(
    result: EpisodeResult,
    *,
    scope: str,
    mask: Mask = mask_and_escape,
    resumes: Mapping[int, str] | None = None,
) -> dict[str, object]:
    return {
        "query": mask(result.query),
        "scope": scope,
        "results": [
            _episode_object(episode, mask) | _resume_object(episode.session, resumes)
            for episode in result.episodes
        ],
        "notices": list(map(mask, result.notices)),
    }


def _episode_object(episode: Episode, mask: Mask) -> dict[str, object]:
    session, matched = episode.session, episode.matched
    return {
        "host": mask(session.host),
        "project": _masked(session.project, mask),
        "session": _session_object(session, mask),
        "before": _said_object(episode.before, mask),
        "matched": _said_object(matched, mask),
        "after": _said_object(episode.after, mask),
        "show": show_command(session.native_id, matched.position + 1),
    }


def _said_object(message: Message | None, mask: Mask) -> dict[str, object] | None:
    if message is None:
        return None
    return {
        "message_id": message.message_id,
        "role": message.role.value,
        "date": to_iso(message.sent),
        "text": mask(message.text),
    }


def recalled_objects(result: RecallResult) -> list[dict[str, object]]:
    """The chunks as JSON, with where each was found and how to open it."""
    return [_recalled_object(each) for each in result.found]


def _recalled_object(each: Recalled) -> dict[str, object]:
    hit = each.hit
    session_id = None if hit.session is None else mask_and_escape(hit.session.native_id)
    return {
        "chunk_id": each.chunk_id,
        "source_type": each.source_type,
        "source_id": session_id or _masked(hit.path, mask_and_escape),
        "name": mask_lines(each.name, mask_and_escape),
        "host": _masked(hit.host, mask_and_escape),
        "project": _masked(hit.project, mask_and_escape),
        "session": session_id,
        "message_id": hit.message_id,
        "path": _masked(hit.path, mask_and_escape),
        "heading": mask_and_escape(hit.heading),
        "date": to_iso(hit.said),
        "score": each.score,
        "strength": hit.strength.value,
        "text": mask_and_escape(each.text),
        "newer": _newer_object(hit.newer, mask_and_escape),
        "show": show_hit(hit),
    }


def extract_object(extract: SessionExtract, shown: ShownExtract) -> dict[str, object]:
    """An extract of a session as JSON, with the numbers of the messages around it."""
    session = extract.session
    return {
        "host": mask_and_escape(session.host),
        "project": _masked(session.project, mask_and_escape),
        "session": _session_object(session, mask_and_escape),
        "started_at": to_iso(session.started),
        "last_active_at": to_iso(session.last_active),
        "message_count": session.message_count,
        "messages": [_shown_object(each) for each in shown.messages],
        "earlier": shown.earlier,
        "later": shown.later,
    }


def _shown_object(shown: ShownMessage) -> dict[str, object]:
    message = shown.message
    return {
        "message_id": message.message_id,
        "role": message.role.value,
        "tool_name": mask_and_escape(shown.tool_name) or None,
        "date": to_iso(message.sent),
        "text": neutralize(shown.part),
        "start": shown.start,
        "length": len(shown.text),
        "is_folded": shown.is_folded,
    }


def _session_object(session: Session | None, mask: Mask) -> dict[str, object] | None:
    if session is None:
        return None
    title = mask_lines(session.title, mask)
    return {"id": mask(session.native_id), "title": title}


def _masked(text: str | None, mask: Mask) -> str | None:
    return None if text is None else mask(text)


def summary_object(summary: "NotesSummary", folder: Path) -> dict[str, object]:
    return {
        "folder": str(folder),
        "files": summary.files,
        "size_bytes": summary.size_bytes,
        "logs": summary.logs,
        "first_day": summary.first_day.isoformat() if summary.first_day else None,
        "last_day": summary.last_day.isoformat() if summary.last_day else None,
        "memory_lines": summary.memory_lines,
        "max_given_lines": MAX_GIVEN_LINES,
        "facts": dict(summary.facts),
    }


def memory_object(
    text: str, path: Path, origins: Mapping[str, Sequence[FactOrigin]]
) -> dict[str, object]:
    facts = [
        {
            "topic": fact.topic,
            "text": fact.text,
            "line": fact.line,
            "origins": [_origin_object(each) for each in origins.get(fact.text, ())],
        }
        for fact in list_facts(text)
    ]
    return {"path": str(path), "text": text, "facts": facts}


def _origin_object(origin: FactOrigin) -> dict[str, object]:
    return {
        "by": origin.by.value,
        "host": origin.host,
        "session": origin.session,
        "day": None if origin.day is None else origin.day.isoformat(),
        "messages": list(origin.messages),
    }


def listed_log_object(log: ListedLog) -> dict[str, object]:
    return {
        "day": log.day.isoformat(),
        "path": str(log.path),
        "size_bytes": log.size_bytes,
        "about": first_heading(log.text),
        "problem": log.problem or None,
    }


def log_object(log: ListedLog) -> dict[str, object]:
    return {"day": log.day.isoformat(), "path": str(log.path), "text": log.text}


def context_object(context: "Context") -> dict[str, object]:
    query = context.parsed
    return {
        "text": context.text,
        "tokens": context.tokens,
        "memories": [
            hit_object(hit, query) for hit in context.memories if query is not None
        ],
    }


def run_hit_objects(hits: Sequence[RunHit]) -> list[dict[str, object]]:
    """The hits as JSON."""
    return [
        {
            **_item_object(hit.item),
            "snippet": hit.snippet,
            "score": round(hit.score, 4),
            "start": hit.start,
            "length": len(hit.item.text),
        }
        for hit in hits
    ]


def page_object(item: RunItem, offset: int, page: str) -> dict[str, object]:
    """A part of an item as JSON."""
    return {
        **_item_object(item),
        "text": page,
        "start": offset,
        "length": len(item.text),
    }


def _item_object(item: RunItem) -> dict[str, object]:
    tool = {} if item.tool_name is None else {"tool_name": item.tool_name}
    return {
        "source": item.source.value,
        **tool,
        "iteration": item.iteration,
        "id": item.item_id,
    }
