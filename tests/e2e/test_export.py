"""What `hec export` writes, read back: the Perfetto trace by a reader of protocol buffers of its own, and by Perfetto's
generated classes where the package perfetto (PyPI) is installed; the CSV by Python's reader."""
import collections
import csv
import io
import json
import struct

import pytest

TYPES = {1: "begin", 2: "end", 3: "instant", 4: "counter"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field: int for varints and fixed, bytes for what has a length."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            assert at + length <= len(data), "a message is longer than what it is in"
            value, at = data[at:at + length], at + length
        else:
            raise AssertionError(f"wire type {kind}")
        yield tag >> 3, value


def one(data, number, default=None):
    return next((value for field, value in fields(data) if field == number), default)


def slices_of(trace):
    """(track name, slice name, start, end, depth) as a reader of Perfetto's makes them, and what the counters say."""
    names, tracks, events, slices = {}, {}, collections.defaultdict(list), []
    counters = collections.defaultdict(list)
    for order, (number, packet) in enumerate(fields(trace)):
        assert number == 1
        t = one(packet, 8, 0)
        for interned in (value for field, value in fields(packet) if field == 12):
            for entry in (value for field, value in fields(interned) if field == 2):
                names[one(entry, 1)] = one(entry, 2).decode()
        described = one(packet, 60)
        if described is not None:
            thread, process = one(described, 4, b""), one(described, 3, b"")
            name = one(described, 2) or one(thread, 5) or one(process, 6) or b""
            assert one(described, 1) not in tracks
            tracks[one(described, 1)] = name.decode()
        event = one(packet, 11)
        if event is None:
            continue
        track, kind = one(event, 11), TYPES[one(event, 9)]
        assert track in tracks, "described before its use"
        if kind == "counter":
            counters[tracks[track]].append((t, struct.unpack("<d", struct.pack("<Q", one(event, 44)))[0]))
        else:
            events[track].append((t, order, kind, names.get(one(event, 10))))
    for track, row in events.items():
        stack = []
        for t, _, kind, name in sorted(row, key=lambda event: event[:2]):
            if kind == "begin":
                stack.append((name, t))
            else:
                name, start = stack.pop()
                slices.append((tracks[track], name, start, t, len(stack)))
        assert not stack
    return slices, counters


def kineto():
    """Two ranks' worth of things to tell apart: nested operators that begin together, two streams, a step."""
    events = []

    def put(cat, name, ts, dur, tid, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if "stream" in args else 42, "tid": tid, "ts": ts,
                       "dur": dur, "args": args})

    for i in range(3):
        at = 1000 + 1000 * i
        put("user_annotation", f"ProfilerStep#{i}", at, 1000, 42)
        put("cpu_op", "aten::linear", at, 300, 42)
        put("cpu_op", "aten::addmm", at, 200, 42)
        put("cuda_runtime", "cudaLaunchKernel", at + 50, 20, 42, correlation=i + 1)
        put("kernel", "void gemm<float>(float*)", at + 200, 500, 7, correlation=i + 1, device=0, stream=7,
            grid=[8, 1, 1], block=[256, 1, 1])
        put("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", at + 600, 200, 20, correlation=100 + i, device=0, stream=20, bytes=4096)
    return json.dumps({"schemaVersion": 1, "traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]})


@pytest.fixture
def exported(hec):
    hec.imported("t", kineto())
    hec.ok("export", "--perfetto", "-o", "t.pftrace", "t.hec")
    return (hec.folder / "t.pftrace").read_bytes()


def test_slices_are_those_of_the_trace(exported):
    slices, _ = slices_of(exported)
    kinds = collections.Counter(name for _, name, *_ in slices)
    assert kinds["aten::linear"] == kinds["aten::addmm"] == kinds["step"] == kinds["launch"] == 3
    origin = min(start for _, _, start, _, _ in slices)
    for track, name, start, end, depth in slices:
        start, end = (start - origin) / 1000, (end - origin) / 1000
        if name == "aten::addmm":
            assert depth > 0 and (start % 1000, end - start) == (0, 200)
        elif name == "launch":
            assert track == "launches" and (start % 1000, end - start) == (50, 20)
        elif "gemm" in name:
            assert "stream 7" in track and depth == 0 and (start % 1000, end - start) == (200, 500)
        elif "copy" in name:
            assert name == "copy host to device (pinned)" and "stream 20" in track and (start % 1000, end - start) == (600, 200)
        elif name == "step":
            assert track == "steps" and end - start == 1000


def test_perfettos_own_classes_read_the_same(exported):
    perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the package perfetto is not installed")
    trace = perfetto.Trace()
    trace.ParseFromString(exported)
    begins = sum(packet.track_event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN for packet in trace.packet)
    assert begins == len(slices_of(exported)[0])
    assert {packet.track_descriptor.name for packet in trace.packet} >= {"GPU 0 NVIDIA H200", "steps"}


def test_counters_of_a_measured_run(hec):
    hec.ok("run", "-q", "--sim", "h200", "-o", "r.hec", "--", hec.path, "sim", "healthy-gemm", "--seconds", "2")
    assert hec("export", "--perfetto", "-o", "r.pftrace", "r.hec").returncode == 0
    _, counters = slices_of((hec.folder / "r.pftrace").read_bytes())
    assert len(counters["power"]) > 10 and counters["SM active"] and counters["memory used"]
    end = hec.report("r.hec")["run"]["seconds"] * 1e9
    for t, watts in counters["power"]:
        assert 0 <= t <= end + 1e9 and 50 < watts < 1000
    assert all(0 <= share <= 100 for _, share in counters["SM active"])
    csv_agrees(hec, counters)
    described = [described for _, packet in fields((hec.folder / "r.pftrace").read_bytes()) if (described := one(packet, 60))]
    processes = [process for track in described if (process := one(track, 3))]
    assert [one(process, 6) for process in processes] == [b"hec"], "a process has the name that the run knows"


def test_csv(hec, exported):
    rows = list(csv.DictReader(io.StringIO(hec("export", "--csv", "-o", "-", "t.hec").stdout, newline="")))
    kernels = [row for row in rows if row["kind"] == "kernel"]
    assert len(kernels) == 3 and {row["grid_x"] for row in kernels} == {"8"} and {row["duration_ns"] for row in kernels} == {"500000"}
    assert all(int(row["start_ns"]) - int(row["launch_start_ns"]) == 150000 for row in kernels)
    copies = [row for row in rows if row["kind"] == "copy"]
    assert [(row["amount"], row["unit"], row["from"], row["to"]) for row in copies] == [("4096", "bytes", "pinned", "device")] * 3
    assert [int(row["start_ns"]) for row in rows] == sorted(int(row["start_ns"]) for row in rows)


def csv_agrees(hec, counters):
    """Power, counters and the host's figures are rows too: what the Perfetto trace has, and the readings that are missing."""
    rows = list(csv.DictReader(io.StringIO(hec("export", "--csv", "-o", "-", "r.hec").stdout, newline="")))
    readings = collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "reading" and row["amount"] and int(row["start_ns"]) >= 0:
            readings[row["name"]].append((int(row["start_ns"]), float(row["amount"])))
    assert readings.keys() == counters.keys()
    for name, values in counters.items():
        assert [t for t, _ in readings[name]] == [t for t, _ in values]
        assert [value for _, value in readings[name]] == pytest.approx([value for _, value in values])
    assert {(row["device"], row["unit"]) for row in rows if row["name"] == "power"} == {("0", "W")}
    assert {(row["device"], row["unit"]) for row in rows if row["name"] == "CPU busy"} == {("", "%")}
    # a mean is of the time before it was read
    assert all(int(row["duration_ns"]) > 0 for row in rows if row["name"] == "SM active" and int(row["start_ns"]) > 2e8)
