"""Read what a browser sends."""

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from starlette.requests import Request

_MAX_BYTES = 4_000_000


async def read_form(request: "Request") -> dict[str, str]:
    """The fields of a form that was sent; of several with the same name, the last."""
    body = await read_body(request)
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}


async def read_body(request: "Request", max_bytes: int = _MAX_BYTES) -> bytes:
    """Everything that was sent. Raises ``HTTPException`` if it is too much."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise HTTPException(413)
    return bytes(body)
