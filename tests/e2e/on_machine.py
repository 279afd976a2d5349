"""Tests that run on a simulated machine themselves: the test, the agents that it starts and the programs that it plays go by one virtual
clock (tests/clock). Time stands still while any of them computes, so a page is of an instant, a sleep of the test is so long for all of
them, and no figure depends on how busy this machine is."""
import functools
import inspect
import os
import subprocess
import sys
import tempfile

from conftest import BINARY, CLOCK

INSIDE = "HEC_TEST_ON_MACHINE"


def on_machine(spec):
    """Such a test, on a machine of its own. What it starts needs no --sim. Outermost of its decorators but for pytest's marks."""
    def choose(test):
        if os.environ.get(INSIDE):
            return test

        @functools.wraps(test)
        def outside(request, **_):
            with tempfile.TemporaryDirectory() as folder:  # short: a socket's path has 107 bytes
                command = [BINARY, "run", "-q", "-o", f"{folder}/machine.hec", "--trace", "off", "--hooks", "off", "--sim", spec, "--",
                           sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", f"{folder}/in",
                           f"{request.path}::{request.node.name}"]
                done = subprocess.run(command, text=True, capture_output=True, env={**os.environ, INSIDE: "1", "LD_PRELOAD": CLOCK})
            assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr

        wanted = {"request", *inspect.signature(test).parameters}
        outside.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(wanted)])
        return outside
    return choose


def play(hec, case, seconds, *arguments):
    """A program of the machine that the test runs on."""
    return hec.popen("sim", case, "--seconds", str(seconds), *map(str, arguments), stdout=subprocess.DEVNULL)
