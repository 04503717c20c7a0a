"""The parts of `./dev bench store`."""
