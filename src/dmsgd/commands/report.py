"""`dmsgd report`: one page that shows what diverse batches do to the data, to open or to send."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from dmsgd.commands.arguments import Force, Seed, refuse_output, replacing
from dmsgd.commands.asked import Asked, asking
from dmsgd.commands.terminal import bar, say
from dmsgd.inputs.messages import counted


@asking
def report(
    asked: Asked,
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write: .html.")],
    texts: Annotated[
        str | None,
        typer.Option(help="Text of each item: a file as for --labels (.txt: one per line)."),
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(help="Picture of each item: .npy or .npz, (items, height, width[, 3])."),
    ] = None,
    gradients: Annotated[
        str | None,
        typer.Option(help="Gradient of each item's loss, as rows: adds a section on variance."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            help="Table of the items to write: number, class, times uniform, what it is a copy of.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page.  [default: the name of FEATURES]")
    ] = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Write a page: who is seen more, how diverse, at what cost.

    \b
    Examples:
      dmsgd report features.npy -k 64 -o report.html
      dmsgd report features.npy --labels y.npy -w 0.7 --normalize -k 64 -o r.html
      dmsgd report tfidf.npz --rho 0.1 -k 50 -o report.html
      dmsgd report iris.csv --labels species --kernel rbf -k 10 -o report.html
      dmsgd report features.npy --normalize -k 64 -o report.html --csv items.csv

    The page opens from disk and loads nothing. It begins with the design that `dmsgd sample` draws
    from with the same options; sliders show other w and k (of a --target, none). It takes the
    k-DPP apart into who is seen and who meets, with the price of each; with --gradients the
    recommendation follows from these. For curation it lists who is favoured, within a class too,
    near-copies and outliers. Very large data is sampled, and the page says so.
    """
    inputs = [asked.features, asked.labels, texts, images, gradients]
    refuse_output(output, (".html", ".htm"), inputs, force)
    if table is not None:
        refuse_output(table, (".csv",), inputs, force)
    from dmsgd.inputs.scalars import seed_key
    from dmsgd.report import build, render

    seed_key(seed)
    began = time.perf_counter()
    settings = asked.settings()
    X, y = asked.load()
    extras = _extras(texts, images, gradients, X.shape[0])
    with bar("Eigendecompositions (the first run of all compiles the sampler)") as progress:
        content = build(X, asked.k, y, settings, **extras, seed=seed, progress=progress)
    page = render(content, title or Path(asked.features).name).encode()
    with replacing(output, force) as file:
        file.write(page)
    if table is not None:
        with replacing(table, force) as file:
            file.write(content["csv"].encode())
    say(f"features  {asked.features}: {counted(X.shape[0], 'item')} x {X.shape[1]:,}")
    if content["sampled"] < content["n"]:
        say(f"sample    of {content['sampled']:,} items, which the page shows")
    if y is not None and not settings.uses_labels:
        others = (
            "the slider over w mixes them in"
            if asked.target is None
            else "-w 0.7 would mix them in"
        )
        say(f"labels    do not count where the page begins; {others}")
    seconds = time.perf_counter() - began
    if table is not None:
        say(f"table     {table}: {content['sampled']:,} items")
    say(f"written   {output}: {len(page) / 1e6:.1f} MB in {seconds:.1f} s")


def _extras(texts: str | None, images: str | None, gradients: str | None, n: int) -> dict[str, Any]:
    """Return the optional arrays in these files."""
    from dmsgd.commands.loading import load_features

    return {
        "texts": None if texts is None else _load_texts(texts, n),
        "images": None if images is None else _load_images(images),
        "gradients": None if gradients is None else load_features(gradients),
    }


def _load_texts(path: str, n: int) -> Any:
    """Return one text per item; unlike labels, lines of a .txt file may be empty."""
    from dmsgd.commands.loading import load_labels
    from dmsgd.files.csv_files import open_text
    from dmsgd.files.paths import existing

    if not path.lower().endswith(".txt"):
        return load_labels(path, n=n)
    file, _ = existing(path, (".txt",))
    with open_text(file) as stream:
        return stream.read().removesuffix("\n").split("\n")


def _load_images(path: str) -> Any:
    from dmsgd.files.numpy_files import load_npy, load_npz
    from dmsgd.files.paths import existing

    file, name = existing(path, (".npy", ".npz"))
    return (
        load_npy(file)
        if file.suffix.lower() == ".npy"
        else load_npz(file, name, ("images", "X", "x"))
    )
