"""The tracer on the simulated GPU: the real libhectrace.so in programs that use the doubles of libcuda and libcupti.

The programs know what they launched (tests/e2e/cuda_program.c, sim/cuda/hook.h) and print it; the report must say the
same, to the nanosecond where every record is kept."""
import collections
import concurrent.futures
import csv
import functools
import io
import json

import pytest

from conftest import PROGRAMS, rows

CUDA = PROGRAMS / "cuda_program"
CLIENT = PROGRAMS / "cupti_client"  # linked with libcupti
LATE = PROGRAMS / "cupti_client_late"  # loads it
VERSIONS = {"11.8": 18, "12": 26, "13": 130001}
MIXED = ("kernels=2000", "ns=20000", "streams=3", "batch=100", "h2d=1000000", "pageable=50000", "d2h=70000",
         "memset=1000")
ROUNDING_US = 0.1  # of a sum of times that went through CUPTI's clock, a nanosecond each


def parse(text):
    """The JSON objects of the output: one a process, on one line or on many."""
    found, decoder = [], json.JSONDecoder()
    while "{" in text:
        value, end = decoder.raw_decode(text, text.index("{"))
        found.append(value)
        text = text[end:]
    return found


class Traced:
    """One `hec run --sim SPEC --trace=MODE -- COMMAND`, what the command printed and the report."""

    def __init__(self, hec, *command, spec="h200", mode="full", options=(), status=0, name="trace", env=None):
        self.hec, self.path = hec, hec.folder / f"{name}.hec"
        done = hec("run", "--sim", spec, f"--trace={mode}", "-q", "-f", "-o", self.path, *options, "--", *command, env=env)
        assert done.returncode == status, (done.returncode, done.stderr)
        assert done.stderr == "", done.stderr
        self.output = done.stdout
        self.truths = parse(done.stdout)
        self.report = hec.report(self.path)
        self.trace = self.report["trace"]
        self.devices = [d["timeline"] for d in self.report["devices"]]
        self.timeline = self.devices[0]

    @functools.cached_property
    def text(self):
        return " ".join(self.hec.ok("report", "-v", self.path).stdout.split())

    @property
    def truth(self):
        assert len(self.truths) == 1, self.truths
        return self.truths[0]

    def copied(self, direction, memory):
        return sum(row["bytes"] for row in self.timeline["copied"]
                   if (row["direction"], row["host_memory"]) == (direction, memory))

    @property
    def kernels(self):
        counts = collections.Counter()
        for row in self.report["kernels"]:
            counts[row["name"]] += row["count"]
        return counts

    def is_whole(self):
        assert (self.trace["dropped"], self.trace["lost"], self.trace["bad"]) == (0, 0, 0), self.trace


def assert_true(traced):
    """Everything that the program did is in the report, and nothing else."""
    truth, timeline = traced.truth, traced.timeline
    traced.is_whole()
    for key in ("kernels", "copies", "memsets"):
        assert timeline[key] == truth[key], key
    assert timeline["memset_bytes"] == truth["memset_bytes"]
    assert traced.copied("host_to_device", "pinned") == truth["h2d_pinned"]
    assert traced.copied("host_to_device", "pageable") == truth["h2d_pageable"]
    assert traced.copied("device_to_host", "pinned") == truth["d2h_pinned"]
    for key in ("window_us", "busy_us", "compute_us", "copy_us", "kernel_sum_us"):
        assert timeline[key] == pytest.approx(truth[key], abs=ROUNDING_US, rel=1e-6), key
    assert timeline["idle_us"] == pytest.approx(truth["window_us"] - truth["busy_us"], abs=2 * ROUNDING_US, rel=1e-6)


# ---- what a program did ----

