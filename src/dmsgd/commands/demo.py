"""`dmsgd demo`: two comparisons of ways to draw batches, with a picture each, and a report page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dmsgd.commands.arguments import Force, replacing
from dmsgd.commands.terminal import bar, say, show
from dmsgd.files.paths import refuse_impossible
from dmsgd.inputs.messages import require

#: What is written.
DOCUMENTS, DIGITS, PAGE = "documents.png", "digits.png", "report.html"


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures and the report.", file_okay=False)
    ] = Path("dmsgd-demo"),
    seeds: Annotated[int, typer.Option(min=2, help="Repetitions of each comparison.")] = 10,
    force: Force = False,
) -> None:
    """Compare ways to draw batches: tables, pictures, a report.

    First documents without labels, then digits with labels; half a minute. Nothing is downloaded.

    \b
    Examples:
      dmsgd demo
      dmsgd demo --seeds 3 --out pictures
    """
    require("demo", "dmsgd demo")
    for name in (DOCUMENTS, DIGITS, PAGE):
        refuse_impossible(out / name)
        if (out / name).exists() and not force:
            raise FileExistsError(f"{out / name} exists; use --force to replace it, or --out")
    from dmsgd.commands import demo_comparisons as parts

    out.mkdir(parents=True, exist_ok=True)
    for title, name, run, present in (
        ("1. Documents without labels", DOCUMENTS, parts.draw_documents, parts.show_documents),
        ("2. Digits with labels", DIGITS, parts.train_digits, parts.show_digits),
    ):
        say(title)
        with bar("Drawing batches") as progress:
            table, words, figure = present(parts.repeat(run, seeds, progress))
        with replacing(out / name, force) as file:
            figure.savefig(file, dpi=100)
        show(table)
        say(words, wrapped=True)
        say()
    with bar("Report") as progress, replacing(out / PAGE, force) as file:
        file.write(parts.page(progress).encode())
    say("A picture of each, and a page with sliders on the digits:")
    for name in (DOCUMENTS, DIGITS, PAGE):
        say(str(out / name))
