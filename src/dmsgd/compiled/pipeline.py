"""Numba's compiler without what functions of numbers and pointers do not need.

It passes over a function some thirty times, mostly in search of arrays, closures and constants that
these loops do not have. And it makes machine code of every function, also of those that are only
ever contained in others, where they are optimised and made into machine code again. Without both
the first batch of a new user comes a tenth sooner. (What is contained is still optimised by itself:
without that its callers would be slower.)
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass


class _Text(JITCodeLibrary):
    """Code that is linked into that of callers, and is no machine code by itself."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


def _not_executable(library: Any, description: Any, environment: Any) -> Any:
    """Return what stands for a function that cannot be called from Python."""
    module, name = description.lookup_module(), description.qualname.split(".")[-1]
    return _dynfunc.make_function(module, name, "", 0, environment, (library,))


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringToText(typed_passes.NativeLowering):
    """Numba's lowering, up to machine code."""

    _name = "lowering_to_text"

    def run_pass(self, state: Any) -> Any:
        context = state.targetctx
        state.library = _Text(context.codegen(), state.func_id.func_qualname)
        state.targetctx = context.subtarget(get_executable=_not_executable)
        try:
            return super().run_pass(state)
        finally:
            state.targetctx = context


class Called(CompilerBase):
    """Compiles a function that is called from Python or by its address."""

    lowering = typed_passes.NativeLowering

    def define_pipelines(self) -> list[Any]:
        """Return the one list of passes."""
        passes = PassManager("pointers")
        for each in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            typed_passes.AnnotateTypes,
            self.lowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


class Contained(Called):
    """Compiles a function that compiled functions call by name, so that they contain it."""

    lowering = _LoweringToText
