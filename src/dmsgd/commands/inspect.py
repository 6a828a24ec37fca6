"""`dmsgd inspect`: what diverse batches would hold, on one screen, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dmsgd.commands.arguments import Seed
from dmsgd.commands.asked import Asked, asking
from dmsgd.commands.terminal import bar, say, show
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.diagnostics import Advice, Examination, Price, Prospect

#: With more classes than this the table shows the commonest and the rarest only.
CLASSES_SHOWN = 8
#: Characters of a class's name that are looked at; the column shows fewer.
NAME = 40

#: Names that would make the table too wide.
SHORT = {"stratified": "strata"}


@asking
def inspect(
    asked: Asked,
    seed: Seed = 0,
) -> None:
    """Predict what batches would hold, and recommend settings.

    \b
    Examples:
      dmsgd inspect features.npy --labels y.npy -k 64
      dmsgd inspect features.npy --labels y.npy --normalize -k 64
      dmsgd inspect features.npy -k 64
      dmsgd inspect iris.csv --labels species -k 10
      dmsgd inspect tfidf.npz --rho 0.1 -k 50

    Column w=0.7 is the design that `dmsgd sample` draws from with the same options and -w 0.7;
    advised is the recommended one, or the one whose b is. A k-DPP does two things: who is seen
    shows in class shares and effective items, who meets in the noise (variance of a batch's
    features) that repulsion removes. Below are the prices of both, and of the same b alone. All
    but that noise and the prices are closed forms, of a random sample where the data is large.
    Nothing is written.
    """
    settings = asked.settings()
    from dmsgd.diagnostics import advise, concerns, examine

    X, y = asked.load()
    with bar("Eigendecompositions (the first run of all compiles the sampler)") as progress:
        found = examine(X, asked.k, y, settings, ws=shown_ws(asked.w), seed=seed, progress=progress)
    advice = advise(found)
    for line in summary(asked.features, found):
        say(line)
    say()
    show(prospects_table(found, advice))
    for sentence in concerns(found):
        say(f"! {sentence}", wrapped=True)
    say()
    say(f"Recommended: {advice.kind}. Reason: {advice.reason}.", wrapped=True)
    say(f"  {advice.code(found.k)}")
    command = sample_command(advice, found, asked)
    if command:
        say(f"  {command}")


def shown_ws(w: float) -> tuple[float, ...]:
    """Return the w that the table shows: the usual ones, with the nearest replaced by `w`."""
    from dmsgd.diagnostics.examination import WS

    if w in WS:
        return WS
    nearest = min(WS[1:], key=lambda each: abs(each - w))
    return tuple(w if each == nearest else each for each in WS)


def summary(features: str, found: Examination) -> list[str]:
    """Return the first lines: size of the data, the kernel, its rank against k."""
    from dmsgd.diagnostics.examination import WORD_POWER

    sizes = sorted(found.classes.values())
    several = counted(len(sizes), "class")
    classes = f", {several} of {sizes[0]:,} to {sizes[-1]:,}" if sizes else ""
    room = found.room
    if room.rank < found.k:
        fit = "too few for such a batch"
    elif room.crowding < 1:
        fit = "more kinds of items than places in a batch"
    else:
        fit = f"{room.crowding:.1f} places for each kind of item"
    lines = [
        f"data      {features}: {counted(found.n, 'item')} x {found.d:,}{classes}",
        f"kernel    {found.settings.describe()}",
        f"rank      {room.rank:,}, effective {room.effective_rank:.1f}, k {found.k}: {fit}",
    ]
    if found.sampled < found.n:
        lines.append(
            f"sample    of {counted(found.sampled, 'item')}, on which all below is predicted"
        )
    if found.words and found.settings.rho is None:
        like = "sparse and not negative, like counts of words"
        lines.append(f"features  {like}: --rho {WORD_POWER} is for such")
    return lines


def prospects_table(found: Examination, advice: Advice) -> Table:
    """Return the predicted class shares and figures: a column for each way to draw batches.

    The advised one has its own where the settings that were asked for are others.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from dmsgd.inputs.messages import visible

    table = Table(
        title=f"What a batch of {found.k} would hold",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
    )
    table.add_column("class (items)" if found.classes else "", no_wrap=True, max_width=20)
    shown = {SHORT.get(each.name, each.name).replace(" = ", "="): each for each in found.prospects}
    candidate = found.candidate
    if candidate and candidate.settings == advice.settings and candidate not in found.prospects:
        shown["advised b" if advice.kind == "weighted" else "advised"] = candidate
    for heading in shown:
        table.add_column(heading, justify="right", no_wrap=True)
    prospects, labels = shown.values(), _shown(found.classes)
    for label in labels:
        name = f"{visible(label, NAME)} ({found.classes[label]:,})"
        shares = (f"{each.shares.get(label, 0.0):.1%}" for each in prospects)
        table.add_row(Text(name, overflow="ellipsis"), *shares)
    if len(labels) < len(found.classes):
        table.caption = f"of {len(found.classes)} classes the commonest and the rarest"
    if labels:
        table.add_section()
        table.add_row("evenness, 1 is even", *(f"{each.evenness:.2f}" for each in prospects))
    for name, cell in FIGURES:
        table.add_row(name, *(cell(each) for each in prospects))
    return table


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _draw(price: Price | None) -> str:
    return "" if price is None else _number(1e6 * price.draw)


def _setup(price: Price | None) -> str:
    return "" if price is None else _number(1e3 * price.setup)


def _repelled(each: Prospect) -> str:
    return "" if each.repulsion is None else f"{max(each.repulsion.value, 0.0):.0%}"


#: The rows below the classes: who is seen, who meets, the price.
FIGURES: tuple[tuple[str, Callable[[Prospect], str]], ...] = (
    ("effective items", lambda each: f"{each.effective_items:.0%}"),
    ("seen in one epoch", lambda each: f"{each.seen:.0%}"),
    ("size if unbiased", lambda each: f"{each.effective_batch:.0f}"),
    ("noise repelled", _repelled),
    ("µs to draw a batch", lambda each: _draw(each.price)),
    ("  the same b alone", lambda each: _draw(each.same_b)),
    ("ms to set up", lambda each: _setup(each.price)),
    ("  the same b alone", lambda each: _setup(each.same_b)),
)


def _shown(classes: dict[Any, int]) -> list[Any]:
    ordered = sorted(classes, key=lambda label: -classes[label])
    if len(ordered) <= CLASSES_SHOWN:
        return ordered
    return ordered[: CLASSES_SHOWN // 2] + ordered[-CLASSES_SHOWN // 2 :]


def sample_command(advice: Advice, found: Examination, asked: Asked) -> str:
    """Return the command that draws the recommended batches, "" where there is none."""
    import shlex

    if advice.settings is None:
        return ""
    words = f"dmsgd sample {shlex.quote(asked.features)} -k {found.k} -n 1000 {advice.options()}"
    for name in ("labels", "columns", "drop"):
        if (given := getattr(asked, name)) is not None:
            words += f" --{name} {shlex.quote(given)}"
    return f"{words} -o batches.npy"
