"""`python -m trainwatch` is `trainwatch`."""
from __future__ import annotations

import sys

from trainwatch.cli import main

sys.exit(main())
