"""Read folders that programs, such as editors, record as a URL."""

import re
from urllib.parse import unquote, urlsplit

_DRIVE = re.compile(r"/[A-Za-z]:(?=/|\Z)")


def to_path(folder: str) -> str | None:
    """The path of a folder that is given as a path or as a URL; None for other URLs.

    A folder on another machine, in a container or in the cloud has no path here.
    """
    if "://" not in folder:
        return folder
    try:
        url = urlsplit(folder)
    except ValueError:
        return None
    if url.scheme != "file" or url.netloc not in ("", "localhost"):
        return None
    path = unquote(url.path)
    if _DRIVE.match(path):
        path = path[1:].replace("/", "\\")
    return path if path == "/" else path.rstrip("/")
