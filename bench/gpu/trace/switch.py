"""What a bench switches inside its own process: HEC's tracer and hooks, an empty CUPTI client, torch.profiler."""
import ctypes
import os
import sys
import time

# What the tracer has on in mode full (src/tracer/attach.c), with the kind that matters most last.
CLIENT_KINDS = [int(kind) for kind in os.environ.get("CLIENT_KINDS", "1,2,22,10").split(",")]
# The tracer lets another client's last call pass by for a second before it tells that the client has left.
QUIET_S = 1.6


def mapped(name):
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if os.path.basename(path).startswith(name):
                return path
    return None


class Hec:
    """The tracer in this process and, in a Python program, the hooks. Without HEC everything does nothing."""

    def __init__(self, hooks=True, tracer=True):
        path = mapped("libhectrace.so") if tracer else None
        self.library = ctypes.CDLL(path) if path else None
        self.hooks = sys.modules.get("_hec_hooks") if hooks else None
        self.on = True

    def set(self, on):
        if on == self.on:
            return
        self.on = on
        for part, names in ((self.library, ("hec_trace_pause", "hec_trace_resume")), (self.hooks, ("pause", "resume"))):
            if part:
                getattr(part, names[on])()


class Client:
    """client.c, an empty client of the libcupti that this process has. Records are counted and thrown away."""

    def __init__(self, path):
        os.environ["PROBE_CUPTI"] = mapped("libcupti.so") or "libcupti.so.13"
        self.library = ctypes.CDLL(path)
        self.library.client_records.restype = ctypes.c_ulonglong
        self.on = False
        self.code = self.library.client_load()

    def set(self, on):
        if on == self.on:
            return
        self.on = on
        if on:
            self.code = self.code or self.library.client_register()
        for kind in CLIENT_KINDS:
            self.code = self.code or self.library.client_set(kind, on)
        if not on:
            self.library.client_flush(1)


def settle(seconds=0.15):
    time.sleep(seconds)
