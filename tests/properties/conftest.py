"""Profiles: a few hundred fixed cases in `make test`, ten thousand and more in `make fuzz`."""

from hypothesis import HealthCheck, settings

#: Cases are slow where numba compiles, and a table of calls is no fixture that cases could spoil.
_SHARED = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}

settings.register_profile("default", max_examples=4, derandomize=True, **_SHARED)
settings.register_profile("fuzz", max_examples=120, print_blob=True, **_SHARED)


def pytest_configure(config):
    settings.load_profile(config.getoption("--hypothesis-profile") or "default")
