"""Prints the oldest versions that pyproject.toml admits, as constraints for pip.

    python tests/oldest.py > oldest.txt && pip install --constraint oldest.txt "dmsgd[test]"

Read from the installed metadata of dmsgd, so that it needs nothing but Python.
"""

from __future__ import annotations

import re
from importlib.metadata import requires

#: Name, extras, version, and the rest: which extra of dmsgd or which Python it is for.
BOUND = re.compile(r"([\w.-]+)(?:\[[^]]*\])?(?:<[\d.]+,)?>=([\d.]+)(.*)")


def oldest(requirements: list[str]) -> list[str]:
    """Return `name==version` for every requirement `name>=version`; extras of dmsgd have none.

    >>> oldest(["numba<0.69,>=0.62", 'dask[array]>=2024.8; extra == "dask"', "dmsgd[torch]"])
    ['dask==2024.8', 'numba==0.62']
    """
    bounds = [BOUND.fullmatch(each) for each in requirements]
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


if __name__ == "__main__":
    print("\n".join(oldest(requires("dmsgd") or [])))
