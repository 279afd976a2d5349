"""Processes that wait for orders, so that several arms of one comparison are ready at the same time and take turns on one device."""
import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

TURN_MOST_S = 60


class Arm:
    """An order is a line; the answer is a line of JSON. Closing its input ends it (planted/serve.py)."""

    def __init__(self, process, log):
        self.process, self.log = process, log

    @classmethod
    def started(cls, command, environment, log, **options):
        with open(log, "w") as errors:
            return cls(subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=errors, text=True, bufsize=1, **options), log)

    @classmethod
    def forked(cls, function, log):
        """A fork of this process, which must not have used a device: function(orders, answers) is called in it."""
        return cls(Forked(function, log), log)

    def hear(self, within):
        """The next line of JSON."""
        end = time.monotonic() + within
        while True:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"nothing within {within:.0f} s: {self.last_words()}")
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"it ended: {self.last_words()}")
            if line.startswith("{"):
                return json.loads(line)

    def last_words(self):
        return pathlib.Path(self.log).read_text(errors="replace")[-400:]

    def order(self, order):
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def turn(self, order, within=TURN_MOST_S):
        self.order(order)
        return self.hear(within)

    def end(self, within=30):
        """Of a recording too: HEC writes its file when the program ends."""
        try:
            self.process.stdin.close()
            self.process.wait(within)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Together:
    """The ranks of a job as one arm: each gets the order, and the answer is the first one's, from the last begin to the last end."""

    def __init__(self, ranks):
        self.ranks = ranks

    def hear(self, within):
        answers = [rank.hear(within) for rank in self.ranks]
        return {**answers[0], **{time: max(answer[time] for answer in answers) for time in ("begin", "enqueued", "end") if time in answers[0]}}

    def turn(self, order, within=TURN_MOST_S):
        for rank in self.ranks:
            rank.order(order)
        return self.hear(within)

    def end(self, within=30):
        for rank in self.ranks:  # none goes on alone
            with contextlib.suppress(OSError):
                rank.process.stdin.close()
        for rank in self.ranks:
            rank.end(within)


class Forked:
    """What Arm needs of subprocess.Popen, of a forked process."""
    held = []  # ends of this process: a fork must not keep those of its siblings open

    def __init__(self, function, log):
        orders, self.stdin = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), "rw"))
        self.stdout, answers = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), "rw"))
        self.held += [self.stdin, self.stdout]
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()  # its workers end with it
                for end in self.held:
                    end.close()
                with open(log, "w") as errors:
                    os.dup2(errors.fileno(), 1)
                    os.dup2(errors.fileno(), 2)
                with open(os.devnull) as nothing:
                    os.dup2(nothing.fileno(), 0)
                function(orders, answers)
                status = 0
            except BaseException as failure:  # pylint: disable=broad-except
                print(repr(failure)[-600:], file=sys.stderr)
            finally:
                sys.stderr.flush()
                os._exit(status)
        orders.close()
        answers.close()

    def wait(self, within=None):
        end = time.monotonic() + (within or 1e9)
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("arm", within)
            time.sleep(0.01)
        self.stdout.close()
        self.kill()  # what it started

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
