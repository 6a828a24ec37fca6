"""Every reader of files, with real files to damage: what a fuzzer or a test may do to them.

A target has a file to damage and a way to read it. Reading ends with a documented error that names
the file, or with a result that `read` compares with the truth; anything else is a finding.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import dmsgd
from dmsgd.features import as_features, readers
from dmsgd.features.convert import open_features
from dmsgd.files.tables import column_names, read_column
from dmsgd.schedules import files as schedule_files
from dmsgd.schedules import presampling as schedules

#: What bad input may raise, with a message.
DOCUMENTED = (ValueError, TypeError, OSError, MemoryError)
DESIGN = dmsgd.Uniform(12, 3)
STEPS = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 4)).round(3)
Y = np.arange(9) % 3


class Finding(AssertionError):
    """A reader did what no reader may do."""


@dataclass(frozen=True)
class Target:
    """A file in a folder, and how it is read."""

    name: str
    file: Path
    content: bytes
    read: Callable[[], None]

    def try_out(self, content: bytes) -> bool:
        """Read the file with other content; return whether it was accepted."""
        self.file.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.read()
        except Finding:
            raise
        except DOCUMENTED as error:
            above = [str(folder) for folder in list(self.file.parents)[:3]]
            if any(folder in str(error) for folder in above) or self.name in NAMELESS:
                return False
            raise Finding(f"{self.name}: {type(error).__name__} names no file: {error}") from error
        except BaseException as error:
            raise Finding(f"{self.name}: {type(error).__name__}: {error}") from error
        return True


#: The state of a sampler is no file of ours.
NAMELESS = ("sampler state",)


def made(name: str, place: Path) -> Target:
    """Return the target of this name, its files in an empty folder."""
    file, read = MAKERS[name](place)
    return Target(name, file, file.read_bytes(), read)


# --- what a reader must agree with


def features(path: str | Path) -> None:
    """Read features in every way; what they are twice must be the same."""
    first = open_features(path).to_memory().matrix
    second = as_features(path).to_memory().matrix if not str(path).endswith(".csv") else first
    for found in (first, second):
        dense = found.toarray() if sparse.issparse(found) else found
        if dense.ndim != 2 or dense.dtype != np.float64 or not np.isfinite(dense).all():
            raise Finding(f"{path} became {dense.dtype} of shape {dense.shape}")
    if (first != second).sum():
        raise Finding(f"{path} is not the same by two ways")


def labels(path: str | Path) -> None:
    found = read_column(path)
    if found.ndim != 1 or found.size == 0:
        raise Finding(f"{path} became labels of shape {found.shape}")


def npy(place: Path) -> tuple[Path, Callable[[], None]]:
    np.save(place / "x.npy", X)

    def read() -> None:
        features(place / "x.npy")
        same(open_features(place / "x.npy").to_memory().matrix, np.load(place / "x.npy"))

    return place / "x.npy", read


def same(ours: Any, theirs: Any) -> None:
    if not np.array_equal(ours, np.asarray(theirs, dtype=np.float64)):
        raise Finding("NumPy reads another array")


def npz(place: Path) -> tuple[Path, Callable[[], None]]:
    np.savez_compressed(place / "x.npz", X=X, y=Y)

    def read() -> None:
        features(place / "x.npz")
        labels(place / "x.npz")

    return place / "x.npz", read


def sparse_npz(kind: str) -> Callable[[Path], tuple[Path, Callable[[], None]]]:
    def make(place: Path) -> tuple[Path, Callable[[], None]]:
        stored = sparse.coo_array(np.where(X > 0, X, 0)).asformat(kind)
        sparse.save_npz(place / "x.npz", stored, compressed=False)  # flips reach the arrays
        return place / "x.npz", lambda: features(place / "x.npz")

    return make


def sparse_folder(block: int) -> Callable[[Path], tuple[Path, Callable[[], None]]]:
    """Return a folder of sparse files, one of them to damage, read in blocks of this size."""

    def make(place: Path) -> tuple[Path, Callable[[], None]]:
        (place / "corpus").mkdir()
        stored = sparse.csr_array(np.where(X > 0, X, 0))
        for name, part in (("a", stored[:3]), ("b", stored[3:])):
            sparse.save_npz(place / f"corpus/{name}.npz", part, compressed=False)

        def read() -> None:
            usual, readers.BLOCK_BYTES = readers.BLOCK_BYTES, block
            try:
                features(place / "corpus")
            finally:
                readers.BLOCK_BYTES = usual

        return place / "corpus/b.npz", read

    return make


def csv(place: Path) -> tuple[Path, Callable[[], None]]:
    rows = [f"{a},{b},{c},{d},k{y}" for (a, b, c, d), y in zip(X, Y, strict=True)]
    (place / "x.csv").write_text("\n".join(["a,b,c,d,kind", *rows]))

    def read() -> None:
        names = column_names(place / "x.csv")
        drop = ("kind",) if "kind" in names else ()
        found = open_features(place / "x.csv", drop=drop).to_memory().matrix
        if found.ndim != 2 or not np.isfinite(found).all():
            raise Finding("a table became no matrix")
        labels(f"{place / 'x.csv'}:{names[-1]}")

    return place / "x.csv", read


def txt(place: Path) -> tuple[Path, Callable[[], None]]:
    (place / "y.txt").write_text("\n".join(f"class {y}" for y in Y))
    return place / "y.txt", lambda: labels(place / "y.txt")


def parquet(place: Path) -> tuple[Path, Callable[[], None]]:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": [f"k{y}" for y in Y]})
    parquet.write_table(table, place / "x.parquet", row_group_size=5, write_page_checksum=True)

    def read() -> None:
        names = column_names(place / "x.parquet")
        drop = ("y",) if "y" in names else ()
        open_features(place / "x.parquet", drop=drop).to_memory()
        labels(f"{place / 'x.parquet'}:{names[-1]}")

    return place / "x.parquet", read


def zarr(version: int, damaged: str) -> Callable[[Path], tuple[Path, Callable[[], None]]]:
    def make(place: Path) -> tuple[Path, Callable[[], None]]:
        import zarr

        array = zarr.create_array(
            str(place / "x.zarr"), shape=X.shape, chunks=(5, 4), dtype="f8", zarr_format=version
        )
        array[:] = X
        return place / "x.zarr" / damaged, lambda: features(place / "x.zarr")

    return make


def schedule(ending: str) -> Callable[[Path], tuple[Path, Callable[[], None]]]:
    def make(place: Path) -> tuple[Path, Callable[[], None]]:
        good = dmsgd.presample(DESIGN, STEPS, path=place / "s")
        draws = np.array(good.batches)

        def read() -> None:
            found = dmsgd.Schedule.load(place / "s")
            true = (found.record, found.checksum) == (good.record, good.checksum)
            true = true and np.array_equal(found.inclusion(), DESIGN.inclusion())
            if not true or not np.array_equal(found.batches, draws):
                raise Finding(f"a damaged s.{ending} was certified")

        return place / f"s.{ending}", read

    return make


def unfinished(ending: str) -> Callable[[Path], tuple[Path, Callable[[], None]]]:
    """A file in the folder of a schedule that is gone on with."""

    def make(place: Path) -> tuple[Path, Callable[[], None]]:
        kept, work, draws = place / "kept", place / "s.part", DESIGN.sample(STEPS, 0)
        kept.mkdir()
        interrupted(kept / "s")

        def read() -> None:
            damaged = (work / ending).read_bytes()
            for file in place.glob("s.*"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
            shutil.copytree(kept / "s.part", work)
            (work / ending).write_bytes(damaged)
            try:
                found = dmsgd.presample(DESIGN, STEPS, path=place / "s")
                dmsgd.Schedule.load(place / "s")
            finally:
                work.mkdir(exist_ok=True)  # for the next damage
            if not np.array_equal(found.batches, draws):
                raise Finding(f"draws of a damaged {ending} were published")

        work.mkdir()
        shutil.copy(kept / "s.part" / ending, work)
        return work / ending, read

    return make


def interrupted(path: Path) -> None:
    """Leave a schedule unfinished, with draws that are vouched for."""
    chunks, saved = schedules.draw_chunks, schedule_files.SAVE_SECONDS

    def some(*arguments: Any) -> Iterator[Any]:
        yield DESIGN.sample(16, 0)
        raise KeyboardInterrupt

    schedules.draw_chunks, schedule_files.SAVE_SECONDS = some, -1.0
    try:
        dmsgd.presample(DESIGN, STEPS, path=path)
    except KeyboardInterrupt:
        pass
    finally:
        schedules.draw_chunks, schedule_files.SAVE_SECONDS = chunks, saved


def state(place: Path) -> tuple[Path, Callable[[], None]]:
    from dmsgd.torch import DiverseSampler

    sampler = DiverseSampler(DESIGN, 10)
    (place / "state.json").write_text(json.dumps(iter(sampler).state_dict()))

    def read() -> None:
        try:
            found = json.loads((place / "state.json").read_bytes())
        except (ValueError, RecursionError):
            raise ValueError("not JSON") from None
        again = DiverseSampler(DESIGN, 10)
        again.resume(found)
        places = [
            each["epoch"] * again.total_size + each["consumed"]
            for each in (found, iter(again).state_dict())
        ]
        if places[0] != places[1]:
            raise Finding("a sampler goes on from another place than its state says")

    return place / "state.json", read


MAKERS: dict[str, Callable[[Path], tuple[Path, Callable[[], None]]]] = {
    "npy": npy,
    "npz": npz,
    "sparse npz csr": sparse_npz("csr"),
    "sparse npz csc": sparse_npz("csc"),
    "sparse npz coo": sparse_npz("coo"),
    "sparse folder": sparse_folder(2**20),
    "sparse folder in parts": sparse_folder(100),
    "csv": csv,
    "txt": txt,
    "parquet": parquet,
    "zarr 3 metadata": zarr(3, "zarr.json"),
    "zarr 3 chunk": zarr(3, "c/0/0"),
    "zarr 2 metadata": zarr(2, ".zarray"),
    "schedule json": schedule("json"),
    "schedule npy": schedule("npy"),
    "schedule inclusion": schedule("inclusion.npy"),
    "unfinished record": unfinished("record.json"),
    "unfinished batches": unfinished("batches.npy"),
    "sampler state": state,
}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep log messages of readers to themselves."""
    import logging

    logging.getLogger("dmsgd").disabled = True
    try:
        yield
    finally:
        logging.getLogger("dmsgd").disabled = False