@pytest.mark.parametrize("version", VERSIONS)
def test_a_program(hec, version):
    """Kernels on three streams that overlap, copies of each sort, memsets: with each version of CUPTI."""
    traced = Traced(hec, CUDA, *MIXED, spec=f"h200,cupti={version}")
    assert_true(traced)
    assert traced.trace["cupti_version"] == VERSIONS[version]
    assert f"cupti-{version}" in traced.trace["library"]
    assert traced.truth["busy_us"] < traced.truth["kernel_sum_us"], "the streams did not overlap: nothing was tested"
    assert traced.kernels == {"square": 1500, "add": 500}
    square = next(row for row in traced.report["kernels"] if row["name"] == "square")
    assert square["grid"] == [32, 2, 1] and square["block"] == [128, 1, 1]
    assert square["registers"] == 40 and square["static_shared_bytes"] == 2048
    assert square["mean_us"] == pytest.approx(20, rel=1e-3)
    assert traced.timeline["launch_delay_us"]["count"] == 2000 + 60 + 20, "each is joined with its launch"
    assert traced.timeline["launch_delay_us"]["min"] > 0


def test_steps_are_found(hec):
    """A program without hooks: its batches are found in the sequence of kernels."""
    steps = Traced(hec, CUDA, "kernels=4000", "batch=100", "h2d=100000", "sleep_us=300").report["steps"]
    assert steps["source"] == "periodic" and 0 < steps["confidence"] <= 1
    assert 38 <= steps["count"] <= 40


@pytest.mark.parametrize("case", ["mixed", "data-starved", "copy-pageable", "small-kernels", "comm-exposed", "checkpoint"])
def test_a_played_case(hec, case):
    """The player's truth, of power and of the timeline, in one run."""
    traced = Traced(hec, hec.path, "sim", case, "--seconds", 2, "--json", name=case)
    truth, timeline = traced.truth, traced.timeline
    traced.is_whole()
    assert timeline["kernels"] == truth["timeline"]["kernels"]
    assert timeline["copies"] == truth["timeline"]["copies"]
    assert traced.copied("host_to_device", "pinned") == truth["timeline"]["bytes"]["pinned"]
    assert traced.copied("host_to_device", "pageable") == truth["timeline"]["bytes"]["pageable"]
    for key in ("window", "busy", "compute", "copy"):
        if key == "compute" and case == "comm-exposed":
            continue  # there the truth counts communication among the kernels
        expected = truth["timeline"][f"{key}_seconds"] * 1e6
        assert timeline[f"{key}_us"] == pytest.approx(expected, rel=1e-4, abs=ROUNDING_US), key
    states = truth["states"]
    assert timeline["comm_us"] == pytest.approx(states.get("comm", {"seconds": 0})["seconds"] * 1e6, rel=1e-4)
    if case == "comm-exposed":
        assert timeline["compute_us"] == pytest.approx(states["compute"]["seconds"] * 1e6, rel=1e-4)
        assert timeline["comm_overlap"] == 0
    # the states are a partition of the play, in seconds and in joules
    assert sum(s["seconds"] for s in states.values()) == pytest.approx(truth["seconds"], abs=1e-6)
    assert sum(s["joules"] for s in states.values()) == pytest.approx(truth["joules"], abs=1e-3)


# ---- graphs ----

def test_graphs_by_node(hec):
    traced = Traced(hec, CUDA, "kernels=100", "graph=50", "batch=10")
    assert traced.truth["graphs"] == 100 and traced.truth["kernels"] == 5000
    assert_true(traced)
    assert traced.timeline["graphs"] == 0, "as nodes or as a whole, not both"


def test_graphs_as_a_whole(hec):
    traced = Traced(hec, CUDA, "kernels=100", "graph=50", "batch=10", mode="graph")
    traced.is_whole()
    assert traced.timeline["graphs"] == 100 and traced.timeline["kernels"] == 0
    # from the start of its first node to the end of its last: 49 pauses of 500 ns more than the nodes
    assert traced.timeline["busy_us"] == pytest.approx(traced.truth["busy_us"] + 100 * 49 * 0.5, abs=ROUNDING_US)


# ---- faults ----

