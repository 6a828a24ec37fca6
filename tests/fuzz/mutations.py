"""Ways to damage a file, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

#: Numbers and texts that readers have stumbled over.
WORDS = (
    b"", b"\0", b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"-1", b"0", b"1e999", b"NaN", b"9" * 30,
    b"9" * 5000, b"[" * 3000, b"{" * 3000, b"(" * 3000, b"null", b"true", b'"', b"'", b"\n", b",",
    b"'''", b"\\d", b"{}", b"[]",
)  # fmt: skip


def damaged(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` damaged versions: cut short, bits flipped, words put in, parts repeated."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        changed = bytearray(content)
        place = int(rng.integers(0, len(content)))
        kind = number % 5
        if kind == 0:
            del changed[place:]
        elif kind in (1, 2):
            for bit in rng.integers(0, 8 * len(content), size=1 + 7 * (kind == 2)).tolist():
                changed[bit // 8] ^= 1 << bit % 8
        elif kind == 3:
            length = int(rng.integers(0, 12))
            changed[place : place + length] = WORDS[int(rng.integers(0, len(WORDS)))]
        else:
            stop = place + int(rng.integers(1, 64))
            target = int(rng.integers(0, len(content)))
            changed[target:target] = content[place:stop]
        yield bytes(changed)
