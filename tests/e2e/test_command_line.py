"""What every verb does alike: where -o points, exit statuses, words nearly right, widths, completion."""
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import HANGS_S
from test_import_run import kineto

TO_FILE = ("run", "gather", "import", "export")


@pytest.fixture
def runs(hec):
    """A run file, a trace, and a caller of each verb that writes a file."""
    (hec.folder / "train.json").write_text(kineto())
    hec.ok("import", "-q", "-o", "r.hec", "train.json")
    rest = {"run": ("-q", "--", "true"), "gather": ("r.hec",), "import": ("-q", "train.json"), "export": ("--csv", "r.hec")}
    hec.write = lambda verb, path, *more: hec(verb, *more, "-o", path, *rest[verb])
    return hec


@pytest.mark.parametrize("verb", TO_FILE)
def test_a_link_is_followed(runs, verb):
    """The file that a link points at is made and replaced with -f alone; the link stays."""
    away = runs.folder / "away"
    away.mkdir()
    target = away / "out.hec"
    (runs.folder / "link.hec").symlink_to("away/out.hec")
    (runs.folder / "outer.hec").symlink_to(runs.folder / "link.hec")
    done = runs.write(verb, "outer.hec")
    assert done.returncode == 2 and "as a link" in done.stderr and not target.exists()
    assert runs.write(verb, "outer.hec", "-f").returncode == 0
    first = target.stat()
    done = runs.write(verb, "link.hec")
    assert done.returncode == 2 and "exists already" in done.stderr and target.stat().st_ino == first.st_ino
    assert runs.write(verb, "link.hec", "-f").returncode == 0
    assert target.stat().st_ino != first.st_ino and [p.name for p in away.iterdir()] == ["out.hec"]
    assert (runs.folder / "link.hec").is_symlink() and (runs.folder / "outer.hec").is_symlink()


@pytest.mark.parametrize("verb", TO_FILE)
def test_what_cannot_be_written_is_told_alike(runs, verb):
    (runs.folder / "folder").mkdir()
    (runs.folder / "loop").symlink_to("loop")
    (runs.folder / "pipe").symlink_to("/dev/null")
    before = {p.name for p in runs.folder.iterdir()}
    for path, status, words in (
        ("absent/x.hec", 66, "cannot create absent/x.hec: No such file"), ("folder", 2, "folder is a directory"),
        ("loop", 74, "cannot create loop: "), ("", 2, "needs the name of a file"), ("r.hec", 2, "r.hec exists already"),
    ):  # fmt: skip
        for force in ((), ("-f",)):
            if path == "r.hec" and (force or verb == "run"):
                continue
            done = runs.write(verb, path, *force)
            assert (done.returncode, done.stderr.count("\n")) == (status, 1) and words in done.stderr, (path, done.stderr)
    if verb != "export":
        done = runs.write(verb, "-", "-f")
        assert done.returncode == 2 and "standard output" in done.stderr and done.stdout == ""
        assert runs.write(verb, "pipe", "-f").returncode == 2
    assert {p.name for p in runs.folder.iterdir()} == before


def test_an_export_replaces_nothing_but_its_own_output(runs):
    run = (runs.folder / "r.hec").read_bytes()
    os.link(runs.folder / "r.hec", runs.folder / "again")
    for path in ("r.hec", "again"):
        done = runs("export", "-f", "--csv", "-o", path, "r.hec")
        assert done.returncode == 2 and "the run itself" in done.stderr
    assert (runs.folder / "r.hec").read_bytes() == run
    (runs.folder / "x.csv").write_text("mine")
    (runs.folder / "bad.hec").write_text("no run")
    assert runs("export", "-f", "--csv", "-o", "x.csv", "bad.hec").returncode == 65
    assert (runs.folder / "x.csv").read_text() == "mine" and not list(runs.folder.glob("*.part"))
    # a device is written into, and is there afterwards; by a link, so that a fault costs this test a link, no more
    (runs.folder / "full").symlink_to("/dev/full")
    done = runs("export", "-f", "--csv", "-o", "full", "r.hec")
    assert done.returncode == 74 and "No space left" in done.stderr and (runs.folder / "full").is_symlink()