@pytest.mark.parametrize("fault", ["start", "order", "kind", "device"])
def test_records_that_make_no_sense(hec, fault):
    """One kernel in ten is told wrongly: it is counted and not shown, and the others are as exact as ever."""
    traced = Traced(hec, CUDA, "kernels=2000", "ns=5000", "batch=100", spec=f"h200,badrecord={fault}:10")
    assert traced.trace["bad"] == 200 and traced.trace["dropped"] == 0 and traced.trace["lost"] == 0
    assert traced.timeline["kernels"] == 1800 and len(traced.report["devices"]) == 1
    assert traced.timeline["kernel_sum_us"] == pytest.approx(1800 * 5, abs=2)


def test_a_kernel_without_a_name(hec):
    """Its time is real: it is kept, under no name."""
    traced = Traced(hec, CUDA, "kernels=1000", "batch=100", spec="h200,badrecord=name:10")
    assert traced.timeline["kernels"] + traced.trace["bad"] == 1000
    assert sum(count for name, count in traced.kernels.items() if name not in ("square", "add")) in (0, 100)


def test_buffers_that_end_in_the_middle_of_a_record(hec):
    traced = Traced(hec, CUDA, "kernels=20000", "ns=2000", "batch=100", spec="h200,badrecord=truncated:1")
    missing = traced.truth["kernels"] - traced.timeline["kernels"]
    assert 0 < missing <= traced.trace["dropped"] and traced.trace["bad"] == 0


def test_no_room_for_records(hec):
    """CUPTI has no room for one record of the device in seven: it says so, and HEC passes it on."""
    traced = Traced(hec, CUDA, "kernels=2000", "batch=100", spec="h200,nobuffer=7")
    assert traced.trace["dropped"] == 2000 // 7
    assert traced.timeline["kernels"] == 2000 - 2000 // 7
    assert traced.trace["bad"] == 0 and traced.trace["lost"] == 0


def test_exhausted_buffers(hec):
    """1.6 million records a second (graphs by node), and CUPTI keeps filled buffers for so long that the tracer, which
    holds no more than 64 MB, has none left."""
    traced = Traced(hec, CUDA, "kernels=4000", "graph=200", "ns=100", "batch=100", spec="h200,slowflush=400")
    missing = traced.truth["kernels"] - traced.timeline["kernels"]
    assert 0 < missing <= traced.trace["dropped"] + traced.trace["lost"], traced.trace
    assert traced.timeline["kernels"] > 50000 and traced.trace["bad"] == 0


def test_a_flood_is_counted(hec):
    """The same flood with a CUPTI that hands back at once: what does not arrive is counted, wherever it was lost."""
    traced = Traced(hec, CUDA, "kernels=4000", "graph=200", "ns=100", "batch=100")
    missing = traced.truth["kernels"] - traced.timeline["kernels"]
    assert 0 <= missing <= traced.trace["dropped"] + traced.trace["lost"], traced.trace
    assert traced.trace["bad"] == 0
    assert traced.timeline["kernel_sum_us"] == pytest.approx(0.1 * traced.timeline["kernels"], rel=0.01)


def test_a_clock_of_its_own(hec):
    """CUPTI's clock is 5 s ahead of the wall clock and 200 ppm too fast."""
    traced = Traced(hec, CUDA, "kernels=20000", "ns=20000", "batch=1000", "sleep_us=20000",
                    spec="h200,cuptiskew=200:5000")
    traced.is_whole()
    assert traced.timeline["kernels"] == 20000
    assert traced.timeline["busy_us"] == pytest.approx(traced.truth["busy_us"], rel=3e-4)
    assert traced.timeline["window_us"] == pytest.approx(traced.truth["window_us"], rel=3e-4)
    assert 0 <= traced.timeline["from_seconds"] < traced.timeline["to_seconds"] <= traced.report["run"]["seconds"]


# ---- processes ----

