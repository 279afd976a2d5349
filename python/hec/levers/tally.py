"""What a lever did so far, in numbers: reported when it has become twice as much, and at the program's end."""

import atexit
from typing import Any, Callable, Dict

from . import core


class Tally:
    """text: makes the report of the numbers."""

    def __init__(self, lever: Any, text: "Callable[[Dict[str, int]], str]") -> None:
        self.lever, self.text = lever, text
        self.numbers: "Dict[str, int]" = {}
        atexit.register(self.report)

    def add(self, name: str, count: int = 1) -> None:
        before = self.numbers.get(name, 0)
        self.numbers[name] = before + count
        if before.bit_length() != (before + count).bit_length():
            self.report()

    def report(self) -> None:
        if any(self.numbers.values()):
            self.lever.on(self.text(self.numbers))

    def close(self) -> None:
        atexit.unregister(self.report)


def after_steps(count: int, do: "Callable[[], None]") -> None:
    """Called once, when the hooks have found so many steps: for what shows only in a program that is under way."""
    library = core.hooks.library
    inner = library.step
    left = [count]

    def step(*args: Any) -> int:
        left[0] -= 1
        if left[0] <= 0 and library.step is step:
            library.step = inner
            try:
                do()
            except Exception:
                pass
        return int(inner(*args))

    library.step = step
