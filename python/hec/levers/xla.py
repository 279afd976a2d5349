"""Flags of XLA: it reads them when its first backend starts, and ends the process at one that it does not know. So each is tried in a
child first, and set only while no backend has started."""

import os
import subprocess
import sys
from typing import Any

from . import core

_PROBE = "from jaxlib import xla_client; xla_client.make_cpu_client()"
_PROBE_S = 60


class Flag:
    """One lever's: name and value."""

    def __init__(self, flag: str) -> None:
        self.flag = flag
        self.before: Any = None
        self.patched: Any = None

    def apply(self, lever: core.Lever) -> None:
        bridge = sys.modules["jax._src.xla_bridge"]
        self.before = os.environ.get("XLA_FLAGS")
        there = (self.before or "").split()
        if self.flag in there:
            lever.already("XLA_FLAGS has %s" % self.flag)
            return
        if any(word.startswith(self.flag.partition("=")[0] + "=") for word in there):
            lever.nothing("XLA_FLAGS has another value: %s" % self.before)
            return
        if bridge.backends_are_initialized():
            lever.nothing("XLA has started already")
            return
        if not _known(self.flag):
            lever.failed("this jaxlib does not know %s" % self.flag)
            return
        os.environ["XLA_FLAGS"] = " ".join(there + [self.flag])
        self.patched = core.Patch(bridge, "backends", lambda inner: self._watch(lever, bridge, inner))
        self.patched.install()

    def _watch(self, lever: core.Lever, bridge: Any, inner: Any) -> Any:
        def backends() -> Any:
            new = not bridge.backends_are_initialized()
            there = self.flag in os.environ.get("XLA_FLAGS", "").split()
            found = inner()
            if new:
                names = ", ".join(sorted(found))
                if not there:
                    lever.nothing("the program took it out of XLA_FLAGS")
                elif "cuda" in found or "gpu" in found:
                    lever.on("%s was there when XLA started (%s)" % (self.flag, names))
                else:
                    lever.nothing("no GPU among XLA's backends (%s)" % names)
                self.patched.remove()
            return found

        return backends

    def revert(self) -> None:
        if self.patched is None:
            return
        self.patched.remove()
        self.patched = None
        words = [word for word in os.environ.get("XLA_FLAGS", "").split() if word != self.flag]
        if words or self.before is not None:
            os.environ["XLA_FLAGS"] = " ".join(words)
        else:
            os.environ.pop("XLA_FLAGS", None)


def _known(flag: str) -> bool:
    environment = dict(os.environ, XLA_FLAGS=flag, HEC_HOOKS="0", CUDA_VISIBLE_DEVICES="")
    environment.pop("HEC_LEVERS", None)
    done = subprocess.run(
        [sys.executable, "-c", _PROBE],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_PROBE_S,
        check=False,
    )
    return done.returncode == 0
