"""What is a step, and how many samples it took. Plain bookkeeping, without PyTorch."""

from typing import Any, Callable, Dict, Optional

MISSED_MAX = 32


class Cycle:
    """Several things may end in turn: the optimizers of two networks, the models of a pipeline. A step ends with the
    one of them that came last into play. It is believed until the others ended MISSED_MAX times without it.

    The ends of the very first round are held back until something ends for the second time: only the last of them was
    a step of its own.

    What ends is any object that is the same each time, a weak reference to an optimizer say: a cycle keeps it."""

    def __init__(self, give: Callable[[int, Optional[float]], None]) -> None:
        self._give = give
        self._known: Dict[int, Any] = {}  # by the id
        self._last: Optional[int] = None
        self._missed = 0
        self._held: Optional[tuple] = None
        self._only: Any = None  # the one that ended, if no other ever did

    def ended(self, thing: Any, t_ns: int, samples: Callable[[], Optional[float]]) -> None:
        """samples: called when this end is a step, for the samples since the last one."""
        if self._only is thing:  # as ever: nothing else ends
            self._give(t_ns, samples())
            return
        self._only = None
        key = id(thing)
        if self._known.get(key) is not thing:
            if len(self._known) > 1000:
                self._known.clear()
            self._known[key] = thing
            first, self._last, self._missed = self._last is None, key, 0
            if first or self._held is not None:  # the first round, until something ends again
                now = samples()
                self._held = (t_ns, self._held[1] if self._held and now is None else now)
                return
        elif key != self._last:
            self.finish()
            self._missed += 1
            if self._missed <= MISSED_MAX:
                return
            self._last, self._missed = key, 0
        self._missed = 0
        self.finish()
        self._give(t_ns, samples())
        if len(self._known) == 1:
            self._only = thing

    def finish(self) -> None:
        """Give what is held back."""
        held, self._held = self._held, None
        if held is not None:
            self._give(*held)


class Deliveries:
    """What one pass over a data loader gave since the last step."""

    __slots__ = ("sizes", "batches", "last", "unknown", "given", "used", "as_list")

    def __init__(self) -> None:
        self.sizes = 0
        self.batches = 0
        self.last = 0  # samples of the newest batch
        self.unknown = False
        self.given = 0  # batches, in all
        self.used = 0  # times that a backward pass followed, and no other loader's batch in between
        self.as_list: Optional[bool] = None  # the batch is a list of so many samples


class Samples:
    """Samples of a training step: what the loaders of training gave since the last one; without such a loader, the
    batches of the outermost modules' calls, summed over the backward passes."""

    def __init__(self) -> None:
        self._since: "list[Deliveries]" = []
        self._newest: Optional[Deliveries] = None
        self._calls: Dict[int, int] = {}
        self._part = 0  # by calls, since an optimizer stepped
        self._last_part = 0
        self.by_loaders = False  # the last step's samples came from loaders: calls need not be looked at

    def delivered(self, deliveries: Deliveries, size: Optional[int]) -> None:
        deliveries.given += 1
        deliveries.batches += 1
        if size is None:
            deliveries.unknown = True
        else:
            deliveries.sizes += size
        deliveries.last = size or 0
        if deliveries not in self._since:
            self._since.append(deliveries)
            del self._since[:-16]
        self._newest = deliveries

    def newest(self) -> "tuple[int, int]":
        """Batches that the last loader to give one gave since the last step, and their samples."""
        newest = self._newest
        return (0, 0) if newest is None else (newest.batches, newest.sizes)

    def called(self, module: Any, size: Optional[int]) -> None:
        """A module was called for training: any object that is the same each time."""
        if size is not None:
            if len(self._calls) > 64:
                self._calls.clear()
            self._calls[id(module)] = max(size, self._calls.get(id(module), 0))

    def backward(self) -> None:
        if self._newest is not None:
            self._newest.used += 1
        if self._calls:
            self._part += max(self._calls.values())
            self._calls.clear()

    def optimized(self) -> None:
        """An optimizer stepped, whether that ends a step or not."""
        if self._part:
            self._last_part, self._part = self._part, 0

    def take(self) -> Optional[int]:
        """The samples since the last step, None when they are not known."""
        total, unknown = 0, False
        since, self._since = self._since, []
        for deliveries in since:
            ahead = 0
            # a loader for validation is rarely the last one before a backward pass
            if 2 * deliveries.used >= deliveries.given:
                # a batch that was taken while the one before it was worked on is of the next step, as accelerate takes them
                ahead = deliveries.last if deliveries.given == deliveries.used + 1 else 0
                total += deliveries.sizes - ahead
                unknown = unknown or deliveries.unknown
            deliveries.sizes, deliveries.batches, deliveries.unknown = ahead, int(ahead > 0), False
            if ahead:
                self._since.append(deliveries)
        by_calls, self._last_part = self._last_part, 0
        self.by_loaders = total > 0 and not unknown
        return total if self.by_loaders else by_calls or None
