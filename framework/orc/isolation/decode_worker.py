"""The process that decodes untrusted files: it may crash or hang without harm.

It receives plain ORC images over a socket and returns Arrow IPC. It gets no key, no path, and only the
environment variables that Python and Arrow need. It ends with its parent.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
from typing import Any

# Operation, limits in milliseconds and in bytes of memory, number of bytes that follow.
REQUEST = struct.Struct(">BIQQ")
# Status, number of bytes that follow: Arrow IPC, or the text of an error.
RESPONSE = struct.Struct(">BQ")
TABLE, SCHEMA = range(2)
DONE, INVALID, FAILED, NO_MEMORY = range(4)
READY = b"\x01"
# The alarm comes after the parent's own deadline, for the case that the parent has ended.
_ALARM_AFTER_SECONDS = 1.0
_MAX_ERROR_LENGTH = 4096


def main(descriptor: int) -> None:
    """Serve the parent at the other end of a socket until the parent ends."""
    link = socket.socket(fileno=descriptor)
    # A core file would expose values.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A child inherits it if its parent ignores or blocks the alarm.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    threading.Thread(target=_exit_with_parent, args=(link,), daemon=True).start()
    import pyarrow as pa
    import pyarrow.orc

    pa.set_cpu_count(1)
    # The output of a crashing decoder may expose values.
    dev_null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(dev_null, 2)
    os.close(dev_null)
    # All modules are loaded; from here on, the process must not write files.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    link.sendall(READY)
    while True:
        kind, milliseconds, memory, length = REQUEST.unpack(receive(link, REQUEST.size))
        image = receive(link, length)
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000 + _ALARM_AFTER_SECONDS)
        _limit(memory)
        status, content = _answer(kind, image)
        signal.setitimer(signal.ITIMER_REAL, 0)
        link.sendall(RESPONSE.pack(status, len(content)))
        link.sendall(content)


def receive(link: socket.socket, length: int) -> bytearray:
    """Return exactly `length` bytes; `EOFError` if the other end closes before."""
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = link.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


def _answer(kind: int, image: bytearray) -> tuple[int, Any]:
    import pyarrow as pa

    try:
        return DONE, _decode(kind, image)
    except pa.ArrowInvalid as error:
        return INVALID, _text(error)
    except MemoryError as error:
        return NO_MEMORY, _text(error)
    except Exception as error:  # every error of the decoder goes to the parent
        return FAILED, _text(error)


def _decode(kind: int, image: bytearray) -> Any:
    import pyarrow as pa
    import pyarrow.orc

    file = pyarrow.orc.ORCFile(pa.BufferReader(pa.py_buffer(image)))
    sink = pa.BufferOutputStream()
    table = file.read() if kind == TABLE else file.schema.empty_table()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return memoryview(sink.getvalue())


def _text(error: Exception) -> bytes:
    return (str(error) or type(error).__name__).encode(errors="replace")[:_MAX_ERROR_LENGTH]


def _limit(memory: int) -> None:
    """Limit this process to `memory` bytes; the hard limit is unchanged, for the next request."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _exit_with_parent(link: socket.socket) -> None:
    """Wait until the parent ends, then exit at once, even while the decoder runs."""
    poll = select.poll()
    poll.register(link, select.POLLHUP)
    while not any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
        pass
    os._exit(0)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except (EOFError, OSError):  # the parent has ended
        os._exit(0)
