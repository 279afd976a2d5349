"""What hooks saw of steps like those before is noted, and worked off several steps at a time.

After a step of the program nothing of the hooks is in the processor's caches any more: each function that is called then takes some
microseconds, and a step needs a dozen of them. One after the other they find what the one before has brought there. What is noted is
reported 100 ms later at most while the program takes steps, and within a second where it takes none. The order stays: a hook that does
not note works off what was noted before it goes on."""

import collections
import threading
from typing import Any

from . import core, parts

LATEST_NS = 100_000_000
NOTED_MAX = 100_000  # more, of a program whose signals interrupt all work on them, are dropped: memory is the program's

noted: "collections.deque[tuple]" = collections.deque()  # (name of the hook, function, its arguments ...)
note = noted.append
since_ns = 0  # it was worked off last
_working = threading.RLock()  # a thread that an exception of a signal took out of its work finds it free


def work_off(t_ns: int) -> None:
    """t_ns: when the last event ended; since then it was noted, which took as long for each. An exception of the program's own goes on its
    way: the rest is for the next time."""
    global since_ns
    since_ns = core.now_ns()
    if len(noted) > NOTED_MAX:
        noted.clear()
    if not noted or not _working.acquire(False):  # another thread is at it
        return
    count, began_ns = 0, since_ns
    try:
        parts.look()
        while noted:
            what = noted.popleft()
            count += 1
            try:
                what[1](*what[2:])
            except Exception as error:
                core.failed(what[0], error)
    finally:
        _working.release()
    core.spent_on(count, core.now_ns() - began_ns + count * (began_ns - t_ns))


def forget() -> None:
    """Of the parent: a forked child begins anew."""
    global _working
    noted.clear()
    _working = threading.RLock()
