"""Jobs of 8 to 64 ranks, live on simulated GPUs and by import of a trace of each: who is late, who is missing, on one page."""
import gzip
import json
import sys

import pytest

import rank_traces
from test_ranks import RANK

STEPS, LATE = 12, 5

# As many processes, each on a simulated GPU of its own; the first one starts them, and lets all of them begin each step at once.
LIVE = '''
import os, subprocess, sys, time
LATE_RANK, STEPS, RANKS = map(int, sys.argv[1:4])
if len(sys.argv) == 4:
    ready, begins = [os.pipe() for _ in range(RANKS)], [os.pipe() for _ in range(RANKS)]
    ranks = []
    for rank in range(RANKS):
        ends = (ready[rank][1], begins[rank][0])
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), TORCHELASTIC_RUN_ID="x")
        ranks.append(subprocess.Popen([sys.executable, __file__, *sys.argv[1:], *map(str, ends)], pass_fds=ends))
        os.close(ready[rank][1])
    for step in range(STEPS):
        for reads, _ in ready:
            assert os.read(reads, 1)
        for _, writes in begins:
            os.write(writes, b".")
    sys.exit(max(rank.wait() for rank in ranks))
to, other_end = map(int, sys.argv[4:])
RANK = int(os.environ["RANK"])
LATE = 0.02 * (RANK == LATE_RANK)
''' + RANK.replace("RANK % 2)", "RANK)").replace("LATE_RANK == 1 - RANK", "LATE_RANK not in (-1, RANK)")


@pytest.fixture(scope="module", params=[8, 64])
def job(request, tmp_path_factory):
    return request.param, rank_traces.write(tmp_path_factory.mktemp("traces"), request.param, late=LATE, steps=STEPS)


def imported(hec, paths):
    hec.ok("import", "-q", "-f", "-o", "job.hec", *paths)
    return hec.report("job.hec")


def test_one_late_rank_of_many(hec, job):
    """By 10 of each 30 ms."""
    count, paths = job
    report = imported(hec, paths)
    ranks, waited = {r["rank"]: r for r in report["job"]["ranks"]}, STEPS * rank_traces.LATE_US / 1e6
    assert report["job"]["size"] == len(ranks) == count and report["job"]["missing"] is None
    assert report["findings"][0]["cause"] == "straggler" and f"rank {LATE} " in report["headline"]
    assert all(r["waited_seconds"] == pytest.approx(waited, rel=0.1) for r in ranks.values() if r["rank"] != LATE)
    assert ranks[LATE]["held_seconds"] == pytest.approx((count - 1) * waited, rel=0.1) and ranks[LATE]["waited_seconds"] < 0.1 * waited
    in_table = [r["rank"] for r in ranks.values() if r["in_short_table"]]
    assert LATE in in_table and ranks[LATE]["unusual"] and len(in_table) <= 8 and report["job"]["usual"] != LATE
    for device in report["devices"]:
        ledger = {row["state"]: row["seconds"] for row in device["ledger"]}
        assert sum(ledger.values()) == pytest.approx(report["run"]["seconds"], abs=1e-6)
        if device["index"] != ranks[LATE]["devices"][0]:
            assert ledger["waiting"] == pytest.approx(waited, rel=0.1)
            assert ledger["comm"] == pytest.approx(STEPS * rank_traces.LAYERS * rank_traces.REDUCE_US / 1e6, rel=0.1)
    collectives = report["job"]["collectives"]
    assert collectives["bus_bytes"] == pytest.approx(2 * rank_traces.ELEMENTS * 2 * (count - 1) / count)
    assert collectives["bus_bytes_per_second"] == pytest.approx(collectives["bus_bytes"] / collectives["transfer_seconds"])
    what = json.loads(hec.ok("whatif", "--json", "job.hec").stdout)
    assert what["unchanged"]["ranks_waited_seconds"] == pytest.approx((count - 1) * waited, rel=0.2)


def live(hec, late, count):
    (hec.folder / "job.py").write_text(LIVE)
    hec.ok("run", "-q", "-f", "--sim", f"h200x{count}", "--trace=full", "-o", "job.hec", "--", sys.executable, "job.py", late, 40, count)
    return hec.report("job.hec"), hec.ok("report", "job.hec").stdout


