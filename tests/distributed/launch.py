"""Run the scripts that are named, one after the other in the same processes."""

import sys
from importlib import import_module

from common import write

write({script: import_module(script).main() for script in sys.argv[2:]})
