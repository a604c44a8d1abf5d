"""Whether two folders are of one project: by their names, as hooks are quick."""


def is_same_project(one: str, other: str) -> bool:
    """Whether one of two folders is inside the other."""
    one, other = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return one.startswith(other) or other.startswith(one)