def test_what_is_read_is_not_replaced(runs):
    receipt = runs("check", "-n", "1", "--warm-up", "0", "--in-place", "-o", "r.json", "--", "true")
    assert receipt.returncode == 0 and "1 trial is the baseline" in receipt.stderr
    os.link(runs.folder / "r.hec", runs.folder / "again.hec")
    before = {name: (runs.folder / name).read_bytes() for name in ("r.hec", "r.json")}
    for words in (("report", "--html", "-o", "r.hec", "r.hec"), ("report", "-o", "again.hec", "r.hec"),
                  ("verify", "--html", "-o", "r.json", "r.json")):
        for force in ((), ("-f",)):
            done = runs(*words, *force)
            assert done.returncode == 2 and "is what is read" in done.stderr, words
    assert before == {name: (runs.folder / name).read_bytes() for name in before}


@pytest.mark.parametrize("arguments", [
    ("--help",), ("--version",), ("run", "--help"), ("report", "r.hec"), ("report", "--json", "r.hec"), ("explain",),
    ("export", "--csv", "r.hec"), ("import", "-f", "-o", "i.hec", "train.json"), ("devices", "--sim", "h200"),
    ("sim", "--list"), ("gather", "-f", "r.hec"), ("__completion", "bash"), ("__man", "hec"),
])  # fmt: skip
def test_a_full_disk_is_no_success(runs, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run([runs.path, *arguments], cwd=runs.folder, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 74 and done.stderr == "hec: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("content,words", [
    ('{"traceEvents": []}', "nothing to import"), ("{}", "no traceEvents"), ("", "is empty"), ("words", "neither"),
])
def test_what_is_no_trace_is_damaged_data_as_elsewhere(runs, content, words):
    (runs.folder / "x.json").write_text(content)
    assert runs.write("import", "out.hec").returncode == 0
    done = runs("import", "-f", "-o", "out.hec", "x.json")
    assert done.returncode == 65 and words in done.stderr and done.stderr.count("\n") == 1
    assert runs.report("out.hec")["kernels"], "the earlier run is kept"
    assert runs("report", "x.json").returncode == 65


def test_a_trace_that_an_editor_gave_a_byte_order_mark(runs):
    (runs.folder / "bom.json").write_text("\ufeff" + kineto())
    assert runs("import", "-f", "-o", "out.hec", "bom.json").returncode == 0
    (runs.folder / "bom.json").write_bytes(b"\xef\xbb")
    assert runs("import", "-f", "-o", "out.hec", "bom.json").returncode == 65


def shifted(seconds, count=None):
    """The trace of kineto(), seconds later; or its first `count` events so, and the others as they are."""
    trace = json.loads(kineto())
    timed = [event for event in trace["traceEvents"] if "ts" in event]
    for event in timed[:count]:
        event["ts"] += seconds * 1e6
    return json.dumps(trace)


def test_traces_of_several_runs_are_not_one(runs):
    for name, seconds in (("hour.json", 3600), ("years.json", 3e8)):
        (runs.folder / name).write_text(shifted(seconds))
    assert runs("import", "-q", "-o", "hour.hec", "train.json", "hour.json").returncode == 0
    for order in (("train.json", "years.json"), ("years.json", "train.json")):
        done = runs("import", "-q", "-o", "years.hec", *order)
        assert done.returncode == 2 and "they are of several runs" in done.stderr and order[1] in done.stderr
    assert not (runs.folder / "years.hec").exists()


def test_a_trace_is_not_read_twice(runs):
    (runs.folder / "link.json").symlink_to("train.json")
    for again in ("train.json", "./train.json", "link.json"):
        done = runs("import", "-q", "-o", "twice.hec", "train.json", again)
        assert done.returncode == 2 and f"{again} is given twice" in done.stderr
    assert not (runs.folder / "twice.hec").exists()


