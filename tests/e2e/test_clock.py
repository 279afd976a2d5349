"""The virtual clock that the other tests go by (tests/clock): what it promises them, and that no real device ever has it."""
import json
import os
import re
import subprocess
import sys

from conftest import BINARY, CLOCK, ROOT, rows

# Prints whether the clock is the kernel's, and how long it took to compute, to sleep, and to wait for a program; and what all of that
# took of a processor, by the thread's own clock.
PROGRAM = """
import ctypes, json, subprocess, threading, time
kernel = ctypes.CDLL(None).syscall
def real():
    ts = (ctypes.c_long * 2)()
    kernel(228, 1, ts)  # clock_gettime(CLOCK_MONOTONIC)
    return ts[0] * 1000000000 + ts[1]
def lasts(what):
    begin = time.monotonic_ns()
    what()
    return time.monotonic_ns() - begin
first, now, last = real(), time.monotonic_ns(), real()
cpu = time.thread_time_ns()
print(json.dumps({
    "real": first <= now <= last,
    "computes": lasts(lambda: sum(range(3000000))),
    "sleeps": lasts(lambda: time.sleep(SECONDS)),
    "waits": lasts(lambda: subprocess.run(["sleep", "SECONDS"])),
    "joins": lasts(lambda: [t.start() or t.join() for t in [threading.Thread(target=time.sleep, args=(SECONDS,))]]),
    "cpu": time.thread_time_ns() - cpu,
}))
"""


def measured(hec, *options, seconds, **more):
    done = hec.ok("run", "-q", "-o", "x.hec", *options, "--", sys.executable, "-c", PROGRAM.replace("SECONDS", str(seconds)), **more)
    return json.loads(done.stdout)


def test_time_is_what_is_waited_for(hec):
    times = measured(hec, "--sim", "h200", seconds=100)
    assert not times.pop("real") and times.pop("computes") == times.pop("cpu") == 0
    assert set(times.values()) == {100 * 10**9}
    assert round(hec.report("x.hec")["run"]["seconds"], 3) == 300


def test_without_a_simulated_machine_the_clock_is_real(hec):
    times = measured(hec, seconds=0.01)
    assert times["real"] and times["computes"] > 0 and times["cpu"] > 0 and min(times["sleeps"], times["waits"]) >= 10**7
    assert hec.report("x.hec")["run"]["seconds"] >= 0.03


def test_beside_the_driver_of_a_device_the_clock_is_real(hec, tmp_path):
    """Even a simulated machine has none then."""
    driver = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-Wl,-soname," + driver.name, "-o", driver, "-"], input="int nvmlInit_v2(void) { return 9; }",
                   text=True, check=True)
    times = measured(hec, "--sim", "h200", seconds=0.01, env={"LD_PRELOAD": f"{CLOCK} {driver}"})
    assert times["real"] and times["sleeps"] >= 10**7


def test_no_wait_for_a_core_is_seen(hec):
    """It takes no time by this clock: the tracer, which takes it off what a program waited, found on a busy machine that none had."""
    program = "import threading\nfor name in (f'self/task/{threading.get_native_id()}/schedstat', 'stat'): print(open('/proc/' + name).read() == '')"
    for options, seen in (("--sim", "h200"), "True\nTrue\n"), ((), "False\nFalse\n"):
        assert hec.ok("run", "-q", "-f", "-o", "x.hec", *options, "--", sys.executable, "-c", program).stdout == seen


def test_a_process_begins_by_it(hec):
    """The kernel says by the real clock when a process began. On a busy machine that was after all that it did on the GPU, by this clock, so
    the GPU was not charged: others had used it. Here the machine is busy for 2.5 s of CPU time, whatever else it does."""
    computes = f"{sys.executable} -c 'import time\nwhile time.process_time() < 2.5: pass'"
    plays = f"{BINARY} sim healthy-train --seconds 1.2 > healthy.txt"
    hec.ok("run", "-q", "-o", "x.hec", "--sim", "h200", "--", "sh", "-c", f"{computes}; {plays}; sleep 100; {plays}; exit 0")
    device, = hec.report("x.hec")["devices"]
    assert device["used"] and device["shared_with"] == 0
    starts = [start / 1e9 for start, in rows(hec.folder / "x.hec", "SELECT start_ns FROM process WHERE name = 'hec' ORDER BY start_ns")]
    assert len(starts) == 2 and abs(starts[0]) < 0.02 and abs(starts[1] - starts[0] - 101.2) < 0.1


def test_nothing_of_hec_has_it():
    """Only who makes a simulated machine asks for it, and it is not where hec's libraries are."""
    asks = [path for folder in ("src", "sim", "include") for path in (ROOT / folder).rglob("*.[ch]") if "SIM_CLOCK_START" in path.read_text()]
    assert sorted(path.name for path in asks) == ["clock.h", "world.c"]
    libraries = os.path.join(os.path.dirname(os.path.dirname(BINARY)), "lib")
    assert not [name for _, _, names in os.walk(libraries) for name in names if "clock" in name]


