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
        """(seconds, joules) of work(), which says how long it took: from an edge to the first one after it, less the quiet time in between."""
        if self.quiet_w is None:
            (t0, e0), _, (t1, e1) = self.edge(), time.sleep(QUIET_S), self.edge()
            self.quiet_w = (e1 - e0) / (t1 - t0)
        (t0, e0), seconds, (t1, e1) = self.edge(), work(), self.edge()
        return seconds, e1 - e0 - self.quiet_w * (t1 - t0 - seconds)


class Ranks:
    """What several processes tell each other, by the host alone: their devices are to have nothing to do."""

    def __init__(self, distributed):
        self.distributed = distributed
        self.group = distributed.new_group(backend="gloo") if distributed else None
        self.rank = distributed.get_rank() if distributed else 0

    def told(self, word):
        """Rank 0's word."""
        if not self.group:
            return word
        told = [word]
        self.distributed.broadcast_object_list(told, 0, self.group)
        return told[0]

    def summed(self, joules):
        if not self.group or joules is None:
            return joules
        all_joules = [None] * self.distributed.get_world_size()
        self.distributed.all_gather_object(all_joules, joules, self.group)
        return sum(all_joules)

    def together(self):
        if self.group:
            self.distributed.barrier(self.group)


def first_order(rank):
    """Of a program that HEC records: waited for before the program does anything, so that no wait is a part of what is recorded."""
    if rank > 0:
        return None
    print(json.dumps({"ready": True}), flush=True)
    return sys.stdin.readline().strip()


def serve(step, units, finish, card, order, distributed=None):
    """card: of the counter, of the first of several ranks; None: no joules. order: the first, where it is known already. distributed:
    torch.distributed, where there are several ranks."""
    ranks = Ranks(distributed)
    counter = Counter(card + ranks.rank) if card is not None else None

    def turn(steps):
        ranks.together()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        finish()
        return time.perf_counter() - start

    def say(**words):
        if ranks.rank == 0:
            print(json.dumps(words), flush=True)

    def next_order():
        return sys.stdin.readline().strip() if ranks.rank == 0 else None

    if order is None and card is not None:
        say(ready=True, units=units)
        order = next_order()
    while order := ranks.told(order):
        steps = int(order)
        seconds, joules = counter.of(lambda steps=steps: turn(steps)) if counter else (turn(steps), None)
        say(steps=steps, units=steps * units, seconds=seconds, joules=ranks.summed(joules))
        order = next_order()