def test_two_processes(hec):
    """Two at a time, on two devices: each is counted where it ran."""
    script = f"{CUDA} kernels=500 batch=50 & CUDA_VISIBLE_DEVICES=1 {CUDA} kernels=700 batch=50 & wait"
    traced = Traced(hec, "sh", "-c", script, spec="h200x2")
    traced.is_whole()
    assert traced.trace["processes"] == 2 and len({t["pid"] for t in traced.truths}) == 2
    by_kernels = {t["kernels"]: t for t in traced.truths}
    for timeline, kernels in zip(traced.devices, (500, 700)):
        assert timeline["kernels"] == kernels
        assert timeline["busy_us"] == pytest.approx(by_kernels[kernels]["busy_us"], abs=ROUNDING_US)


def test_two_processes_on_one_device(hec):
    traced = Traced(hec, "sh", "-c", f"{CUDA} kernels=500 & {CUDA} kernels=700 & wait")
    traced.is_whole()
    assert traced.timeline["kernels"] == 1200
    assert traced.timeline["kernel_sum_us"] == pytest.approx(1200 * 5, abs=1)


@pytest.mark.parametrize("way", ["fork=1", "fork=2", "exec=1"])
def test_fork_and_exec(hec, way):
    """The child works; the parent works and its child does not; the program replaces itself."""
    assert_true(Traced(hec, CUDA, *MIXED, way))


def test_a_killed_program(hec):
    """What was handed over before a kill -9 is kept, and the report says nothing that was not."""
    script = f"{{ {CUDA} seconds=30 batch=1000 ns=20000 & sleep 2; kill -9 $!; wait $!; }} 2>/dev/null; true"
    traced = Traced(hec, "sh", "-c", script)
    assert traced.truths == [] and traced.trace["processes"] == 1
    assert traced.timeline["kernels"] > 1000 and traced.trace["bad"] == 0
    # kernels after the last window that was told do not count as busy time
    assert 0 < traced.timeline["busy_us"] <= traced.timeline["kernels"] * 20 * (1 + 1e-6)
    assert traced.timeline["kernel_sum_us"] == pytest.approx(traced.timeline["kernels"] * 20, rel=1e-6)


# ---- calls ----

def row(path, query):
    return rows(path, query)[0]


def launched(hec, path):
    """Launches that the file has, each once: in bursts, as calls, and with the kernels and memsets that they led to."""
    table = csv.DictReader(io.StringIO(hec("export", "--csv", "-o", "-", path).stdout, newline=""))
    single = sum((r["kind"] == "api" and r["detail"] in ("launch", "graph", "memset")) or
                 (r["kind"] in ("kernel", "memset", "graph") and r["launch_start_ns"] != "") for r in table)
    return single + int(row(path, "select total(amount) from activity_block where kind = 'burst'")[0])


def waits(path):
    return row(path, "select total(n) from activity_block where kind = 'sync'")[0]


def test_launches_that_were_drawn_have_names(hec):
    """Of what is launched without CUPTI's seeing it: names of kernels, as the program asked the driver for them."""
    traced = Traced(hec, "sh", "-c", f"HEC_TRACE_NO_CUPTI='a test said so' exec {CUDA} seconds=3 batch=100", mode="auto")
    table = csv.DictReader(io.StringIO(hec("export", "--csv", "-o", "-", traced.path).stdout, newline=""))
    drawn = collections.Counter(r["detail"] for r in table if r["kind"] == "burst")
    named = set(drawn) - {""}
    assert named and named <= {"_Z6squarePfl", "_Z3addPfS_l"}, drawn


