"""What levers share: their reports, and the patches of the hooks."""

import signal
import sys
import warnings
from typing import Any, Callable

hooks: Any = sys.modules["_hec_hooks.core"]
Patch = hooks.Patch
Patches = hooks.Patches
optimizers: Any = sys.modules["_hec_hooks.optimizers"]

# From the weakest to the strongest: what is said later counts only if it is as strong.
_STATES = ("nothing", "already", "on", "failed")


class Lever:
    """One that was asked for, in this process."""

    def __init__(self, name: str, value: str = "") -> None:
        self.name, self.value = name, value
        self.state = ""
        self.text = ""

    def on(self, text: str) -> None:
        """It changed something that the program uses; text says what, with the number of things seen so far."""
        self._say("on", text)

    def already(self, text: str) -> None:
        """The program has it without the lever."""
        self._say("already", text)

    def nothing(self, text: str) -> None:
        """Why it can do nothing, as far as was seen: other processes of the program may differ."""
        self._say("nothing", text)

    def failed(self, text: str) -> None:
        self._say("failed", text)

    def broke(self, error: BaseException, revert: "Callable[[], None]") -> None:
        """In the `except` of a lever: it is taken out, and the program goes on without it. What a signal's handler raised meanwhile is the
        program's, and goes on to it."""
        try:
            revert()
        except Exception:
            pass
        if of_a_signal(error):
            raise error
        self.failed(words_of(error))

    def _say(self, state: str, text: str) -> None:
        if self.state and _STATES.index(state) < _STATES.index(self.state):
            return
        if (state, text) == (self.state, self.text):
            return
        self.state, self.text = state, text
        # the state is in the key: one that does nothing here may be on in another process of the program
        key = "lever.%s.%s" % (self.name, state)
        if hooks.dormant:
            hooks.facts[key] = text  # a helper of the program, so far: reported when it proves to be more
        else:
            hooks.library.fact(key, text)


def words_of(error: BaseException) -> str:
    """One line of what it says. What the compiler raises names the backend only, and wraps what went wrong there."""
    error = getattr(error, "inner_exception", None) or error
    return "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:200])


def of_a_signal(error: BaseException) -> bool:
    """Whether a handler of the program raised it."""
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


class shielded:
    """What is done in it is done whole: the signals of this thread wait, for milliseconds."""

    def __init__(self) -> None:
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def __enter__(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        except BaseException:  # of a handler whose signal came before
            self.__exit__()
            raise

    def __exit__(self, *error: Any) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def seldom(count: int) -> bool:
    """Whether a lever says how often it did something: at powers of two, as a fact is no counter."""
    return count & (count - 1) == 0


class quietly(warnings.catch_warnings):
    """Warnings of what a lever does are not the program's. Python warns of a fork with threads, and CUDA has some."""

    def __enter__(self) -> Any:
        found = super().__enter__()
        warnings.simplefilter("ignore")
        return found
