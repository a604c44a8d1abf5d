"""How many texts have vectors, and who makes the rest."""

from backstory.render.format import render_count


def render_vectors(
    made: int, wanted: int, *, embedder: str, in_background: bool
) -> str:
    """``wanted`` are the texts that should have a vector, ``made`` those that do."""
    if embedder == "none":
        return "none (embedder.name is none, so searches go by words alone)"
    by = "" if embedder == "auto" else f" ({embedder})"
    if not wanted:
        return "none yet"
    texts = render_count(wanted, "text")
    if made >= wanted:
        return f"all {texts}{by}" if wanted != 1 else f"{texts}{by}"
    how_many = f"{made:,} of {texts}" if made else f"none of {texts} yet"
    if in_background:
        rest = "the rest are" if made else "they are"
        return f"{how_many}{by}; {rest} made in the background"
    rest = "the rest" if made else "them"
    return f"{how_many}{by}; 'backstory index --wait' makes {rest}"
