"""Any call ends in a result that holds, or in one clear error: every public name, any argument."""

import inspect
import warnings
from typing import get_args, get_type_hints

import numpy as np
import pytest
from calls import CALLS
from given import Size
from hypothesis import given
from hypothesis import strategies as st
from outcomes import Fault, outcome
from training_calls import TRAINING

import dmsgd

ALL = {**CALLS, **TRAINING}

SIZES = st.builds(
    Size,
    n=st.integers(5, 8),
    d=st.integers(3, 4),
    k=st.integers(2, 3),
    seed=st.integers(0, 2**32),
)

#: Modules that users type.
MODULES = (
    "designs", "kernels", "spectra", "features", "targets", "sgd", "lda", "sklearn", "diagnostics",
    "torch",
)  # fmt: skip
#: Names that take nothing from users: types, errors, results, and what is made by others.
NOT_CALLED = {
    "ClusterError", "Design", "DeviceError", "KernelWarning", "Linear.landmark_features",
    "Precomputed.landmark_features", "RBF.landmark_features", "RankError", "SamplingError",
    "Schedule", "Selection", "TargetError", "designs.ClosedForm", "diagnostics.Inspection",
    "kernels.Kernel", "sgd.Step", "torch.Loader",
}  # fmt: skip
#: Methods that designs, training loops, diagnostics and commands call.
INTERNAL = {
    "facts", "inclusion_error", "lines", "log_det", "message", "replaced", "second_moment",
    "stream", "warn_rounding",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::dmsgd.KernelWarning")  # of a design that is an argument
@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_a_call_ends_well(name, data):
    call, size = ALL[name], data.draw(SIZES)
    spoiled = data.draw(st.sampled_from([None, *call.arguments]), "spoiled")
    arguments, verdict = {}, "good"
    for argument, kind in call.arguments.items():
        values = {"bad": kind.bad, "odd": kind.odd} if argument == spoiled else {"good": kind.good}
        choices = [(found, value) for found, makers in values.items() for value in makers]
        if not choices:
            return  # there is nothing to spoil it with
        found, value = data.draw(st.sampled_from(choices), argument)
        arguments[argument] = values[found][value](size)
        verdict = found if argument == spoiled else verdict
    judge(call, size, arguments, verdict)


def judge(call, size, arguments, verdict):
    """Raise unless the call ends as it must with arguments that are good, bad or odd."""
    result, error = outcome(lambda: call.run(size, **arguments), call.arguments, call.frameworks)
    if error is None and verdict == "bad":
        raise Fault(f"nonsense was taken in silence, and gave {result!r}")
    if error is not None and verdict == "good":
        raise error
    if error is None:
        failed = outcome(lambda: call.holds(result, size, arguments), call.arguments)[1]
        if failed is not None:
            raise failed


def public():
    """Return what users can call with arguments by name: functions, classes, methods of classes.

    Methods of torch samplers and scikit-learn estimators are their frameworks' to call.
    """
    found = {name: getattr(dmsgd, name) for name in dmsgd.__all__}
    for module in MODULES:
        home = getattr(dmsgd, module)
        names = getattr(home, "__all__", None) or [
            name
            for name, value in vars(home).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == home.__name__
        ]
        found |= {f"{module}.{name}": getattr(home, name) for name in names}
    methods = {
        f"{kind.__name__}.{name}": value
        for home, kind in found.items()
        if inspect.isclass(kind)
        and not inspect.isabstract(kind)
        and home.rpartition(".")[0] in ("", "designs", "kernels", "spectra", "diagnostics")
        for name, value in inspect.getmembers(kind, callable)
        if not name.startswith("_")
        and name not in INTERNAL
        and getattr(value, "__module__", "").startswith("dmsgd.")
        and len(inspect.signature(value).parameters) > (not inspect.ismethod(value))
    }
    return found | methods


PUBLIC = public()


def flags():
    """Return (name, argument) of all that a public name takes True or False for."""
    return [
        (name, argument)
        for name, value in PUBLIC.items()
        if name not in NOT_CALLED and callable(value)
        for argument, hint in get_type_hints(
            value.__init__ if inspect.isclass(value) else value
        ).items()
        if hint is bool or bool in get_args(hint)
    ]


def test_every_public_name_has_a_property():
    tested = {name.partition(" (")[0] for name in ALL}
    missing = set(PUBLIC) - tested - NOT_CALLED
    assert not missing, f"give these a line in tests/properties/calls.py: {sorted(missing)}"


def test_no_property_is_of_a_name_that_is_gone():
    tested = {name.partition(" (")[0] for name in ALL}
    assert not (tested | NOT_CALLED) - set(PUBLIC)


@pytest.mark.parametrize(("name", "argument"), flags())
def test_a_flag_is_true_or_false(name, argument):
    """Whatever else is given for it is refused, and by its name: "no" would count as yes."""
    size = Size(n=6, d=3, k=2, seed=0)
    call = next(call for key, call in ALL.items() if key.partition(" (")[0] == name)
    usual = {key: next(iter(kind.good.values()))(size) for key, kind in call.arguments.items()}
    for make in call.arguments[argument].bad.values():
        arguments = {**usual, argument: make(size)}
        error = outcome(lambda: call.run(size, **arguments), [argument], call.frameworks)[1]  # noqa: B023
        assert error is not None, arguments[argument]
        assert argument in str(error)


def warned():
    warnings.warn("not ours", RuntimeWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: [].pop(), "undocumented IndexError"),
        (lambda: np.ones(2) @ np.ones(3), "raised by"),
        (lambda: dmsgd.Uniform(5, 2).sample(-1), "names no argument of"),
        (warned, "leaked warning: not ours"),
    ],
)
def test_faults_are_found(call, words):
    """What the properties forbid does fail them."""
    with pytest.raises(Fault, match=words):
        outcome(call, ["another"])
