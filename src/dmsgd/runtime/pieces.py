"""Work in pieces: slices of a range, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from dmsgd.runtime.progress import Progress


def slices(size: int, step: int) -> list[slice]:
    """Return slices of range(size), all of the length `step` but the last."""
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]


def in_pieces(size: int, step: int, what: str) -> Iterator[slice]:
    """Yield what `slices` returns, and log the progress of `what` after each."""
    tell = Progress(what)
    for piece in slices(size, step):
        yield piece
        tell(piece.stop / size)
