"""Where data lies, and how it gets there from its public source."""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final
from urllib.error import URLError

import numpy as np

#: Names a folder with the data; see `locate`.
VARIABLE = "DMSGD_DATA"


@final
@dataclass(frozen=True)
class Archive:
    """A file on the network that holds the data, and its checksum."""

    url: str
    sha256: str
    megabytes: int


def cache_folder() -> Path:
    """Return the folder of downloaded data: dmsgd below the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(home).expanduser() / "dmsgd"


def locate(
    name: str, data_dir: str | os.PathLike[str] | None, fill: Callable[[Path], None]
) -> Path:
    """Return the path of the data file `name`, such as "r8/train.txt.gz".

    It must be in `data_dir` if that is given; else it is taken from the folder that DMSGD_DATA
    names, if it is there, or from the cache folder, where `fill(path)` writes it if it is missing.
    """
    if data_dir is not None:
        path = Path(data_dir) / name
        if not os.path.isfile(path):
            raise FileNotFoundError(
                f"there is no {name} in the data folder {data_dir}; leave it out to use "
                f"{VARIABLE} or a copy fetched from the public source"
            )
        return path
    folder = os.environ.get(VARIABLE)
    if folder and os.path.isfile(Path(folder) / name):
        return Path(folder) / name
    path = cache_folder() / name
    if not path.is_file():
        fill(path)
    return path


def fetch(archive: Archive, use: Callable[[Path], None]) -> None:
    """Download an archive, compare its checksum, and call `use` with the path of the local copy."""
    print(f"fetching {archive.url} ({archive.megabytes} MB)", file=sys.stderr)
    with TemporaryDirectory(prefix="dmsgd-") as folder:
        copy = Path(folder) / archive.url.rpartition("/")[2]
        try:
            urllib.request.urlretrieve(archive.url, copy)
        except (URLError, OSError) as error:
            raise OSError(
                f"could not fetch {archive.url} ({error}); download it by hand, or name a folder "
                f"that holds the data with data_dir or {VARIABLE}"
            ) from None
        found = hashlib.sha256(copy.read_bytes()).hexdigest()
        if found != archive.sha256:
            raise OSError(
                f"{archive.url} has the checksum {found[:12]}..., not {archive.sha256[:12]}...: it "
                f"was cut short or altered, and is not used"
            )
        use(copy)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a reader raises about a damaged file into one message that names it."""
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"{path} is damaged or cut short ({error}); fetch it again") from None


def load_arrays(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return arrays of a .npz file by name."""
    with reading(path), path.open("rb") as file, np.load(file) as archive:
        return {name: archive[name] for name in names}


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is complete as soon as it is there, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        hidden.write_bytes(content)
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)
