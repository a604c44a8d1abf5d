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
