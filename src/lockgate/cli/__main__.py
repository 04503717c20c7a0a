"""`python -m lockgate.cli` is the command `lockgate`."""

import sys

from lockgate.cli.main import main

sys.exit(main())
