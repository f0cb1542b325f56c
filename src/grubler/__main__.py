"""`python -m grubler`: the command line."""

import sys

from .cli import main

sys.exit(main())
