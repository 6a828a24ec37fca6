"""click's test runner, with standard error apart from standard output in every version of click."""

from __future__ import annotations

from inspect import signature

from click import testing


class CliRunner(testing.CliRunner):
    """As in click 8.2; earlier versions mix the two unless told otherwise."""

    def __init__(self) -> None:
        mixes = "mix_stderr" in signature(testing.CliRunner.__init__).parameters
        super().__init__(**({"mix_stderr": False} if mixes else {}))
