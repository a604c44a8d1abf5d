"""The address of a database without its password, as it may be shown."""

from backstory.text.patterns import lazy_pattern

_HIDDEN = "…"
_UNREADABLE = "(an address that is not shown, as it may contain a password)"
_AFTER_HOST = lazy_pattern("[/?#]")


def hide_password(url: str) -> str:
    """The address with a mark in place of each password.

    Text that is not an address is not shown at all: part of it may be a password.
    """
    # Slow to import, and few homes are in a database.
    from urllib.parse import parse_qsl, quote, urlsplit

    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        return _UNREADABLE
    if not parts.scheme or not parts.netloc + parts.path or is_ambiguous(url):
        return _UNREADABLE
    user, at, place = parts.netloc.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:{_HIDDEN}"
    shown = [
        f"{name}={quote(value, safe='/:')}"
        for name, value in options
        if "password" not in name
    ]
    hidden = [f"{name}={_HIDDEN}" for name, _ in options if "password" in name]
    query = "&".join([*shown, *hidden])
    address = f"{parts.scheme}://{user}{at}{place}{parts.path}"
    return f"{address}?{query}" if query else address


def has_password(url: str) -> bool:
    """Whether an address has a password in it, or is not an address and may be one."""
    return hide_password(url) == _UNREADABLE or _HIDDEN in hide_password(url)


def is_ambiguous(url: str) -> bool:
    """Whether part of a password may look like a host, a database or an option.

    It may if the password contains one of "@/?#" that is not percent-encoded: then
    there is another "@" after the one that ends user and password.
    """
    _, _, rest = url.partition("://")
    authority = _AFTER_HOST.split(rest, maxsplit=1)[0]
    return rest.count("@") > int("@" in authority)
