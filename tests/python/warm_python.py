"""A Python that has imported torch, and runs programs in forks of itself: the import takes longer than most programs of the tests.
warm/sitecustomize.py is its other side, and says what a program sees of it: nothing."""

import array
import atexit
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

HANGS_S = 600  # what takes longer hangs: at no load does a test wait so long for what comes
PROGRAM = "/proc/self/cwd/program.py"  # Python makes of what is relative a path below where it began
WARM = pathlib.Path(__file__).parent / "warm"


class WarmPython:
    """For programs that lie in program.py, with the same Python and the same options."""

    running = {}  # by these

    @classmethod
    def of(cls, python, options, environment):
        key = (python, *options)
        if key not in cls.running:
            cls.running[key] = cls(python, options, environment)
        return cls.running[key]

    def __init__(self, python, options, environment):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            environment = {**environment, "PYTHONPATH": str(WARM), "HEC_TEST_WARM": str(theirs.fileno())}
            self.process = subprocess.Popen([python, *options, PROGRAM], env=environment, stdin=subprocess.DEVNULL,
                                            pass_fds=[theirs.fileno()], start_new_session=True)  # fmt: skip
        atexit.register(self.end)

    def end(self):
        self.socket.close()
        self.process.wait()

    def run(self, folder, environment, timeout=HANGS_S):
        """As subprocess.run: the finished process."""
        reads, writes = zip(os.pipe(), os.pipe())
        asked = json.dumps({"folder": str(folder), "environment": environment}).encode()
        with open(os.devnull) as nothing:
            socket.send_fds(self.socket, [asked], [nothing.fileno(), *writes])
        for fd in writes:
            os.close(fd)
        late = threading.Timer(timeout, os.killpg, (self.process.pid, signal.SIGKILL))
        late.start()
        with ThreadPoolExecutor(2) as readers:
            texts = list(readers.map(read, reads))
        code = array.array("i", self.socket.recv(4))
        late.cancel()
        assert code, f"the program did not end in {timeout} s, or its Python did not begin"
        return subprocess.CompletedProcess("program.py", code[0], *texts)


def read(fd):
    with open(fd) as file:
        return file.read()
