"""`dmsgd demo`: two comparisons of ways to draw batches, with a picture each, and a report page."""

from __future__ import annotations

from pathlib import Path

import click

from dmsgd.commands.options import FORCE
from dmsgd.commands.output import atomic_write
from dmsgd.commands.terminal import echo, echo_table, progress_bar
from dmsgd.files.paths import check_path
from dmsgd.inputs.messages import require

#: What is written.
DOCUMENTS, DIGITS, PAGE = "documents.png", "digits.png", "report.html"


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="dmsgd-demo",
    help="Folder for the pictures and the report.",
)
@click.option(
    "--seeds", type=click.IntRange(min=2), default=10, help="Repetitions of each comparison."
)
@FORCE
def demo(out: Path, seeds: int, force: bool) -> None:
    """Compare ways to draw batches: tables, pictures, a report.

    First documents without labels, then digits with labels; half a minute. Nothing is downloaded.

    \b
    Examples:
      dmsgd demo
      dmsgd demo --seeds 3 --out pictures
    """
    require("demo", "dmsgd demo")
    for name in (DOCUMENTS, DIGITS, PAGE):
        check_path(out / name)
        if (out / name).exists() and not force:
            raise FileExistsError(f"{out / name} exists; use --force to replace it, or --out")
    from dmsgd.commands import demo_comparisons as parts

    out.mkdir(parents=True, exist_ok=True)
    for title, name, run, present in (
        ("1. Documents without labels", DOCUMENTS, parts.draw_documents, parts.show_documents),
        ("2. Digits with labels", DIGITS, parts.train_digits, parts.show_digits),
    ):
        echo(title)
        with progress_bar("Drawing batches") as progress:
            table, words, figure = present(parts.repeat(run, seeds, progress))
        with atomic_write(out / name, force) as file:
            figure.savefig(file, dpi=100)
        echo_table(table)
        echo(words, wrapped=True)
        echo()
    with progress_bar("Report") as progress, atomic_write(out / PAGE, force) as file:
        file.write(parts.page(progress).encode())
    echo("A picture of each, and a page with sliders on the digits:")
    for name in (DOCUMENTS, DIGITS, PAGE):
        echo(str(out / name))
