"""Ready-made tests for the author of a mask: subclass, name the mask, and let pytest find it.

from lockgate.plugins import MaskConformance

class TestInitials(MaskConformance):
    factory = staticmethod(initials)
    parameters = ("2",)
    samples = (pa.array(["Mary", None, ""]),)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from lockgate.framework.plugins import MaskFactory, MaskFunction

_REPEATS = 5


class MaskConformance:
    """Tests of what every mask promises.

    `samples` are arrays of the types that the mask takes, with a null in each.
    """

    factory: ClassVar[MaskFactory]
    parameters: ClassVar[Sequence[str]] = ()
    samples: ClassVar[Sequence[pa.Array]]

    def test_type_and_length_stay(self) -> None:
        """The mask is stored in the column's place."""
        for values in self.samples:
            masked = self._mask()(values)
            assert isinstance(masked, pa.Array)
            assert (masked.type, len(masked)) == (values.type, len(values))
            masked.validate(full=True)

    def test_values_do_not_stay(self) -> None:
        """A mask that changes nothing shows everything."""
        for values in self.samples:
            assert values.null_count, "each sample wants a null"
            assert not self._mask()(values).equals(values)

    def test_no_values_are_masked_too(self) -> None:
        """Columns are masked in parts, and a part may be empty; a type is tried with one simple value."""
        for values in self.samples:
            assert len(self._mask()(values.slice(0, 0))) == 0
            assert len(self._mask()(pa.nulls(3, values.type))) == 3

    def test_slices_are_masked_as_copies(self) -> None:
        """Arrow arrays may begin in the middle of their memory."""
        for values in self.samples:
            copies = pa.concat_arrays([values] * _REPEATS)
            for start in range(len(values)):
                window = copies.slice(start, len(values))
                masked = self._mask()(window)
                assert (masked.type, len(masked)) == (values.type, len(values))
                again = self._mask()(pa.array(window.to_pylist(), values.type))
                assert [each.is_valid for each in masked] == [each.is_valid for each in again]

    def test_the_original_is_left_alone(self) -> None:
        """A mask does not change its argument, because the true values are written after it."""
        for values in self.samples:
            before = values.to_pylist()
            self._mask()(values)
            assert values.to_pylist() == before

    def _mask(self) -> MaskFunction:
        return type(self).factory(self.parameters)