def test_a_stray_event_makes_no_run_of_years(runs):
    whole, stray = runs.report("r.hec"), runs.report(runs.imported("stray", shifted(3e8, 1)))
    assert 0 < stray["run"]["seconds"] <= whole["run"]["seconds"]
    assert [e["text"] for e in stray["events"]] == ["left out: 1 event more than a day from the others of the trace"]
    (runs.folder / "half.json").write_text(shifted(3e8, 12))
    done = runs("import", "-q", "-o", "half.hec", "half.json")
    assert done.returncode == 65 and "more than a day from the others" in done.stderr


@pytest.mark.parametrize("arguments,sentence", [
    (("reprot", "r.hec"), 'there is no verb "reprot"; did you mean "report"?'),
    (("help", "exprt"), 'there is no verb "exprt"; did you mean "export"?'),
    (("calib",), 'did you mean "calibrate"?'),
    (("rum", "--", "true"), 'did you mean "run"?'),
    (("python", "train.py"), 'there is no verb "python"; see `hec --help`'),
    (("ls",), 'there is no verb "ls"; see `hec --help`'),
    (("run", "--trce=full", "--", "true"), "run: unknown option --trce; did you mean --trace?"),
    (("report", "--jsno", "r.hec"), "report: unknown option --jsno; did you mean --json?"),
    (("report", "--hooks", "r.hec"), "report: unknown option --hooks; see `hec report --help`"),
    (("-v",), "-v goes with a verb"),
    (("sim", "mixd"), "there is no case 'mixd'"),
])  # fmt: skip
def test_words_nearly_right(hec, arguments, sentence):
    done = hec(*arguments)
    assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1


def test_verbose_in_front_of_the_verb(runs):
    after = runs("import", "-q", "-f", "-o", "a.hec", "-v", "train.json")
    for option in ("-v", "--verbose"):
        before = runs(option, "import", "-q", "-f", "-o", "a.hec", "train.json")
        assert (before.returncode, before.stderr) == (0, after.stderr) and "events read" in before.stderr


def widest(text):
    return max(len(line) for line in text.splitlines() if "build/" not in line and "=" not in line)


def test_lines_are_as_wide_as_asked(runs):
    run = [runs.path, "report", "r.hec"]
    wide, narrow, plain = (
        subprocess.run(run, cwd=runs.folder, text=True, capture_output=True, env={**os.environ, **env}).stdout
        for env in ({"COLUMNS": "300"}, {"COLUMNS": "50"}, {"COLUMNS": ""})
    )
    assert widest(wide) > 80 >= widest(plain) > 50 >= widest(narrow)
    assert " ".join(wide.split()[:40]) in " ".join(plain.split())
    help_of = [runs("run", "--help", env={"COLUMNS": columns}).stdout for columns in ("60", "200", "", "x")]
    assert widest(help_of[0]) <= 60 and 80 < widest(help_of[1]) <= 200
    assert help_of[2] == help_of[3] and 60 < widest(help_of[2]) <= 80


def test_what_matters_is_not_cut(hec):
    """The steps' line of the short report ends with who found them."""
    done = hec("run", "-o", "s.hec", "--sim", "h200", "--trace=full", "--", hec.path, "sim", "data-starved", "-s", "1", "--marks")
    said = " ".join(done.stderr.split())
    assert "marked by the program" in said and "..." not in said and "\u2026" not in said, done.stderr


needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="no bash")


