"""Where machine code is kept on disk: in the first folder that can be written.

It belongs to the text of all files of compiled loops (`*/compiled/*.py` and `*/loops.py`), because
a function contains those it calls.
Where neither the package's folder nor the user's can be written, a folder for temporary files will
do.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import caching


@cache
def _sources() -> str:
    """Return a hash of all files of compiled loops and of what they are compiled by."""
    package, text = Path(__file__).parent.parent, hashlib.sha256()
    for pattern in ("compiled/*.py", "*/loops.py", "*/compiled/*.py"):
        for path in sorted(package.glob(pattern)):
            text.update(path.read_bytes())
    return text.hexdigest()


@cache
def _say() -> None:
    """Say once that this will take a moment."""
    print("dmsgd: compiling for this processor (once, a few seconds) ...", file=sys.stderr)


def _named(name: str) -> Any:
    """Return a class of numba's cache, which older versions name with an underscore."""
    return getattr(caching, name, None) or getattr(caching, "_" + name)


_Provided: Any = _named("UserProvidedCacheLocator")
_InTree: Any = _named("InTreeCacheLocator")
_UserWide: Any = _named("UserWideCacheLocator")


class _OfAllSources:
    def get_source_stamp(self) -> str:
        return _sources()


class _Chosen(_OfAllSources, _Provided):
    """Where NUMBA_CACHE_DIR says."""


class _InPackage(_OfAllSources, _InTree):
    """In __pycache__."""


class _OfUser(_OfAllSources, _UserWide):
    """In the user's folder for such things."""


class _Temporary(_OfAllSources, _InTree):
    """In a folder for temporary files that nobody else can write."""

    def get_cache_path(self) -> str:
        user = os.getuid() if hasattr(os, "getuid") else "user"
        return str(Path(tempfile.gettempdir()) / f"dmsgd-{user}")

    def ensure_cache_path(self) -> None:
        path = Path(self.get_cache_path())
        path.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid"):
            found = path.lstat()
            if found.st_uid != os.getuid() or found.st_mode & 0o022 or path.is_symlink():
                raise OSError(f"{path} belongs to somebody else, or others can write to it")
        super().ensure_cache_path()


class _Folders(caching.CompileResultCacheImpl):
    _locator_classes = (_Chosen, _InPackage, _OfUser, _Temporary)


class Cache(caching.FunctionCache):
    """The machine code of one function, for every processor that asked for it."""

    _impl_class = _Folders

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for this signature, or None, and say that it will be compiled."""
        found = super().load_overload(sig, target_context)
        if found is None:
            _say()
        return found
