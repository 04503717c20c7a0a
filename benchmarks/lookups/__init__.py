"""The parts of `./dev bench lookup`."""
