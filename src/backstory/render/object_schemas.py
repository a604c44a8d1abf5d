"""JSON Schemas of what ``objects`` makes, for programs that check what tools return."""

from collections.abc import Mapping

JsonSchema = Mapping[str, object]

_TEXT: JsonSchema = {"type": "string"}
_NUMBER: JsonSchema = {"type": "number"}
_COUNT: JsonSchema = {"type": "integer"}
_FLAG: JsonSchema = {"type": "boolean"}


def _object(
    properties: Mapping[str, JsonSchema], *, optional: tuple[str, ...] = ()
) -> JsonSchema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _list(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


def _maybe(schema: JsonSchema) -> JsonSchema:
    # Not a list of types: some clients' dialects have only one.
    return {"anyOf": [schema, {"type": "null"}]}


_MAYBE_TEXT = _maybe(_TEXT)
_MAYBE_COUNT = _maybe(_COUNT)

_SESSION = _object({"id": _TEXT, "title": _TEXT})

_NEWER = _object(
    {
        "source": _TEXT,
        "session": _maybe(_SESSION),
        "message_id": _MAYBE_COUNT,
        "date": _MAYBE_TEXT,
        "path": _MAYBE_TEXT,
        "show": _MAYBE_TEXT,
    }
)

_HIT = _object(
    {
        "source": _TEXT,
        "host": _MAYBE_TEXT,
        "project": _MAYBE_TEXT,
        "session": _maybe(_SESSION),
        "message_id": _MAYBE_COUNT,
        "role": _MAYBE_TEXT,
        "date": _MAYBE_TEXT,
        "score": _NUMBER,
        "strength": _TEXT,
        "excerpt": _TEXT,
        "reply": _maybe(
            _object({"message_id": _COUNT, "date": _MAYBE_TEXT, "excerpt": _TEXT})
        ),
        "newer": _maybe(_NEWER),
        "path": _MAYBE_TEXT,
        "heading": _TEXT,
        "parts": {"type": "object", "additionalProperties": _NUMBER},
        "show": _MAYBE_TEXT,
        "server": _MAYBE_TEXT,
    }
)

_SAID = _object(
    {"message_id": _COUNT, "role": _TEXT, "date": _MAYBE_TEXT, "text": _TEXT}
)

_EPISODE = _object(
    {
        "host": _TEXT,
        "project": _MAYBE_TEXT,
        "session": _SESSION,
        "before": _maybe(_SAID),
        "matched": _SAID,
        "after": _maybe(_SAID),
        "show": _TEXT,
    }
)

_ACTIVE_SESSION = _object(
    {
        "session": _SESSION,
        "host": _TEXT,
        "messages": _COUNT,
        "first": _MAYBE_TEXT,
        "last": _MAYBE_TEXT,
        "show": _TEXT,
    }
)

_DAY = _object(
    {
        "day": _TEXT,
        "log": _list(_TEXT),
        "projects": _list(
            _object({"project": _MAYBE_TEXT, "sessions": _list(_ACTIVE_SESSION)})
        ),
        "left_out": _COUNT,
    }
)

# Of ``search_object`` and of ``episodes_object``.
SEARCH_SCHEMA = _object(
    {
        "query": _TEXT,
        "scope": _TEXT,
        "results": _list({"anyOf": [_HIT, _EPISODE]}),
        "notices": _list(_TEXT),
        "activity": _object({"days": _list(_DAY), "left_out_days": _COUNT}),
    },
    optional=("activity",),
)

# Of ``recalled_objects``.
RECALLED_SCHEMA = _list(
    _object(
        {
            "chunk_id": _TEXT,
            "source_type": _TEXT,
            "source_id": _MAYBE_TEXT,
            "name": _TEXT,
            "host": _MAYBE_TEXT,
            "project": _MAYBE_TEXT,
            "session": _MAYBE_TEXT,
            "message_id": _MAYBE_COUNT,
            "path": _MAYBE_TEXT,
            "heading": _TEXT,
            "date": _MAYBE_TEXT,
            "score": _NUMBER,
            "strength": _TEXT,
            "text": _TEXT,
            "newer": _maybe(_NEWER),
            "show": _MAYBE_TEXT,
        }
    )
)

# Of ``extract_object``.
EXTRACT_SCHEMA = _object(
    {
        "host": _TEXT,
        "project": _MAYBE_TEXT,
        "session": _SESSION,
        "started_at": _MAYBE_TEXT,
        "last_active_at": _MAYBE_TEXT,
        "message_count": _COUNT,
        "messages": _list(
            _object(
                {
                    "message_id": _COUNT,
                    "role": _TEXT,
                    "tool_name": _MAYBE_TEXT,
                    "date": _MAYBE_TEXT,
                    "text": _TEXT,
                    "start": _COUNT,
                    "length": _COUNT,
                    "is_folded": _FLAG,
                }
            )
        ),
        "earlier": _MAYBE_COUNT,
        "later": _MAYBE_COUNT,
    }
)

_ITEM: Mapping[str, JsonSchema] = {
    "source": _TEXT,
    "tool_name": _TEXT,
    "iteration": _COUNT,
    "id": _TEXT,
}

# Of ``run_hit_objects``.
RUN_HITS_SCHEMA = _list(
    _object(
        {
            **_ITEM,
            "snippet": _TEXT,
            "score": _NUMBER,
            "start": _COUNT,
            "length": _COUNT,
        },
        optional=("tool_name",),
    )
)

# Of ``page_object``.
PAGE_SCHEMA = _object(
    {**_ITEM, "text": _TEXT, "start": _COUNT, "length": _COUNT},
    optional=("tool_name",),
)

# What ``save_memory`` and ``update_memory`` changed.
SAVED_SCHEMA = _object(
    {
        "saved": _list(_object({"topic": _TEXT, "text": _TEXT})),
        "known_already": _list(_TEXT),
    }
)
UPDATED_SCHEMA = _object({"old_text": _TEXT, "new_text": _TEXT})

# -- of what commands print with --json ---

_STORED_SESSION: Mapping[str, JsonSchema] = {
    "host": _TEXT,
    "id": _TEXT,
    "title": _TEXT,
    "project": _MAYBE_TEXT,
    "git_branch": _MAYBE_TEXT,
    "parent": _MAYBE_TEXT,
    "started_at": _MAYBE_TEXT,
    "last_active_at": _MAYBE_TEXT,
    "messages": _COUNT,
    "preview": _TEXT,
    "read_from": _MAYBE_TEXT,
    "last_logged_message_id": _MAYBE_TEXT,
    "resume": _MAYBE_TEXT,
}

# Of ``session_object``.
SESSIONS_SCHEMA = _list(_object(_STORED_SESSION))

# Of ``session_object`` with its messages, each of ``message_object``.
TRANSCRIPT_SCHEMA = _object(
    {
        **_STORED_SESSION,
        "messages": _list(
            _object(
                {
                    "number": _COUNT,
                    "id": _MAYBE_TEXT,
                    "position": _COUNT,
                    "role": _TEXT,
                    "text": _TEXT,
                    "tool_name": _MAYBE_TEXT,
                    "call_id": _MAYBE_TEXT,
                    "sent_at": _MAYBE_TEXT,
                    "full_bytes": _MAYBE_COUNT,
                }
            )
        ),
    }
)

_ORIGIN = _object(
    {
        "by": _TEXT,
        "host": _MAYBE_TEXT,
        "session": _MAYBE_TEXT,
        "day": _MAYBE_TEXT,
        "messages": _list(_COUNT),
    }
)

_MEMORY: Mapping[str, JsonSchema] = {
    "path": _TEXT,
    "text": _TEXT,
    "facts": _list(
        _object(
            {"topic": _TEXT, "text": _TEXT, "line": _COUNT, "origins": _list(_ORIGIN)}
        )
    ),
}

# Of ``memory_object``, with what identifies this version of the text.
MEMORY_SCHEMA = _object({**_MEMORY, "version": _TEXT})

# Of ``listed_log_object`` and of ``log_object``.
LOGS_SCHEMA = _list(
    _object(
        {
            "day": _TEXT,
            "path": _TEXT,
            "size_bytes": _COUNT,
            "about": _MAYBE_TEXT,
            "problem": _MAYBE_TEXT,
        }
    )
)
LOG_SCHEMA = _object({"day": _TEXT, "path": _TEXT, "text": _TEXT})

# Of ``context_object``.
CONTEXT_SCHEMA = _object({"text": _TEXT, "tokens": _COUNT, "memories": _list(_HIT)})

# Of ``source_object``.
SOURCES_SCHEMA = _list(
    _object(
        {
            "host": _TEXT,
            "name": _TEXT,
            "places": _list(_TEXT),
            "found": _COUNT,
            "found_bytes": _COUNT,
            "indexed": _COUNT,
            "sessions": _COUNT,
            "messages": _COUNT,
            "excluded": _FLAG,
        }
    )
)

_FORGETTING = _object(
    {
        "number": _COUNT,
        "forgotten_at": _TEXT,
        "sessions": _COUNT,
        "messages": _COUNT,
        "hosts": _list(_TEXT),
        "facts": _COUNT,
        "reason": _TEXT,
    }
)

# Of ``forgetting_object``.
FORGETTINGS_SCHEMA = _list(_FORGETTING)

# Of ``forget_object``.
FORGET_SCHEMA = _object(
    {
        "sessions": _list(
            _object(
                {
                    "host": _TEXT,
                    "id": _TEXT,
                    "title": _TEXT,
                    "messages": _COUNT,
                    "whole": _FLAG,
                }
            )
        ),
        "messages": _COUNT,
        "log_entries": _list(_object({"day": _TEXT, "heading": _TEXT})),
        "facts": _list(_object({"text": _TEXT, "copies": _COUNT})),
        "with_notes": _FLAG,
        "copies": _list(_TEXT),
        "erasure": _TEXT,
        "forgetting": _maybe(_FORGETTING),
    }
)

# Of ``status_object``.
STATUS_SCHEMA = _object(
    {
        "home": _TEXT,
        "store": _MAYBE_TEXT,
        "sessions": _COUNT,
        "messages": _COUNT,
        "size_bytes": _COUNT,
        "sessions_by_host": {"type": "object", "additionalProperties": _COUNT},
        "last_read_at": _MAYBE_TEXT,
        "problems": _list(
            _object({"path": _MAYBE_TEXT, "line": _MAYBE_COUNT, "reason": _TEXT})
        ),
        "index": _object(
            {
                "findable": _COUNT,
                "to_embed": _COUNT,
                "embedded": _COUNT,
                "embedder": _TEXT,
                "size_bytes": _COUNT,
                "is_behind": _FLAG,
                "problem": _MAYBE_TEXT,
            }
        ),
        "logs": _object(
            {
                "is_enabled": _FLAG,
                "model": _MAYBE_TEXT,
                "due": _COUNT,
                "set_aside": _COUNT,
                "calls_today": _COUNT,
                "tokens_today": _COUNT,
                "daily_tokens": _COUNT,
                "problem": _MAYBE_TEXT,
            }
        ),
        "excluded": _list(
            _object(
                {
                    "name": _TEXT,
                    "sessions": _COUNT,
                    "messages": _COUNT,
                    "command": _TEXT,
                }
            )
        ),
        "last_forgetting": _maybe(_FORGETTING),
    }
)

# Of ``setting_object``; a value is a text, a number, true or false, or a list.
SETTING_SCHEMA = _object(
    {
        "name": _TEXT,
        "value": {"type": ["string", "number", "boolean", "array"]},
        "from": _TEXT,
        "summary": _TEXT,
    }
)
SETTINGS_SCHEMA = _list(SETTING_SCHEMA)

# What is being done on the page, or was done last.
# Of ``web.agents``, and of ``install.report.host_object``.
AGENTS_SCHEMA = _list(
    _object(
        {
            "host": _TEXT,
            "title": _TEXT,
            "is_here": _FLAG,
            "mark": _TEXT,
            "text": _TEXT,
            "fix": _TEXT,
        }
    )
)

AGENT_CHANGES_SCHEMA = _object(
    {
        "host": _TEXT,
        "title": _TEXT,
        "changes": _list({"type": "object"}),
        "dry_run": _FLAG,
        "error": {"type": "null"},
    }
)

# Of ``install.doctor.Finding``.
FINDINGS_SCHEMA = _object(
    {
        "findings": _list(
            _object({"mark": _TEXT, "about": _TEXT, "text": _TEXT, "fix": _TEXT})
        )
    }
)

JOB_SCHEMA = _object(
    {
        "name": _MAYBE_TEXT,
        "done": _COUNT,
        "total": _COUNT,
        "is_over": _FLAG,
        "lines": _list(_TEXT),
    }
)
