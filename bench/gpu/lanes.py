"""One program on each card at a time, with its share of the cores."""
import contextlib
import os
import queue


class Lanes:
    """count: cards of the machine. only: numbers of those to use, with commas between, or None for all."""

    def __init__(self, count, only=None):
        cores = os.cpu_count()
        self.cards = [int(card) for card in only.split(",")] if only else list(range(count))
        self.free = queue.Queue()
        for card in self.cards:
            self.free.put((card, f"{card * cores // count}-{(card + 1) * cores // count - 1}"))

    @contextlib.contextmanager
    def one(self):
        """(card, its cores as taskset takes them), waited for."""
        lane = self.free.get()
        try:
            yield lane
        finally:
            self.free.put(lane)
