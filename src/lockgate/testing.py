"""Suites for plugins: subclass one in your tests, and pytest runs it."""

from lockgate.framework.testing import *  # noqa: F403 - all of its names, and no others
from lockgate.framework.testing import __all__ as __all__
