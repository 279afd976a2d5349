"""Read by a Python that has not begun with its program: imports torch once, and becomes that program in a fork for each that
is asked for (warm.py). A fork goes on where Python goes on after any sitecustomize: its program is the main one, its torch
is not imported yet as far as anybody can see, and it meets what waits for that import as ever."""

import array
import ctypes
import gc
import json
import os
import socket
import sys


class Kept:
    """Finds the torch that was imported before, once, and is gone then."""

    def __init__(self):
        self.modules = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "torch"}
        self.spec = self.modules["torch"].__spec__
        for name in self.modules:
            del sys.modules[name]

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        return type(self.spec)("torch", self, origin=self.spec.origin, is_package=True)

    def create_module(self, spec):
        return self.modules["torch"]

    def exec_module(self, module):
        sys.modules.update(self.modules)
        module.__spec__ = self.spec


def serve(server):
    """Returns in a child that is to become a program, with what it was asked for."""
    while True:
        request, fds, _, _ = socket.recv_fds(server, 1 << 20, 3)
        if not request:
            os._exit(0)
        child = os.fork()
        if child == 0:
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
                os.close(fd)
            server.close()
            return json.loads(request)
        for fd in fds:
            os.close(fd)
        server.send(array.array("i", [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]).tobytes())


def begin():
    server = socket.socket(fileno=int(os.environ["HEC_TEST_WARM"]))
    here = os.path.dirname(os.path.abspath(__file__))
    import torch  # noqa: F401

    # Torch stays whole until a fork has ended: to take it apart takes longer than most programs. What comes later than
    # this, of the program or the hooks, ends as ever.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(gc.get_objects()))
    gc.freeze()
    libc = ctypes.CDLL(None)
    libc.on_exit(libc._exit, None)
    asked = serve(server)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv[0] = "program.py"
    sys.path.remove(here)
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.meta_path.insert(0, Kept())
    mine = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401  the next, as if this one were not there
    except ImportError:
        sys.modules["sitecustomize"] = mine


begin()
