import json

import pytest

import stored_draws


def test_draws_are_those_that_were_stored():
    """Bit for bit: the law allows others, but schedules and runs of users rely on them."""
    assert stored_draws.draws() == json.loads(stored_draws.FILE.read_text())


def test_features_on_a_gpu_give_the_same():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    found = stored_draws.draws(lambda array: torch.tensor(array, device="cuda"))
    assert found == json.loads(stored_draws.FILE.read_text())