@needs_bash
@pytest.mark.parametrize("line,some,none", [
    ("hec re", ["report"], ["run"]),
    ("hec run --trace ", ["auto", "full", "graph", "off"], ["r.hec", "train.json"]),
    ("hec run -t f", ["full"], ["folder"]),
    ("hec run --trace=fu", ["full"], []),
    ("hec run --hooks ", ["on", "off"], ["always"]),
    ("hec report --color ", ["auto", "always", "never"], ["on"]),
    ("hec run --sim ", ["h200", "a100"], ["r.hec"]),
    ("hec run --units ", [], ["r.hec", "train.json"]),
    ("hec run -o ", ["r.hec", "train.json"], ["auto"]),
    ("hec run --tr", ["--trace", "--trace-memory"], ["--json"]),
    ("hec run --trace full -- tra", ["train.json"], []),
    ("hec run --trace full cat tra", ["train.json"], []),
    ("hec sim ", ["mixed", "data-starved"], ["r.hec"]),
    ("hec sim --device ", [], ["mixed", "r.hec"]),
    ("hec report ", ["r.hec", "folder"], ["train.json"]),
    ("hec import ", ["train.json"], []),
    ("hec devices ", [], ["r.hec", "train.json"]),
    ("hec explain co", ["copy", "comm"], ["folder"]),
    ("hec try --levers tf32,co", ["tf32,compile", "tf32,copy_ahead"], ["compile"]),
    ("hec ab -- cat --h", [], ["--help", "--hooks"]),
    ("hec sweep batch=1,2 --ob", ["--objective"], []),
    ("hec sweep batch=1,2 -- cat --ob", [], ["--objective"]),
    ("hec agent --web-config tra", ["train.json"], ["FILE"]),
])  # fmt: skip
def test_completion(runs, line, some, none):
    (runs.folder / "folder").mkdir()
    (runs.folder / "hec.bash").write_text(runs("__completion", "bash").stdout)
    words = line.replace("=", " = ").split(" ")
    script = f"""
        source ./hec.bash
        COMP_WORDS=({" ".join(repr(word) for word in words)})
        COMP_CWORD={len(words) - 1}
        _hec
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{os.path.dirname(runs.path)}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script], cwd=runs.folder, text=True, capture_output=True, env={**os.environ, "PATH": path})
    assert done.returncode == 0 and done.stderr == ""
    offered = set(done.stdout.split())
    assert set(some) <= offered and not set(none) & offered, offered


def test_help_is_of_the_verb(hec):
    """Nobody has to find out of what verb a sentence speaks."""
    verbs = [line.split()[0] for line in hec("--help").stdout.split("Verbs:")[1].split("Begin with")[0].splitlines() if line.strip()]
    for verb in verbs:
        options = " ".join(hec(verb, "--help").stdout.partition("\nOptions:\n")[2].split())
        named = [other for other in verbs if re.search(rf"(?<![-\w]){other}(: |, \w+: )", options)]
        assert not named, (verb, named)
    assert "play for" not in hec("try", "--help").stdout and "play for S seconds (default 5)" in hec("sim", "--help").stdout
    assert "127" in hec("__man", "sweep").stdout


def test_completion_of_zsh_has_the_values(hec):
    text = hec("__completion", "zsh").stdout
    assert ":MODE:(auto full graph off)" in text and ":WHEN:(auto always never)" in text and ":FILE:_files" in text


@pytest.mark.parametrize("verb", [("report", "-f", "--html"), ("export", "-f", "--perfetto"), ("export", "-f", "--csv")])
def test_a_pipe_that_nobody_reads_holds_nobody_up(runs, verb):
    pipe = runs.folder / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    done = runs(*verb, "-o", "pipe", "r.hec", timeout=HANGS_S)
    assert done.returncode not in (0, 124) and "pipe" in done.stderr and done.stderr.count("\n") == 1
    here = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # somebody reads, before cat has come so far
    with open(runs.folder / "got", "wb") as got, subprocess.Popen(["cat", pipe], stdout=got) as reader:
        assert runs(*verb, "-o", "pipe", "r.hec", timeout=HANGS_S).returncode == 0
        reader.wait(HANGS_S)
    os.close(here)
    assert (runs.folder / "got").stat().st_size > 100
