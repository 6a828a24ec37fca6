"""What only parts of dmsgd need: `pip install "dmsgd[EXTRA]"` brings it, `require` asks for it."""

from __future__ import annotations

from importlib.util import find_spec

#: The modules of each extra of pyproject.toml that dmsgd itself imports, and who they belong to.
EXTRAS = {
    "sklearn": {"sklearn": "scikit-learn"},
    "demo": {"sklearn": "scikit-learn", "matplotlib": "matplotlib"},
    "parquet": {"pyarrow": "pyarrow"},
    "zarr": {"zarr": "zarr 3 and Python 3.11 or later"},
    "dask": {"dask": "Dask", "distributed": "distributed"},
    "torch": {"torch": "torch"},
    "cuda": {"torch": "torch", "cuda.bindings": "cuda-bindings"},
    "lightning": {"torch": "torch", "lightning": "lightning"},
    "transformers": {"torch": "torch", "transformers": "transformers"},
    "imblearn": {"sklearn": "scikit-learn", "imblearn": "imbalanced-learn"},
}


def require(extra: str, what: str) -> None:
    """Raise an ImportError that names what is missing and how to get it, if something is."""
    missing = {m: name for m, name in EXTRAS[extra].items() if not _installed(m)}
    if missing:
        raise ImportError(
            f'{what} needs {" and ".join(missing.values())}; pip install "dmsgd[{extra}]"',
            name=next(iter(missing)),
        )


def _installed(module: str) -> bool:
    """Return whether a module can be imported; a folder of that name that is at hand is none."""
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # the package that it is a part of
        return False
    return found is not None and found.origin is not None
