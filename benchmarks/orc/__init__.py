"""The parts of `./dev bench orc`; import this before Arrow."""

import os

# Arrow's allocator gives memory back whenever it likes; taking it again costs up to twice the decoding,
# of whichever function is being timed. Here it keeps what it has, for all functions alike.
ALLOCATOR = "MIMALLOC_PURGE_DELAY"
os.environ.setdefault(ALLOCATOR, "-1")
