"""A job of two ranks, each on a host of its own with a `hec run` of its own: the files become one run, whose clocks the collectives set.
Both are recorded on one simulated machine, by one clock; then the second file gets another host's name, and another clock."""
import sqlite3
import sys

import pytest

from test_ranks import JOB, ranks_of

STEPS, LATE_S = 40, 0.02

HOSTS = '''
import os, subprocess, sys
hec, *words = sys.argv[1:]
pipes = [os.pipe(), os.pipe()]
runs = []
for rank in (0, 1):
    ends = (pipes[rank][1], pipes[1 - rank][0])
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE="2", TORCHELASTIC_RUN_ID="x")
    runs.append(subprocess.Popen([hec, "run", "-q", "-f", "--trace=full", "-o", f"host{rank}.hec", "--", sys.executable, "job.py",
                                  *words, *map(str, ends)], pass_fds=ends))
sys.exit(max(run.wait() for run in runs))
'''


def change(path, **facts):
    with sqlite3.connect(path) as file:
        for key, value in facts.items():
            file.execute("UPDATE meta SET value = ? WHERE key = ?", (str(value), key))


def fact(path, key):
    with sqlite3.connect(path) as file:
        return file.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]


def of_size(path, size):
    with sqlite3.connect(path) as file:
        for key, value in file.execute("SELECT key, value FROM meta WHERE key LIKE 'rank.%'").fetchall():
            rank, local, _, *rest = value.split(" ")
            file.execute("UPDATE meta SET value = ? WHERE key = ?", (" ".join([rank, local, str(size), *rest]), key))


@pytest.fixture
def hosts(hec):
    """The files of both."""
    (hec.folder / "job.py").write_text(JOB)
    (hec.folder / "hosts.py").write_text(HOSTS)
    hec.ok("run", "-q", "--sim", "h200x2", "--trace=off", "-o", "both.hec", "--", sys.executable, "hosts.py", hec.path, 1, STEPS)
    paths = [hec.folder / f"host{rank}.hec" for rank in (0, 1)]
    for rank, path in enumerate(paths):
        change(path, hostname=f"node-{'ab'[rank]}")
    return paths


def set_ahead(paths, seconds):
    """The clock of the second host."""
    change(paths[1], start_wall_ns=int(fact(paths[1], "start_wall_ns")) + int(seconds * 1e9))


def test_files_of_two_hosts_are_one_run(hec, hosts):
    """Rank 1 is late by 20 of each 32 ms. Its clock is 10 ms ahead, which the collectives put right."""
    set_ahead(hosts, 0.01)
    report = hec.report(*hosts)
    ranks, job = ranks_of(report), report["job"]
    assert (job["size"], job["joined"], job["missing"]) == (2, 2, None)
    assert int(job["joined_by"].removesuffix(" collectives")) >= 0.9 * STEPS
    assert [ranks[rank]["host"] for rank in (0, 1)] == ["node-a", "node-b"] and sorted(report["run"]["hostname"].split(", ")) == ["node-a", "node-b"]
    assert ranks[0]["waited_seconds"] == pytest.approx(STEPS * LATE_S, rel=0.1) and ranks[1]["waited_seconds"] < 0.05
    assert report["findings"][0]["cause"] == "straggler" and report["findings"][0]["source"][0]["function"] == "log"
    text = hec.ok("report", hosts[1], hosts[0]).stdout  # as above: how many fall together is counted from the first one
    assert "node-a" in text and "node-b" in text and f"clocks set by {job['joined_by']}" in " ".join(text.split())


def test_they_are_gathered(hec, hosts):
    hec.ok("gather", "--keep-names", "-o", "job.hec", *reversed(hosts))  # as hec.report has them
    gathered, joined = hec.report("job.hec"), hec.report(*hosts)
    assert gathered["job"] == joined["job"] and gathered["findings"] == joined["findings"]
    assert len(hec.ok("whatif", "--json", "job.hec").stdout) > 100


def test_ranks_without_a_file(hec, hosts):
    alone = hec.report(hosts[0])
    assert alone["job"]["missing"] == "1" and all(f["cause"] != "none" or not f["actionable"] for f in alone["findings"])
    assert alone["scale_out"]["verdict"] != "scale_out"
    for path in hosts:
        of_size(path, 4)
    report = hec.report(*hosts)
    assert report["job"]["size"] == 4 and report["job"]["missing"] == "2 to 3"
    assert "not in this run: 2 to 3" in " ".join(hec.ok("report", *hosts).stdout.split())


def test_a_clock_that_is_minutes_off(hec, hosts):
    """They are not joined by force: it is said why, and two runs are reported."""
    set_ahead(hosts, 180)
    done = hec.ok("report", *hosts)
    assert "other ranks of as many, 2 min 5" in done.stderr and "clocks of their hosts" in done.stderr
    assert done.stdout.count("\nRun  ") == 2 and "holds up" not in done.stdout
    refused = hec("gather", "-o", "job.hec", *hosts)
    assert refused.returncode != 0 and "clocks of their hosts" in refused.stderr and not (hec.folder / "job.hec").exists()


def test_a_clock_that_is_most_of_the_run_off(hec, hosts):
    """Collectives are looked for within half a second: what is there by chance is not taken for a match. That the other rank has more to
    do is known without."""
    set_ahead(hosts, 1.2)
    report = hec.report(*hosts)
    assert report["job"]["joined"] == 2 and report["job"]["joined_by"] == "wall clock: collectives do not fall together"
    assert report["job"]["collectives"] is None and all(r["waited_seconds"] is None for r in report["job"]["ranks"])
    assert not any(row["state"] == "waiting" for device in report["devices"] for row in device["ledger"])
