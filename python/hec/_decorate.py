"""The decorator form of :class:`hec.phase`; imported only when it is used and HEC is running."""

import functools
import inspect
from typing import Any, Callable


def decorate(phase: Any, function: Callable[..., Any]) -> Any:
    """``function``, with every call inside ``phase``."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def marked_coroutine(*args: Any, **kwargs: Any) -> Any:
            with phase:
                return await function(*args, **kwargs)

        return marked_coroutine

    @functools.wraps(function)
    def marked(*args: Any, **kwargs: Any) -> Any:
        with phase:
            return function(*args, **kwargs)

    return marked
