"""The help texts in docs/reference/commands.md; run this file to bring them up to date."""

from __future__ import annotations

import re
from pathlib import Path

from command_line import CliRunner
from dmsgd.commands import app

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
BLOCK = re.compile(r"```\n\$ dmsgd ?(\w*) --help\n(.*?)```", re.DOTALL)


def help_of(command):
    """Return what `dmsgd COMMAND --help` prints on a terminal of 80 columns."""
    result = CliRunner().invoke(
        app, [*command.split(), "--help"], prog_name="dmsgd", env={"COLUMNS": "80"}
    )
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    return "\n".join(lines).strip() + "\n"


def documented():
    """Return the documented help of each command; the one of `dmsgd` itself is named ""."""
    return dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    PAGE.write_text(
        BLOCK.sub(
            lambda block: block[0].replace(block[2], help_of(block[1])),
            PAGE.read_text(encoding="utf-8"),
        ),
        encoding="utf-8",
    )