# a command of the shell is in the way: `hec run` has its own word on HEC_TRACE_NO_CUPTI
BECAUSE = "CUPTI stays out: a test said so"
WAYS = {"auto": ("auto", "h200", ""), "full": ("full", "h200", ""), "graph": ("graph", "h200", ""),
        "without CUPTI": ("full", "h200", f"HEC_TRACE_NO_CUPTI='{BECAUSE}' "), "no libcupti": ("auto", "h200,cupti=none", ""),
        "an old driver": ("full", "h200,driver=450", ""), "another tool": ("full", "h200,holder=nsys", "")}


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_seen_in_every_mode(hec, way):
    """Bursts, calls and waits are in the file whatever becomes of CUPTI."""
    mode, spec, before = WAYS[way]
    traced = Traced(hec, "sh", "-c", f"{before}exec {CUDA} kernels=1000 batch=10 h2d=4096 d2h=4096 memset=64", mode=mode, spec=spec)
    traced.is_whole()
    truth = traced.truth
    assert launched(hec, traced.path) == truth["kernels"] + truth["memsets"] == 1100
    assert waits(traced.path) == 100
    table = list(csv.DictReader(io.StringIO(hec("export", "--csv", "-o", "-", traced.path).stdout, newline="")))
    made = collections.Counter(r["name"] for r in table if r["kind"] == "api" and r["detail"] == "copy")
    assert made == {"cuMemcpyHtoDAsync_v2": 100, "cuMemcpyDtoHAsync_v2": 100}
    assert {r["name"] for r in table if r["kind"] == "api"} <= {
        "cuModuleLoadData", "cuMemAlloc_v2", "cuMemAllocHost_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel",
        "cuMemsetD8Async", "cuCtxSynchronize"}
    if way == "without CUPTI":
        assert traced.trace["why"] == BECAUSE and BECAUSE in traced.text
    if way not in ("full", "graph"):
        assert traced.timeline is None and traced.trace["why"]


@pytest.mark.parametrize("by", range(5))
def test_calls_by_any_way(hec, by):
    """Linked, looked up by dlsym, by cuGetProcAddress, by what dlsym gave for that, and by a module's table that is older than the tracer."""
    traced = Traced(hec, CUDA, "kernels=500", f"by={by}", mode="auto")
    assert launched(hec, traced.path) == 500


# ---- others who use CUPTI ----

def client(hec, name, *options, mode="full", program=CLIENT):
    traced = Traced(hec, program, *options, mode=mode, name=name)
    assert traced.truth["unknown"] == 0, "a buffer that it did not give"
    assert traced.truth["errors"] == 0
    assert traced.trace["bad"] == 0
    return traced


@pytest.mark.parametrize("program", [CLIENT, LATE], ids=["linked", "late"])
@pytest.mark.parametrize("mode", ["full", "auto"])
def test_a_profiler_in_the_program(hec, mode, program):
    """It gets the same kernels as without HEC, in every one of its profiles. HEC, where it has CUPTI, stands down for good
    and says for whom; one that is linked with libcupti is not even joined."""
    options = ("rounds=4", "kernels=500", "idle_ms=20")
    plain = client(hec, "plain", *options, mode="off", program=program)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda i: client(hec, f"client{mode}{i}", *options, mode=mode, program=program), range(12)))
    for traced in runs:
        assert traced.truth["profiled"] == plain.truth["profiled"] == [500] * 4
        assert launched(hec, traced.path) == traced.truth["launched"] == 4500
        assert traced.trace["windows"] <= 1
        if mode == "auto":  # too short a program: CUPTI is all theirs
            assert traced.trace["holder"] is None and traced.timeline is None
        elif program == CLIENT:
            assert traced.trace["holder"] in ("the program itself", "cupti_client") and traced.timeline is None
        else:
            assert traced.trace["holder"] == "cupti_client_late" and traced.trace["holder"] in traced.text
            assert traced.timeline["kernels"] == 500, "those before the first profile"


