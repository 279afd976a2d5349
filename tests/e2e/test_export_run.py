"""`hec export`: where the bytes go, and what is refused."""
import csv
import io
import json
import subprocess

import pytest

from conftest import HANGS_S, Screen
from test_import_run import kineto


@pytest.fixture
def imported(hec):
    hec.imported("train", kineto())
    return hec


def test_csv_to_a_pipe(imported):
    done = imported("export", "--csv", "train.hec")
    assert done.returncode == 0 and done.stderr == ""
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert len({len(row) for row in rows}) == 1 and len(rows) > 11


def test_perfetto_to_a_file(imported):
    assert imported("export", "--perfetto", "-o", "t.perfetto-trace", "train.hec").returncode == 0
    trace = (imported.folder / "t.perfetto-trace").read_bytes()
    assert trace[:1] == b"\x0a" and b"add<float>" in trace  # field 1, length-delimited: a packet
    done = imported("export", "--perfetto", "-o", "t.perfetto-trace", "train.hec")
    assert done.returncode == 2 and "exists" in done.stderr
    assert imported("export", "-f", "--perfetto", "-o", "t.perfetto-trace", "train.hec").returncode == 0
    assert (imported.folder / "t.perfetto-trace").read_bytes() == trace


def on_a_terminal(hec, *arguments):
    screen = Screen()
    status = hec.popen("export", *arguments, stdout=screen.fd, stderr=screen.fd).wait(HANGS_S)
    return status, screen.end().decode()


def test_a_terminal_gets_the_name_of_the_file(imported):
    status, text = on_a_terminal(imported, "--perfetto", "train.hec")
    assert status == 0 and text.strip() == "train.perfetto-trace"
    assert (imported.folder / "train.perfetto-trace").stat().st_size > 0
    status, text = on_a_terminal(imported, "--csv", "train.hec")
    assert status == 0 and text.strip() == "train.csv"
    status, text = on_a_terminal(imported, "--perfetto", "-o", "-", "train.hec")
    assert status == 2 and "binary" in text
    status, text = on_a_terminal(imported, "--csv", "-o", "-", "train.hec")
    assert status == 0 and "add<float>" in text


def test_wrong_usage(imported):
    assert imported("export", "train.hec").returncode == 2
    assert imported("export", "--csv", "--perfetto", "train.hec").returncode == 2
    assert imported("export", "--csv").returncode == 2
    done = imported("export", "--csv", "-o", "x.csv", "absent.hec")
    assert done.returncode == 66 and not (imported.folder / "x.csv").exists()
    (imported.folder / "bad.hec").write_text(json.dumps({}))
    assert imported("export", "--csv", "-o", "x.csv", "bad.hec").returncode == 65
    assert not (imported.folder / "x.csv").exists()


def test_a_full_disk_is_told(imported):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([imported.path, "export", "--csv", "train.hec"], cwd=imported.folder, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 74 and "No space left" in done.stderr
