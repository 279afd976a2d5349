"""One program on each card at a time, or on each so many, with its share of the cores."""
import contextlib
import os
import queue


class Lanes:
    """count: cards of the machine. only: numbers of those to use, with commas between, or None for all. a_program: cards that each takes."""

    def __init__(self, count, only=None, a_program=1):
        cores = os.cpu_count()
        cards = [int(card) for card in only.split(",")] if only else list(range(count))
        groups = [cards[first:first + a_program] for first in range(0, len(cards) - a_program + 1, a_program)]
        self.cards = groups if a_program > 1 else cards
        self.free = queue.Queue()
        for group, card in zip(groups, self.cards):
            self.free.put((card, ",".join(f"{one * cores // count}-{(one + 1) * cores // count - 1}" for one in group)))

    @contextlib.contextmanager
    def one(self):
        """(card, or list of them, and its cores as taskset takes them), waited for."""
        lane = self.free.get()
        try:
            yield lane
        finally:
            self.free.put(lane)