def test_after_a_profiler(hec):
    """HEC does not come back, however long the program's own profiler has been quiet."""
    traced = client(hec, "after", "rounds=2", "kernels=500", "idle_ms=1500", program=LATE)
    assert traced.truth["profiled"] == [500, 500]
    assert traced.timeline["kernels"] == 500 and traced.trace["windows"] == 1
    assert 0 < traced.trace["holder_seconds"] < traced.report["run"]["seconds"]
    told = [text for text, in rows(traced.path, "select text from event where kind = 'trace_holder' order by t_ns")]
    assert told[0].endswith(": cupti_client_late has CUPTI; HEC stands down")
    assert any(text.endswith(": cupti_client_late has left CUPTI; HEC does not come back") for text in told)


def test_a_profiler_after_the_look(hec):
    """Mode auto had its window, and a profiler comes when it is over: it is alone."""
    options = ("rounds=2", "kernels=500", "ns=100000", "before_ms=5000")
    traced = client(hec, "look", *options, mode="auto", program=LATE)
    assert traced.truth["profiled"] == [500, 500]
    assert traced.trace["windows"] == 1 and traced.trace["holder"] == "cupti_client_late"
    assert 0 < traced.timeline["kernels"] < traced.truth["launched"] - 2 * 500
    assert launched(hec, traced.path) == traced.truth["launched"]


@pytest.mark.parametrize("spec", ["h200,holder=nsys", "h200,holder=nsys:1"])
def test_a_holder_from_outside(hec, spec):
    """Run under another tool: no trace of the device, the program is not disturbed, the report says who, also where the tool
    leaves early: there is one try."""
    traced = Traced(hec, CUDA, "seconds=3", "batch=100", "sleep_us=5000", spec=spec)
    assert traced.timeline is None and traced.trace["windows"] == 0
    assert traced.trace["holder"] == "another user of CUPTI" and traced.trace["holder"] in traced.text
    assert "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" in traced.trace["why"]
    assert 0 < traced.trace["holder_seconds"] < traced.report["run"]["seconds"]
    assert launched(hec, traced.path) == traced.truth["kernels"]


# ---- modes ----

def test_auto_has_one_look(hec):
    """The host waits for the device: what CUPTI costs is hidden, and 2 s after the first launch the device is traced, once."""
    traced = Traced(hec, CUDA, "seconds=6", "batch=10", "ns=100000", mode="auto")
    traced.is_whole()
    trace = traced.trace
    assert trace["why"] is None and trace["windows"] == 1
    assert 0 < trace["coverage"] < 1 - 1.9 / traced.report["run"]["seconds"]
    assert 0 < traced.timeline["kernels"] < traced.truth["kernels"]
    # what was traced is exact: 100 us a kernel
    assert traced.timeline["kernel_sum_us"] == pytest.approx(100 * traced.timeline["kernels"], rel=1e-4)
    # it ends after 2 s at the earliest; it counts from the first kernel on that was launched in it
    start, end = row(traced.path, "select min(t0_ns), max(t1_ns) from activity_block where kind = 'window'")
    assert (end - start) * 1e-9 > 1.9
    # before, in it and after
    assert launched(hec, traced.path) == traced.truth["kernels"]
    assert waits(traced.path) == traced.truth["kernels"] / 10


@pytest.mark.parametrize("program", ["launch-bound", "starved", "short"])
def test_auto_stays_away(hec, program):
    """The host does not wait for the device: CUPTI is not loaded, and the report says why."""
    options = {"launch-bound": ("seconds=3", "batch=20000", "ns=10"), "starved": ("seconds=4", "batch=1", "ns=1000", "sleep_us=20000"),
               "short": ("seconds=1", "batch=10", "ns=50000")}[program]
    traced = Traced(hec, CUDA, *options, mode="auto")
    traced.is_whole()
    assert traced.timeline is None and traced.trace["windows"] == 0 and traced.trace["coverage"] == 0
    assert traced.trace["cupti_version"] is None and traced.trace["library"] is None
    assert traced.trace["why"].startswith("CUPTI stayed out: the program waited for the device too little")
    assert traced.trace["why"] in traced.text
    assert launched(hec, traced.path) == traced.truth["kernels"]


