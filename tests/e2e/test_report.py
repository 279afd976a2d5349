"""`hec report` on real run files of the simulated GPU: the schema, the terminal, damaged files."""
import contextlib
import json
import random
import re
import shutil
import sqlite3
import sys

import jsonschema
import pytest

from conftest import BINARY, ROOT, Hec, schema

SCHEMA = schema("report")


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    hec = Hec(BINARY, tmp_path_factory.mktemp("report"))
    hec.ok("run", "-q", "--sim", "h200x2", "--units", "100", "-o", "r.hec", "--", hec.path, "sim", "healthy-gemm", "--seconds", "3")
    return hec.folder / "r.hec"


def test_json_obeys_the_schema(hec, run_file):
    report = hec.report(run_file)
    jsonschema.validators.validator_for(SCHEMA).check_schema(SCHEMA)
    jsonschema.validate(report, SCHEMA)
    used, spare = report["devices"]
    assert used["used"] and not spare["used"]
    assert used["energy"]["valid"] and used["energy"]["method"].startswith("simulated")
    assert report["totals"]["joules"] == used["energy"]["joules"], "a device that is not used is not charged"
    assert report["units"]["joules_per_unit"] == pytest.approx(used["energy"]["joules"] / 100)
    several = json.loads(hec("report", "--json", run_file, run_file).stdout)
    assert [r["schema"] for r in several] == [report["schema"]] * 2


def test_the_queries_of_the_documents(hec, run_file):
    """Each query of docs/run-file.md runs, and the figures are those of the report."""
    queries = re.findall(r"^-- ([^(\n]+?)(?: \(.*)?\n(SELECT [^;]+);$", (ROOT / "docs/run-file.md").read_text(), re.M)
    assert len(queries) > 12
    with sqlite3.connect(run_file) as file:
        answers = {question: file.execute(query).fetchall() for question, query in queries}
    ((mean, highest),) = answers["mean and highest power of GPU 0, W"]
    ((joules,),) = answers["joules by the counter"]
    device = hec.report(run_file)["devices"][0]
    assert mean == pytest.approx(device["power_w"]["mean"], rel=0.02)
    assert highest == pytest.approx(device["power_w"]["max"])
    assert joules == pytest.approx(device["energy"]["joules"], rel=0.1)


def test_same_input_same_bytes(hec, run_file):
    assert hec("report", "--json", run_file).stdout == hec("report", "--json", run_file).stdout
    assert hec("report", run_file).stdout == hec("report", run_file).stdout


def test_terminal_fits_80_columns_and_obeys_no_color(hec, run_file):
    plain = hec("report", run_file)
    assert "\033" not in plain.stdout
    assert max(map(len, plain.stdout.splitlines())) <= 80
    assert "\033" in hec("report", "--color", "always", run_file).stdout


