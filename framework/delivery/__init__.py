"""Delivery of records to whoever takes them: a queue and a thread for each, and what waits on the disk."""

from __future__ import annotations

from lockgate.framework.delivery.appended_lines import Line, append_lines, bytes_of
from lockgate.framework.delivery.delivery_queue import Delivery
from lockgate.framework.delivery.refused_records import write_accepted
from lockgate.framework.delivery.spool import Spool

__all__ = ["Delivery", "Line", "Spool", "append_lines", "bytes_of", "write_accepted"]