def symbols(path, *options):
    """The names of functions of a library that it has, or asks for."""
    listed = subprocess.run(["nm", "-D", *options, path], text=True, capture_output=True, check=True).stdout
    return {line.split()[-1].partition("@")[0] for line in listed.splitlines()}


def test_every_wait_of_hec_is_of_the_clock():
    """A call that ends by a time, and that the clock does not have, waits for the real time: simulated hours pass meanwhile."""
    top = os.path.dirname(os.path.dirname(BINARY))
    files = [os.path.join(place, name) for folder in ("bin", "lib") for place, _, names in os.walk(os.path.join(top, folder)) for name in names]
    asked = set().union(*(symbols(path, "--undefined-only") for path in files if path.endswith("/hec") or ".so" in path))
    waits = {name for name in asked if re.search(r"(poll|wait|sleep|select|timed\w*)(_np|_r|_chk)?$", name)}
    for_ever = {"wait", "wait3", "wait4", "waitid", "sigwait", "pthread_barrier_wait", "sem_wait"}  # it has pthread_cond_wait
    assert {"poll", "ppoll", "clock_nanosleep", "pthread_cond_timedwait"} <= waits
    assert waits - for_ever <= symbols(CLOCK, "--defined-only")


def test_every_figure_is_the_same_at_any_load(hec):
    def play(name, beside):
        with subprocess.Popen(["sh", "-c", beside]) as load:
            done = hec("run", "--sim", "h200", "--trace=full", "-q", "-o", name, "--", BINARY, "sim", "mixed", "--seconds", 3, "--json")
            load.kill()
        report = hec.report(name)
        device, = report["devices"]
        return [json.loads(done.stdout), report["run"]["seconds"], report["kernels"],
                [(finding["cause"], finding["predicted"]) for finding in report["findings"]],
                *(device[key] for key in ("energy", "power_w", "utilisation", "ledger", "modules", "active_to_seconds"))]

    assert play("idle.hec", "exec sleep 100") == play("busy.hec", "while :; do :; done")


# While one thread computes and time stands still, one waits for a pipe and one sleeps: prints how often each was awake; then when signals
# came into waits of both kinds, how long these lasted, and what they left of signals.
WAITERS = """
import ctypes, json, os, select, signal, threading, time
kernel = ctypes.CDLL(None).syscall
def processor():
    ts = (ctypes.c_long * 2)()
    kernel(228, 3, ts)  # clock_gettime(CLOCK_THREAD_CPUTIME_ID)
    return ts[0] + ts[1] / 1e9
def awake(thread):
    with open(f"/proc/self/task/{thread.native_id}/status") as file:
        return sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
on = select.poll()
on.register(os.pipe()[0], select.POLLIN)
waits, sleeps = [threading.Thread(target=what, args=(by,), daemon=True) for what, by in ((on.poll, 10 ** 6), (time.sleep, 1000))]
waits.start(), sleeps.start()
time.sleep(1)
before, until = [awake(waits), awake(sleeps)], processor() + 1
while processor() < until:
    sum(range(1000))
told = {"waits": awake(waits) - before[0], "sleeps": awake(sleeps) - before[1]}
sent, came, lasted = [], [], []
signal.signal(signal.SIGUSR1, lambda *_: came.append(time.monotonic() - sent[-1]))
for wait in [lambda: select.select([], [], [], 3), lambda: time.sleep(3)] * 15:
    sender = threading.Thread(target=lambda: (time.sleep(1), sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGUSR1)))
    sender.start()
    begun = time.monotonic()
    wait()
    lasted.append(time.monotonic() - begun)
    sender.join()
left = signal.pthread_sigmask(signal.SIG_BLOCK, []) | signal.sigpending()
print(json.dumps({**told, "came": came, "lasted": lasted, "left": len(left)}), flush=True)
os._exit(0)
"""


def test_who_waits_for_a_descriptor_sleeps(hec):
    """It would keep time still whenever it looked and had to wait for a processor: minutes on a busy machine."""
    done = json.loads(hec.ok("run", "-q", "-o", "x.hec", "--sim", "h200", "--", sys.executable, "-c", WAITERS).stdout)
    assert done.pop("waits") < done.pop("sleeps")
    # also where the sender runs before who waits has come into the kernel: then no call of its is there to be interrupted
    assert [round(after, 3) for after in done.pop("came")] == [0] * 30
    assert [round(seconds, 3) for seconds in done.pop("lasted")] == [3] * 30 and done == {"left": 0}