def test_markdown_says_what_the_terminal_says(hec, run_file):
    done = hec("report", "--md", run_file, run_file, env={"LC_ALL": "C.UTF-8"})
    text = " ".join(hec("report", run_file, env={"LC_ALL": "C.UTF-8"}).stdout.split())
    screen = re.findall(r"^- \*\*(\w+)\*\*: (.*)$", done.stdout, re.M)
    assert done.returncode == 0 and [name for name, _ in screen].count("found") == 2 and screen[:len(screen) // 2] == screen[len(screen) // 2:]
    for name, words in screen:
        assert name == "more" or f" {name} " + words.replace("\\", "").strip("`") in text
    assert done.stdout.count("<details>") == done.stdout.count("</details>")
    whole = " ".join(hec("report", "-v", run_file, env={"LC_ALL": "C.UTF-8"}).stdout.split())
    for row in re.findall(r"^\| (Run|energy|work|cost) \| ([^|]*) \|$", done.stdout, re.M):
        assert " ".join(row) in whole and (" ".join(row) in text or row[0] == "cost")


def test_price_is_labelled(hec, run_file):
    assert "default" in hec("report", "-v", run_file).stdout and "$/kWh" not in hec("report", run_file).stdout
    totals = hec.report(run_file, "--price", "0.25", "--carbon", "100", "--gpu-hour", "3")["totals"]
    kwh = totals["joules"] / 3.6e6
    seconds = hec.report(run_file)["run"]["seconds"]
    assert totals["dollars"] == pytest.approx(kwh * 0.25 + 3 * seconds / 3600, rel=1e-6)
    assert totals["grams_co2"] == pytest.approx(kwh * 100, rel=1e-6)


@pytest.mark.parametrize("value", [str(2**63 - 1), str(2**60 + 1), str(-2**63), "-5", "soon"])
def test_an_impossible_length_is_as_none(hec, run_file, value):
    """The readings say how long the run was, as in a run that was cut off."""
    expected = hec.report(run_file)["run"]["seconds"]
    path = hec.folder / "length.hec"
    shutil.copy(run_file, path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value=? WHERE key='duration_ns'", (value,))
    assert hec.report(path)["run"]["seconds"] == pytest.approx(expected, abs=0.2)


def test_damaged_files_give_one_sentence(hec, run_file):
    whole = run_file.read_bytes()
    rng = random.Random(3)
    damaged = [b"", b"not a run file\n" * 50, whole[:100], whole[: len(whole) // 2], whole[:4096]]
    for _ in range(40):
        copy = bytearray(whole)
        for _ in range(rng.randint(1, 200)):
            copy[rng.randrange(len(copy))] = rng.randrange(256)
        damaged.append(bytes(copy))
    refused = 0
    for i, data in enumerate(damaged):
        path = hec.folder / f"bad{i}.hec"
        path.write_bytes(data)
        done = hec("report", path)
        assert done.returncode in (0, 65, 66, 74), (i, done.returncode, done.stderr)
        if done.returncode:
            refused += 1
            assert len(done.stderr.splitlines()) == 1 and f"bad{i}.hec" in done.stderr
    assert refused >= 5


def test_a_damaged_row_costs_no_more_than_itself(hec, run_file):
    whole = hec.report(run_file)
    path = hec.folder / "row.hec"
    path.write_bytes(run_file.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("update tracer set first_ns = 2305843009213693952")
        file.commit()
    report = hec.report("row.hec")
    assert report["totals"]["joules"] == whole["totals"]["joules"]
    told = [event["text"] for event in report["events"] if event["kind"] == "damaged"]
    assert len(told) == 1 and "column first_ns of the table tracer" in told[0]
    for verb in (["gather", "-f", "-o", "copy.hec"], ["export", "--csv", "-f", "-o", "row.csv"]):
        done = hec(*verb, "row.hec")
        assert done.returncode == 0 and "a part of row.hec is damaged and left out" in done.stderr
    assert not [event for event in hec.report("copy.hec")["events"] if event["kind"] == "damaged"]


def test_missing_file_and_several_files(hec, run_file):
    done = hec("report", "no.hec", run_file)
    assert done.returncode == 66 and "no.hec" in done.stderr and "GPU 0" in done.stdout


def test_gather_hides_names_and_keeps_figures(hec, run_file):
    assert hec("gather", "-o", "g.hec", run_file).returncode == 0
    packed, whole = hec.report("g.hec"), hec.report(run_file)
    assert packed["devices"][0]["energy"] == whole["devices"][0]["energy"]
    assert packed["run"]["hostname"] != whole["run"]["hostname"]
    assert str(hec.folder.parent) not in (hec.folder / "g.hec").read_bytes().decode("latin1")
    assert packed["devices"][0]["uuid"] != whole["devices"][0]["uuid"]


def test_gather_withholds_secrets(hec):
    hec.ok("run", "-q", "-o", "s.hec", "--trace", "off", "--sim", "h200", "--", "sh", "-c", "true --token=SECRETAA", "--password", "SECRETBB")
    hec.ok("gather", "-o", "sg.hec", "s.hec")
    assert b"SECRET" in (hec.folder / "s.hec").read_bytes() and b"SECRET" not in (hec.folder / "sg.hec").read_bytes()
    assert hec.report("sg.hec")["run"]["command"] == "sh -c 'true --token=[withheld]' --password [withheld]"


def union(intervals):
    length, end = 0, None
    for start, stop in sorted(intervals):
        start = start if end is None else max(start, end)
        length += max(0, stop - start)
        end = stop if end is None else max(end, stop)
    return length


def test_timeline_of_a_trace_is_as_worked_out_here(hec):
    """Holistic Trace Analysis' definitions, once more and in a few lines, on a random trace of two devices, a stream each."""
    rng, events, rows = random.Random(5), [], {0: [], 1: []}
    for i in range(3000):
        kind = rng.choice(["gemm", "gemm", "ncclDevKernel_AllReduce", "copy"])
        start, length, device, stream = rng.randrange(10**6), rng.randrange(1, 900), rng.randrange(2), i
        rows[device].append((kind, start, start + length))
        events.append({"ph": "X", "cat": "gpu_memcpy" if kind == "copy" else "kernel", "pid": device, "tid": stream,
                       "name": "Memcpy DtoD (Device -> Device)" if kind == "copy" else kind, "ts": start, "dur": length,
                       "args": {"device": device, "stream": stream, "correlation": i, "bytes": 100}})
    report = hec.report(hec.imported("t", {"schemaVersion": 1, "traceEvents": events}))
    jsonschema.validate(report, SCHEMA)
    assert report["totals"]["joules"] is None and report["totals"]["unavailable"].startswith("imported")
    for device in report["devices"]:
        found, mine = device["timeline"], rows[device["index"]]
        every, compute, comm, copy = ([(s, e) for k, s, e in mine if k in kinds] for kinds in (
            {"gemm", "copy", "ncclDevKernel_AllReduce"}, {"gemm"}, {"ncclDevKernel_AllReduce"}, {"copy"}))
        window = max(e for _, e in every) - min(s for s, _ in every)
        assert device["used"] and found["kernels"] + found["copies"] == len(mine)
        assert found["window_us"] == pytest.approx(window) and found["busy_us"] == pytest.approx(union(every))
        assert found["idle_us"] == pytest.approx(window - union(every)) and found["compute_us"] == pytest.approx(union(compute))
        assert found["non_compute_us"] == pytest.approx(union(every) - union(compute))
        hidden = union(compute) + union(comm) - union(compute + comm)
        assert found["comm_us"] == pytest.approx(union(comm)) and found["comm_overlap"] == pytest.approx(hidden / union(comm))
        assert found["copy_us"] == pytest.approx(union(copy)) and found["gaps_us"]["count"] > 0
        assert found["copied"] == [{"direction": "device_to_device", "host_memory": "other", "count": found["copies"],
                                    "bytes": 100.0 * found["copies"], "time_us": pytest.approx(sum(e - s for s, e in copy)),
                                    "bytes_per_second": pytest.approx(1e6 * 100 * len(copy) / sum(e - s for s, e in copy))}]
    assert [k["name"] for k in report["kernels"]] == ["gemm", "ncclDevKernel_AllReduce"] * 2
    assert sum(k["share"] for k in report["kernels"]) == pytest.approx(2)


def test_energy_by_phase(hec):
    """A long phase is told with a bound that holds the truth; one of short intervals is said to be too short."""
    (hec.folder / "phases.py").write_text(f"""
import subprocess, sys, time
sys.path.insert(0, {str(ROOT / "python")!r})
import hec
with hec.phase("train"):
    subprocess.run([{hec.path!r}, "sim", "healthy-gemm", "-s", "1", "--json"], check=True)
for i in range(20):
    with hec.phase("blink"):
        time.sleep(0.002)
""")
    done = hec.ok("run", "-q", "-o", "p.hec", "--sim", "h200", "--", sys.executable, "phases.py")
    truth = json.loads(done.stdout)["joules"]
    phases = {phase["name"]: phase for phase in hec.report("p.hec")["phases"]}
    train, blink = phases["train"], phases["blink"]
    # what starts and ends the program beside the play idles at 120 W at most
    assert train["why"] is None and truth - train["bound_joules"] <= train["joules"]
    assert train["joules"] <= truth + train["bound_joules"] + 120 * (train["seconds"] - 1)
    assert train["bound_joules"] < 0.2 * train["joules"]
    assert blink["joules"] is None and "too short" in blink["why"]
    assert "energy unknown\n" in hec("report", "p.hec").stdout
    said = " ".join(hec("report", "-v", "p.hec").stdout.split())
    assert "energy unknown: its intervals are too short" in said and "1 time, " in said
