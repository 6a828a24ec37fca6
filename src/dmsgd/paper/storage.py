"""Results as JSON files: what was measured, under which settings, where and with which versions.

A result is a dataclass whose fields are numbers, strings, arrays, tuples, dicts with string keys
and further dataclasses; its type hints say what to read back.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dmsgd.datasets.folders import write_whole
from dmsgd.paper import provenance

T = TypeVar("T")


def save(result: Any, path: Path) -> None:
    """Write `result` to a JSON file, whole or not at all."""
    content = {"result": _plain(result), **provenance.record()}
    text = json.dumps(content, indent=None, separators=(",", ":"))
    write_whole(path, f"{text}\n".encode())


def recorded(path: Path) -> dict[str, str]:
    """Return what a file of `save` records besides the result; older files record less."""
    try:
        content = json.loads(path.read_text())
    except (ValueError, RecursionError):
        raise ValueError(
            f"{path} is damaged or not a JSON file; run the experiment again"
        ) from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a result; run the experiment again")
    return {name: content[name] for name in provenance.FIELDS if name in content}


def load(kind: type[T], path: Path) -> T:
    """Return the result of type `kind` in a JSON file, or say why there is none."""
    try:
        content = json.loads(path.read_text())
        return _typed(kind, content["result"])  # type: ignore[no-any-return]
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no result {path}; run the experiment without --replot first"
        ) from None
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise ValueError(
            f"{path} is not a result of this version ({error}); run the experiment again"
        ) from None


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return [_plain(row) for row in value] if value.ndim > 1 else _numbers(value)
    return value.item() if isinstance(value, np.generic) else value


def _numbers(array: np.ndarray[Any, Any]) -> list[Any]:
    """Return the entries with nine digits: far beyond any interval, and half the file."""
    if array.dtype.kind != "f":
        return list(array.tolist())
    return [float(f"{number:.9g}") for number in array.tolist()]


def _typed(kind: Any, value: Any) -> Any:
    """Return the JSON `value` as the type that the hint `kind` names."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or kind is NoneType:
        return value
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        unknown = set(value) ^ {field.name for field in fields(kind)}
        if unknown:
            raise ValueError(f"{getattr(kind, '__name__', kind)}: {', '.join(sorted(unknown))}")
        items = {name: _typed(hints[name], item) for name, item in value.items()}
        return kind(**items)  # type: ignore[operator]
    if origin is np.ndarray:
        return np.asarray(value, dtype=get_args(inner[1])[0])
    if origin is dict:
        return {key: _typed(inner[1], item) for key, item in value.items()}
    if origin in (tuple, list):
        each = inner if origin is tuple and inner[-1] is not Ellipsis else inner[:1] * len(value)
        return origin(_typed(hint, item) for hint, item in zip(each, value, strict=True))
    if origin in (Union, UnionType):
        return None if value is None else _typed(next(h for h in inner if h is not NoneType), value)
    return kind(value)
