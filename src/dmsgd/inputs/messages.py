"""Text of messages: counts, sizes, names that users gave, and extras that are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from numbers import Number

#: Characters that Python does not call printable, and that are harmless: spaces, and joiners of
#: letters and emoji.
HARMLESS = "\N{NO-BREAK SPACE}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"

#: First characters of formulas in spreadsheets; the last four are wide forms of the others.
FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

#: The modules of each extra of pyproject.toml that dmsgd itself imports, and their packages.
EXTRAS = {
    "sklearn": {"sklearn": "scikit-learn"},
    "parquet": {"pyarrow": "pyarrow"},
    "zarr": {"zarr": "zarr 3 and Python 3.11 or later"},
    "torch": {"torch": "torch"},
    "cuda": {"torch": "torch", "cuda.bindings": "cuda-bindings"},
}


def require(extra: str, what: str) -> None:
    """Raise ImportError if packages that `what` needs are missing, and name their extra."""
    missing = {m: name for m, name in EXTRAS[extra].items() if not _installed(m)}
    if missing:
        raise ImportError(
            f'{what} needs {" and ".join(missing.values())}; pip install "dmsgd[{extra}]"',
            name=next(iter(missing)),
        )


def _installed(module: str) -> bool:
    """Return whether a module can be imported; a plain folder of that name is none."""
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # its package is missing
        return False
    return found is not None and found.origin is not None


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural where it must be.

    >>> counted(1, "item"), counted(2000, "item"), counted(0, "missing entry"), counted(8, "class")
    ('1 item', '2,000 items', '0 missing entries', '8 classes')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{'e' * noun.endswith('s')}s"
    return f"{number:,} {noun if number == 1 else several}"


def number(value: float, digits: int = 2) -> str:
    """Return a number with so many digits, or with all that are before the point.

    >>> number(0.4567), number(12.3), number(2449.6), number(12.34, digits=3), number(2e30)
    ('0.46', '12', '2,450', '12.3', '2e+30')
    """
    whole = 10 ** (digits - 1) <= abs(value) < 1e9
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


def few(names: Iterable[object]) -> str:
    """Return the first ten of these names, and dots if there are more.

    >>> few(["a", "b"]), few(range(12))
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...')
    """
    listed = list(names)
    return ", ".join(map(str, listed[:10])) + ", ..." * (len(listed) > 10)


def kind_of(value: object) -> str:
    """Return what `value` is, for messages."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def format_bytes(size: float) -> str:
    """Return a number of bytes as text, for example '1.5 GB'."""
    for unit in ("B", "KB", "MB", "GB", "TB", "PB"):
        if size < 1024:
            return f"{number(size, 3)} {unit}"
        size /= 1024
    return f"{number(size, 3)} EB"


def visible(text: object, length: int | None = None) -> str:
    r"""Return `text` with escapes for characters that would control a terminal or a page.

    Those are control characters, marks that reverse the direction of writing, and halves of
    surrogate pairs. Of more than `length` characters the beginning is kept.

    >>> print(visible("a\x1b[31mb\u202ec"), visible("class", 3))
    a\x1b[31mb\u202ec cl…
    """
    shown = str(text)
    if length is not None and len(shown) > length:
        shown = shown[: length - 1] + "…"
    harmless = (each.isprintable() or each in HARMLESS for each in shown)
    pairs = zip(shown, harmless, strict=True)
    return "".join(each if good else ascii(each)[1:-1] for each, good in pairs)


def cell(value: object) -> str:
    """Return a value, `visible`, for a cell of a CSV file that spreadsheets may open.

    Text that they would take for a formula gets an apostrophe in front; numbers have none.

    >>> cell("=1+1"), cell("-3.5"), cell(float("-inf")), cell("a-b")
    ("'=1+1", '-3.5', '-inf', 'a-b')
    """
    shown = visible(value)
    harmless = isinstance(value, Number) or NUMBER.fullmatch(shown)
    return f"'{shown}" if shown.startswith(FORMULAS) and not harmless else shown