@pytest.mark.parametrize("count", [8, 16])
def test_a_live_job(hec, count):
    """By 20 of each 32 ms. What is said of it is no longer than of two ranks, but for the tables of ranks and of devices, of 8 rows at most."""
    report, text = live(hec, LATE, count)
    ranks, first = {r["rank"]: r for r in report["job"]["ranks"]}, report["findings"][0]
    assert report["job"]["size"] == len(ranks) == count and report["job"]["missing"] is None
    assert [r["devices"] for r in ranks.values()] == [[index] for index in range(count)]
    assert first["cause"] == "straggler" and first["devices"] == list(range(count)) and f"rank {LATE} (GPU {LATE})" in report["headline"]
    assert first["source"][0]["function"] == "log"
    assert ranks[LATE]["came_last"] == ranks[LATE]["collectives"] > 16 and ranks[LATE]["waited_seconds"] < 0.05
    assert all(r["waited_seconds"] == pytest.approx(40 * 0.02, rel=0.2) for r in ranks.values() if r["rank"] != LATE)
    low, best, high = first["predicted"]["step"]["seconds_fraction"]
    assert low < 20 / 32 < high and abs(best - 20 / 32) < 0.15
    of_two = live(hec, 1, 2)[1]
    assert len(text.splitlines()) <= len(of_two.splitlines()) + 8 + 8
    assert len(text.split("\nJob ")[1].split("\n\n")[0].splitlines()) <= 2 + 1 + 8 + 1
    rows = text.split("\nGPUs ")[1].split("\n\n")[0].splitlines()
    assert len(rows) <= 2 + 8 + 3 and any(f"GPU {LATE} " in row for row in rows)


def test_its_table_is_short(hec, job):
    count, paths = job
    imported(hec, paths)
    text, everything = hec.ok("report", "job.hec").stdout, hec.ok("report", "-v", "job.hec").stdout
    table = text.split("\nJob ")[1].split("\n\n")[0].splitlines()
    assert len(table) <= 2 + 1 + 8 + 1 and "AMD" not in text
    if count > 8:
        assert "more like rank" in table[-1] and "more like rank" in hec.ok("report", "--md", "job.hec").stdout
        assert len(text.splitlines()) < 100
    assert len(everything.split("\nJob ")[1].split("\n\n")[0].splitlines()) >= count


def test_missing_ranks_and_mixed_formats(hec, tmp_path):
    """Of 16 ranks three are not there; one trace is compressed."""
    paths = rank_traces.write(tmp_path / "traces", 16, late=LATE, left_out=(2, 3, 9), steps=STEPS)
    packed = paths[0].with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(paths[0].read_bytes()))
    report = imported(hec, [packed, *paths[1:]])
    assert report["job"]["size"] == 16 and report["job"]["missing"] == "2 to 3, 9"
    assert report["findings"][0]["cause"] == "straggler" and f"rank {LATE} " in report["headline"]
    assert "not in this run: 2 to 3, 9" in hec.ok("report", "job.hec").stdout


def test_ranks_that_are_equal(hec, tmp_path):
    report = imported(hec, rank_traces.write(tmp_path / "traces", 16, steps=STEPS))
    assert all(f["cause"] != "straggler" for f in report["findings"] if f["actionable"])
    assert not any(r["unusual"] for r in report["job"]["ranks"])


@pytest.mark.parametrize("count", [2, 8])
def test_a_trace_that_begins_late_by_another_clock(hec, tmp_path, count):
    """By 2.4 steps, on a host whose clock is 7.3 ms ahead, five collectives: they are the same ones by their numbers in the group."""
    def job(name, **more):
        return imported(hec, rank_traces.write(tmp_path / name, count, late=1, steps=STEPS, numbered=True, **more))
    whole, cut, ahead = job("whole"), job("cut", cut=2.4), job("ahead", cut=2.4, ahead_us=7300)
    assert whole["events"] == cut["events"] == [] and [e["text"][:24] for e in ahead["events"]] == ["the clock of 1 file was "]
    left_out = int(2.4 * rank_traces.LAYERS) + 1
    for report in cut, ahead:
        collectives = report["job"]["collectives"]
        ranks = {r["rank"]: r for r in report["job"]["ranks"]}
        if count == 2:
            assert collectives["matched"] >= whole["job"]["collectives"]["matched"] - left_out
        else:
            assert collectives["matched"] == whole["job"]["collectives"]["matched"]
        for was in whole["job"]["ranks"]:
            for figure in "waited_seconds", "held_seconds":
                assert was[figure] * (STEPS - 3) / STEPS - 1e-3 <= ranks[was["rank"]][figure] <= was[figure] * 1.02 + 1e-3
        assert "straggler" in [f["cause"] for f in report["findings"] if f["actionable"]]
    for one, other in zip(cut["job"]["ranks"], ahead["job"]["ranks"]):
        assert one["waited_seconds"] == pytest.approx(other["waited_seconds"], abs=1e-6)


def test_two_communicators_beside_each_other(hec, tmp_path):
    """Their collectives have the same kernel and end within 10 us of each other: nobody waits for a rank of the other one."""
    report = imported(hec, rank_traces.write(tmp_path / "traces", 4, halves=True, steps=STEPS))
    assert report["job"]["collectives"]["matched"] >= 2 * (STEPS - 1) * rank_traces.LAYERS
    assert all(r["waited_seconds"] < 0.01 for r in report["job"]["ranks"])
    assert all(f["cause"] != "straggler" for f in report["findings"] if f["actionable"])
    assert {k["name"].rpartition(" [pg ")[2] for k in report["kernels"] if "AllReduce" in k["name"]} == {"1]", "2]"}
