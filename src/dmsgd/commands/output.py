"""Check output files before the work, and write them whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def check_output(
    output: Path, suffixes: tuple[str, ...], inputs: Sequence[str | None], force: bool
) -> None:
    """Raise unless `output` can be written; without `force` no file may be there.

    inputs: files, or file:NAME, which are never replaced.
    """
    from dmsgd.files.paths import check_path, split_path

    check_path(output)
    folder = Path(os.path.realpath(output)).parent  # where a link leads to
    if output.suffix.lower() not in suffixes:
        raise ValueError(f"{output}: the output must end in {' or '.join(suffixes)}")
    if not folder.is_dir():
        named = folder if output.is_symlink() else output.parent
        raise FileNotFoundError(f"there is no folder {named}; create it first")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} cannot be written to")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder; give a file")
    if not output.exists():
        return
    if not output.is_file():
        raise ValueError(f"{output} is a device or a pipe; give a file")
    files = [split_path(name)[0] for name in inputs if name]
    if any(file.exists() and output.samefile(file) for file in files):
        raise ValueError(f"{output} is an input of this command; write to another file")
    if not force:
        raise FileExistsError(f"{output} exists; use --force to replace it, or another name")


@contextmanager
def atomic_write(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """Yield a new file that becomes `path` if the block succeeds and is deleted if not.

    Without `force` it replaces no file, not even one that appeared meanwhile.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    start = target.name[:40]  # file systems limit the length of names
    hidden = target.with_name(f".{start}.{secrets.token_hex(4)}.tmp")
    try:
        with open(hidden, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not force:
            try:
                os.link(hidden, target)  # claims the name, if no other file has it
            except OSError:  # the name is taken, or the file system has no links
                if os.path.lexists(target):
                    raise FileExistsError(
                        f"{path} was written by another program meanwhile, and is left as it is; "
                        f"use --force to replace it, or another name"
                    ) from None
        os.replace(hidden, target)
    except OSError as error:
        if error.errno is None:  # raised with a message of its own
            raise
        why = f"cannot write {path}: {os.strerror(error.errno)}; the old file, if any, is unchanged"
        raise OSError(error.errno, why) from error
    finally:
        hidden.unlink(missing_ok=True)
