"""One run of a program, with or without hec: its folder, its environment, its end."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time

CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")
BACKTRACE_S = 120
ABORT_S = 30


class Player:
    """Runs commands, each in a folder of its own, so that a core file there is its own, too."""

    def __init__(self, hec, scratch, built):
        self.hec, self.scratch, self.built, self.old_pattern = hec, scratch, built, None
        self.backtraces = 6  # each takes up to a minute of device time

    def keep_cores(self):
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        try:
            self.old_pattern = CORE_PATTERN.read_text()
            CORE_PATTERN.write_text("core.%p")
        except OSError:
            self.old_pattern = None

    def restore(self):
        if self.old_pattern:
            CORE_PATTERN.write_text(self.old_pattern)

    def environment(self, folder, gpus):
        # a state folder of its own: what hec remembers of one run must not change the next
        return {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)), "HARMLESS_TIMES": str(folder / "times.json"),
                "HEC_STATE_DIR": str(folder),  # what one run remembers must not change the next
                "XDG_STATE_HOME": str(folder / "state"), "XDG_DATA_HOME": str(folder / "data"), "OMP_NUM_THREADS": "4",
                "TORCHINDUCTOR_CACHE_DIR": str(self.built / "inductor"), "TRITON_CACHE_DIR": str(self.built / "triton"),
                "TORCHINDUCTOR_COMPILE_THREADS": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3",
                "PYTHONDONTWRITEBYTECODE": "1"}

    def play(self, command, limit_s, gpus=(0,), hec=None, cpus=None, more=None):
        """hec: options of `hec run`, or None to run without; more: of the environment. What it was like, and in which folder
        its files are."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch, prefix="run-"))
        words = [str(word) for word in command]
        if hec is not None:
            words = [self.hec, "run", "-q", "-f", "-o", str(folder / "run.hec"), *hec, "--", *words]
        if cpus:
            words = ["taskset", "-c", ",".join(map(str, cpus)), *words]
        start, hung = time.monotonic(), False
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
                                       env={**self.environment(folder, gpus), **(more or {})}, start_new_session=True)
            try:
                process.wait(timeout=max(0, limit_s))
            except subprocess.TimeoutExpired:
                hung = True
                self.abort(process, hec is not None)
        for _, pid in session(process.pid):  # what it left would hold device memory
            send(pid, signal.SIGKILL)
        return {"status": process.returncode, "stdout": (folder / "stdout").read_text(errors="replace"),
                "stderr": (folder / "stderr").read_text(errors="replace"), "hung": hung,
                "seconds": time.monotonic() - start, "folder": folder}

    def abort(self, process, below):
        """The process with most threads (below hec) uses CUDA: its core shows where it hangs. Then all of the session is
        ended."""
        members = session(process.pid)
        members = [member for member in members if member[1] != process.pid or not below] or members
        if members:
            send(max(members)[1], signal.SIGABRT)
        try:
            process.wait(timeout=ABORT_S)
        except subprocess.TimeoutExpired:
            pass
        for _, pid in session(process.pid):
            send(pid, signal.SIGKILL)
        process.wait()

    def backtrace(self, run, command, left_s):
        """Of all threads, from the first core file of the run, where there is time."""
        core = next(iter(sorted(run["folder"].glob("core*"))), None)
        if core is None or self.backtraces <= 0 or left_s < 30 or not shutil.which("cuda-gdb"):
            return None
        self.backtraces -= 1
        try:
            done = subprocess.run(["cuda-gdb", "-batch", "-ex", "thread apply all bt", str(command[0]), str(core)], text=True,
                                  capture_output=True, timeout=min(left_s, BACKTRACE_S), errors="replace")
            return done.stdout[-60000:]
        except subprocess.TimeoutExpired:
            return "cuda-gdb took too long"

    def forget(self, run):
        shutil.rmtree(run["folder"], ignore_errors=True)


def times(run):
    """What the program wrote of itself; {} where it wrote nothing."""
    path = run["folder"] / "times.json"
    return json.loads(path.read_text()) if path.exists() else {}


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def session(leader):
    """(threads, pid) of the processes of a session."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            found.append((int(fields[17]), int(path.parent.name)))
    return found
