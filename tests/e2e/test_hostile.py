"""A fast part of bench/hostile: hostile files and mutants of sound ones, within the bench's limits of memory, disk and time."""
import os
import subprocess
import sys

from conftest import BINARY, HANGS_S, ROOT

# each is made in a moment, and tried with what reads the most of it
RUNS = ["names_of_one_chain", "steps", "blocks_at_once", "event_tree", "track_tree", "schema_tree"]
TRACES = ["export_tree", "export_schema_tree"]


def bench(folder, *arguments):
    done = subprocess.run([sys.executable, ROOT / "bench" / "hostile" / "run", *arguments], text=True, capture_output=True, timeout=HANGS_S,
                          env={**os.environ, "HEC": BINARY, "TMPDIR": str(folder)})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def only(names):
    return [word for name in names for word in ("--only", name)]


def test_run_files(tmp_path):
    said = bench(tmp_path, *only(RUNS), "--verb", "report")
    assert f"0 of {len(RUNS)} beyond the limits" in said


def test_traces_and_mutants(tmp_path):
    said = bench(tmp_path, *only(TRACES), "--verb", "import", "--mutants", "9")
    assert f"0 of {len(TRACES) + 9} beyond the limits" in said


def test_the_bench_sees_what_is_beyond(tmp_path):
    """A check that cannot fail is none."""
    hungry = tmp_path / "hec"
    hungry.write_text(f"""#!{sys.executable}
import os, subprocess, sys
if sys.argv[1] == "run":
    os.execv({str(BINARY)!r}, sys.argv)
if sys.argv[1:] == ["report", sys.argv[-1]]:
    hungry = b"x" * (600 << 20)
elif "--json" in sys.argv:
    sys.exit(71)
elif "--csv" in sys.argv:
    print("hec: one sentence of some length", file=sys.stderr)
    print("hec: and another one", file=sys.stderr)
    sys.exit(65)
""")
    hungry.chmod(0o755)
    done = subprocess.run([sys.executable, ROOT / "bench" / "hostile" / "run", "--only", "event_tree", "--verb", "report", "--verb",
                           "json", "--verb", "csv", "--verb", "gather"], text=True,
                          capture_output=True, timeout=HANGS_S, env={**os.environ, "HEC": str(hungry), "TMPDIR": str(tmp_path)})
    assert done.returncode == 1, done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert [line.split()[1] for line in failed] == ["report", "json", "csv"], done.stdout
    assert "MB of memory" in failed[0] and "ended with 71" in failed[1] and "said" in failed[2]
