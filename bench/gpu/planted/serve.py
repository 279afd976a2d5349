"""A program that waits for orders: a line on standard input is a number of steps; the answer is a line of JSON. The end of the input ends it.

So that several arms of one comparison are ready at the same time, and take turns on one device."""
import ctypes
import json
import sys
import time

QUIET_S = 0.4  # watts of the device with nothing to do, before the first turn


class Counter:
    """The energy counter of a device, read at its edges: it moves every 20 to 100 ms."""

    def __init__(self, index):
        self.nvml, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        assert self.nvml.nvmlInit_v2() == 0
        assert self.nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(self.device)) == 0
        self.quiet_w = None

    def read(self):
        value = ctypes.c_ulonglong()
        assert self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value)) == 0
        return value.value / 1000

    def edge(self):
        before = self.read()
        while (now := self.read()) == before:
            pass
        return time.perf_counter(), now

    def of(self, work):
        """(seconds, joules) of work(): from an edge to the first one after it, less the quiet time in between."""
        if self.quiet_w is None:
            (t0, e0), _, (t1, e1) = self.edge(), time.sleep(QUIET_S), self.edge()
            self.quiet_w = (e1 - e0) / (t1 - t0)
        (t0, e0), start = self.edge(), time.perf_counter()
        work()
        end = time.perf_counter()
        t1, e1 = self.edge()
        return end - start, e1 - e0 - self.quiet_w * (t1 - t0 - (end - start))


def serve(step, units, finish, card):
    """card: of the counter; None: no joules, which is how a run that HEC records is to be."""
    counter = Counter(card) if card is not None else None

    def turn(steps):
        for _ in range(steps):
            step()
        finish()

    print(json.dumps({"ready": True, "units": units}), flush=True)
    for line in sys.stdin:
        steps = int(line)
        if counter:
            seconds, joules = counter.of(lambda steps=steps: turn(steps))
        else:
            start = time.perf_counter()
            turn(steps)
            seconds, joules = time.perf_counter() - start, None
        print(json.dumps({"steps": steps, "units": steps * units, "seconds": seconds, "joules": joules}), flush=True)
