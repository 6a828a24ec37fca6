import json

import stored_draws


def test_draws_are_those_that_were_stored():
    """Bit for bit: the law allows others, but schedules and runs of users rely on them."""
    assert stored_draws.draws() == json.loads(stored_draws.FILE.read_text())