def test_auto_stays_out_of_small_graphs(hec):
    """Each launch of a graph is slower for good once CUPTI has been in the program (bench/results/2026-11-26-h100-graphs)."""
    traced = Traced(hec, CUDA, "seconds=3", "graph=50", "ns=2000", "batch=10", mode="auto")
    traced.is_whole()
    assert traced.timeline is None and traced.trace["windows"] == 0 and traced.trace["library"] is None
    assert traced.trace["why"].startswith("CUPTI stayed out: once it has been in a program, each launch of a CUDA graph")
    assert traced.trace["why"] in traced.text


def test_auto_looks_at_large_graphs(hec):
    traced = Traced(hec, CUDA, "seconds=4.5", "graph=4", "ns=500000", "batch=10", mode="auto")
    assert traced.trace["windows"] == 1 and traced.timeline["kernels"] > 100


@pytest.mark.parametrize("case, looks", [("mixed", True), ("healthy-train", True), ("small-kernels", False), ("data-starved", False)])
def test_auto_on_a_played_case(hec, case, looks):
    """The player tells its calls: a launch waits for room in the queue where it runs ahead of the device."""
    traced = Traced(hec, hec.path, "sim", case, "--seconds", 6, "--json", mode="auto", name=case)
    traced.is_whole()
    assert traced.trace["windows"] == looks and (traced.timeline is not None) == looks
    kernels = traced.truth["timeline"]["kernels"]
    assert launched(hec, traced.path) == kernels
    if looks:
        assert 0 < traced.timeline["kernels"] < kernels


def test_full_has_one_window(hec):
    """From the program's first call to its end."""
    traced = Traced(hec, CUDA, "seconds=2", "batch=100", "ns=50000", mode="full")
    assert traced.trace["windows"] == 1 and traced.timeline["kernels"] == traced.truth["kernels"]
    start, end = row(traced.path, "select min(t0_ns), max(t1_ns) from activity_block where kind = 'window'")
    first, last = row(traced.path, "select min(t0_ns), max(t1_ns) from activity_block where kind = 'kernel'")
    assert start <= first and last <= end


@pytest.mark.parametrize("mode", ["full", "graph"])
def test_memory_ends_the_device_trace(hec, mode):
    """CUPTI keeps 32 bytes a launch: where HEC may take 33 MB, 1 MB of them is for launches. Calls go on."""
    traced = Traced(hec, CUDA, "kernels=60000", "batch=100", "ns=2000", "sleep_us=1000", mode=mode, options=("--trace-memory", "33"))
    traced.is_whole()
    assert traced.trace["why"].startswith("CUPTI keeps 32 bytes of the program's memory a launch")
    assert "until HEC took 33 MB" in traced.trace["why"] and "took 33 MB" in traced.text
    assert (1 << 20) / 32 <= traced.timeline["kernels"] < traced.truth["kernels"]
    assert traced.trace["windows"] == 1 and traced.trace["coverage"] < 1
    assert launched(hec, traced.path) == traced.truth["kernels"]


def test_off_loads_nothing(hec):
    script = ('test -z "$CUDA_INJECTION64_PATH$HEC_TRACE_SOCKET$HEC_TRACE_MODE" && '
              f"LD_DEBUG=files {CUDA} kernels=10 2>&1 | grep -c -e libhectrace -e libcupti")
    traced = Traced(hec, "sh", "-c", script + "; true", mode="off")
    assert traced.output == "0\n"
    assert traced.trace["mode"] == "off" and traced.trace["records"] == 0 and traced.timeline is None


@pytest.mark.parametrize("spec, word", [("h200,cupti=none", "no libcupti"), ("h200,driver=450", "no libcupti")])
def test_no_cupti(hec, spec, word):
    """The program runs, and the report says why there is no trace."""
    traced = Traced(hec, CUDA, "kernels=100", spec=spec)
    assert traced.truth["kernels"] == 100 == launched(hec, traced.path)
    assert traced.timeline is None and word in traced.trace["why"] and word in traced.text
