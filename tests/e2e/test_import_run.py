"""`hec import`: a profiler's trace becomes a run file that `hec report` treats like its own."""
import gzip
import json

from conftest import HANGS_S, Screen, counts


def kineto(rank=None, kernels=10):
    """A trace as PyTorch writes it: launches on a thread, kernels of 50 us every 100 us on a stream, one copy."""
    events = []
    for i in range(kernels):
        ts = 1000.0 + 100 * i
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 42, "tid": 42, "ts": ts, "dur": 5,
                       "args": {"correlation": i + 1}})
        events.append({"ph": "X", "cat": "kernel", "name": "void add<float>(float*)", "pid": 0, "tid": 7, "ts": ts + 20, "dur": 50,
                       "args": {"correlation": i + 1, "device": 0, "stream": 7, "grid": [1, 1, 1], "block": [256, 1, 1]}})
    events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 1080.0, "dur": 10,
                   "args": {"correlation": 99, "device": 0, "stream": 7, "bytes": 4096}})
    trace = {"schemaVersion": 1, "traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]}
    if rank is not None:
        trace["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    return json.dumps(trace)


def test_a_trace_becomes_a_run(hec):
    (hec.folder / "train.pt.trace.json").write_text(kineto())
    done = hec("import", "train.pt.trace.json")
    assert done.returncode == 0 and done.stderr == ""
    kept = counts(hec.folder / "train.hec")
    assert (kept["kernel"], kept["copy"]) == (10, 1)
    report = hec.report("train.hec")
    assert report["devices"][0]["name"] == "NVIDIA H200"
    again = hec("import", "-q", "train.pt.trace.json")
    assert again.returncode == 0 and again.stdout == "" and (hec.folder / "train-2.hec").exists()


def test_modules_that_launched(hec):
    """Seven of ten launches of 50 us lie inside an operator: it is named, with its share of the kernels."""
    trace = json.loads(kineto())
    trace["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 42, "tid": 42, "ts": 999.0, "dur": 680.0})
    hec.imported("ops", trace)
    module, = hec.report("ops.hec")["devices"][0]["modules"]
    assert (module["name"], module["by"], module["launches"]) == ("aten::linear", "operator", 7)
    assert abs(module["seconds"] - 350e-6) < 1e-9 and abs(module["share"] - 0.7) < 1e-9
    assert "aten::linear" in hec("report", "ops.hec").stdout


def loop(steps=20, step_us=10000.0, data_us=8000.0):
    """Steps of a training loop whose loader takes 8 of 10 ms in the main process, as torch.profiler records it."""
    events = []
    for i in range(steps):
        ts = 1000.0 + step_us * i
        call = {"ph": "X", "pid": 42, "tid": 42}
        events.append({**call, "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": ts, "dur": step_us})
        events.append({**call, "cat": "user_annotation", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                       "ts": ts + 10, "dur": data_us})
        events.append({**call, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + data_us + 50, "dur": 5,
                       "args": {"correlation": i + 1}})
        events.append({"ph": "X", "cat": "kernel", "name": "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", "pid": 0, "tid": 7,
                       "ts": ts + data_us + 60, "dur": 1800, "args": {"correlation": i + 1, "device": 0, "stream": 7}})
    return {"traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}]}


def test_a_loader_that_holds_up_is_data(hec):
    first = hec.report(hec.imported("loop", loop()))["findings"][0]
    assert first["cause"] == "data" and first["predicted"]["seconds_fraction"][1] > 0.5


def test_no_joule_is_claimed_without_one_measured(hec):
    """A trace has time only: what could be saved is said of the time, in the report and in the JSON."""
    for name, trace in ("wait", loop()), ("busy", loop(data_us=7.0, step_us=1820.0)):
        report = hec.report(hec.imported(name, trace))
        assert report["findings"] and all(f["predicted"]["joules_fraction"] is None for f in report["findings"])
        scale = report["scale_out"]
        assert scale["recoverable"] is None and "joule" not in scale["why"]
        text = hec("report", "-v", f"{name}.hec").stdout
        assert "the joules" not in " ".join(text.split()) and "of the time" in " ".join(text.split())
        if name == "wait":
            assert scale["recoverable_seconds"] > 0.5
        else:
            assert "found      healthy" in text


def test_ranks_become_one_run(hec):
    for rank in (0, 1):
        with gzip.open(hec.folder / f"rank{rank}.json.gz", "wt") as file:
            file.write(kineto(rank, kernels=10 + rank))
    done = hec.ok("import", "-o", "both.hec", "--json", "rank0.json.gz", "rank1.json.gz")
    assert len(json.loads(done.stdout)["devices"]) == 2
    assert counts(hec.folder / "both.hec")["kernel"] == 21


def test_nothing_is_left_of_what_is_no_trace(hec):
    (hec.folder / "cut.json").write_text(kineto()[:-40])
    (hec.folder / "words.json").write_text("these are words")
    for name, status in (("cut.json", 65), ("words.json", None), ("absent.json", 66)):
        done = hec("import", "-o", "out.hec", name)
        assert done.returncode == status or (status is None and done.returncode != 0)
        assert done.stderr.startswith("hec: ") and done.stderr.count("\n") == 1 and name in done.stderr
        assert not (hec.folder / "out.hec").exists()
    (hec.folder / "good.json").write_text(kineto())
    done = hec("import", "-o", "out.hec", "good.json", "cut.json")
    assert done.returncode == 65 and not (hec.folder / "out.hec").exists()


def test_no_file_is_overwritten_unasked(hec):
    (hec.folder / "train.json").write_text(kineto())
    (hec.folder / "mine.hec").write_text("not a run file")
    assert hec("import", "-o", "mine.hec", "train.json").returncode != 0
    assert hec("import", "-f", "-o", "mine.hec", "train.json").returncode == 2
    assert (hec.folder / "mine.hec").read_text() == "not a run file"
    assert hec("import", "-q", "-o", "a.hec", "train.json").returncode == 0
    assert hec("import", "-q", "-o", "a.hec", "train.json").returncode != 0
    assert hec("import", "-q", "-f", "-o", "a.hec", "train.json").returncode == 0
    assert hec("import").returncode == 2


def test_a_failed_import_keeps_the_earlier_run(hec):
    hec.imported("a", kineto())
    (hec.folder / "cut.json").write_text(kineto()[:-40])
    assert hec("import", "-q", "-f", "-o", "a.hec", "cut.json").returncode == 65
    assert counts(hec.folder / "a.hec")["kernel"] == 10
    assert not list(hec.folder.glob("hec-*"))


def test_short_imports_are_quiet_on_a_terminal(hec):
    """Progress is for what takes longer than a second."""
    (hec.folder / "train.json").write_text(kineto())
    screen = Screen()
    assert hec.popen("import", "-q", "train.json", stderr=screen.fd).wait(HANGS_S) == 0
    assert screen.end() == b""
