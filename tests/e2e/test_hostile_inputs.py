"""Traces and run files that somebody made to hurt: a row an attack. Each verb ends within its limits with a report, or with one sentence and
no file; nothing of them is a formula, markup or a control sequence in what is shown."""
import csv
import gzip
import io
import json
import re
import resource
import shutil
import sqlite3
import unicodedata

import pytest

from agent_common import SANITIZED

KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 3000, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": 1}}
EVENTS = [{**KERNEL, "ts": 10 * i, "args": {**KERNEL["args"], "correlation": i}} for i in range(100)]


def trace(*more, **top):
    return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}], "traceEvents": EVENTS + list(more), **top})


def event(**values):
    return trace({**KERNEL, **values})


WHOLE = trace()
SPACES = gzip.compress(b" " * (1 << 20))
TRACES = {
    "deep lists": '{"traceEvents":' + "[" * 300000,
    "deep objects": '{"a":' * 100000,
    "deep lists in sound ones": WHOLE[:-1] + ',"x":' + "[1," * 10000 + "1" + "]" * 10000 + "}",
    "a text of megabytes": WHOLE[:-1] + ',"x":"' + "a" * 5000000 + '"}',
    "a number of a megabyte": event().replace('"dur": 5', '"dur": ' + "9" * 1000000, 1),
    "no number": event().replace('"dur": 5', '"dur": NaN', 1),
    "more than there are numbers": event().replace('"dur": 5', '"dur": 1e999', 1),
    "a negative length": event(dur=-1e308),
    "from before all time": event(ts=-9.3e18, dur=1.8e19),
    "to after all time": event(ts=9.2e18, dur=9.2e18),
    "half a surrogate": event().replace('"k"', '"\\ud800"'),
    "bytes that are no text": event().encode().replace(b'"k"', b'"\xff\xfe"'),
    "a key three times": event().replace('"name": "k"', '"name": "k", "name": "j", "name": {"a":1}'),
    "many keys": WHOLE[:-1] + "," + ",".join(f'"k{i}":1' for i in range(50000)) + "}",
    "many streams": trace(*({**KERNEL, "tid": i, "args": {"device": i % 64, "stream": i, "correlation": i}} for i in range(8000))),
    "parents in a circle": trace(*({**KERNEL, "cat": "python_function", "args": {"Python id": i, "Python parent id": (i + 1) % 500}} for i in range(500))),
    "a device of no size": event(args={"device": 10 ** 18, "stream": -7, "correlation": -1}),
    "half a device": event(args={"device": 0.5, "stream": 1e300, "correlation": "x"}),
    "too many bytes": event(cat="gpu_memcpy", args={"device": 0, "stream": 7, "bytes": 10 ** 30}),
    "fewer than no bytes": event(cat="gpu_memcpy", args={"device": 0, "stream": 7, "bytes": -5}),
    "ranks that are none": trace(distributedInfo={"rank": 99999999999, "world_size": -3}),
    "properties that are none": trace(deviceProperties=[[[]]]),
    "beginnings without an end": json.dumps({"traceEvents": [{"ph": "B", "name": "f", "pid": 1, "tid": 1, "ts": i} for i in range(20000)]}),
    "nothing": "", "null": "null", "a text": '"x"', "zeros": "\0" * 10000,
    "members of blanks": SPACES * 50,
    "cut": gzip.compress(WHOLE.encode())[:-30],
    "a wrong sum": gzip.compress(WHOLE.encode())[:-8] + b"\0" * 8,
    "packed twice": gzip.compress(gzip.compress(WHOLE.encode())),
    "a header without an end": b"\x1f\x8b\x08\x08\0\0\0\0\0\0" + b"a" * 500000,
    "two bytes of a header": b"\x1f\x8b",
}

FILES = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM block; END",
    "a column that is computed": "ALTER TABLE device ADD COLUMN zz AS (length(zeroblob(900000000)))",
    "an index of an expression": "CREATE INDEX ii ON meta(length(hex(value)))",
    "an index of a part": "CREATE INDEX ii ON block(t0_us) WHERE length(hex(v)) > 3",
    "a virtual table": "CREATE VIRTUAL TABLE zz USING fts5(a)",
    "a view of nothing": "CREATE VIEW zz AS SELECT * FROM zz2",
    "statistics that lie": "ANALYZE; UPDATE sqlite_stat1 SET stat='99999999999999999 1'",
    "a log": "PRAGMA journal_mode=wal",
    "a format from the future": "PRAGMA user_version=-5",
    "free pages": "PRAGMA auto_vacuum=2; VACUUM",
    "a name of wrong bytes": "UPDATE trace_name SET text=x'ff00'",
    "a long command": "INSERT OR REPLACE INTO meta VALUES('command', hex(zeroblob(400000)))",
    "a run without an end": "INSERT OR REPLACE INTO meta VALUES('duration_ns', '9223372036854775807')",
    "a run that ended before": "INSERT OR REPLACE INTO meta VALUES('duration_ns', '-1')",
    "too many cores": "INSERT OR REPLACE INTO meta VALUES('cores', '1e308')",
    "a simulated machine that is none": "INSERT OR REPLACE INTO meta VALUES('simulated', 'h200; touch ran')",
}

NAMES = ["=1+1", "+1", "@x", "\t=1", "\r=1", "\u00a0=1", "\u3000=1", "\uff1d1", "'=1", '"=1",=2', "a\n=2", "\u200b=1", "\u202e=1", "\x1b]0;x\x07",
         "\u009b31m", "<script>alert(1)</script>", "</script><script>alert(1)</script>", "[x](javascript:alert(1))", "![x](http://e/x.png)", "@team",
         "<!--", "|a|b|", "`x`", "::error::x", "\\u003cscript\\u003e", "a" * 5000]


def small(seconds=20):
    def limit():
        if not SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    return limit


def ends_well(done):
    assert 0 <= done.returncode < 124 and "Sanitizer" not in done.stderr, (done.returncode, done.stderr[-500:])
    assert done.returncode == 0 or len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.returncode == 0


def read(hec, name):
    for words in (("report", "-v"), ("whatif",), ("gather", "-f", "-o", "copy.hec")):
        ends_well(hec(*words, name, preexec_fn=small()))


@pytest.mark.parametrize("name", TRACES)
def test_traces(hec, name):
    content = TRACES[name]
    (hec.folder / "t.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    if ends_well(hec("import", "-q", "-o", "t.hec", "t.json", preexec_fn=small())):
        ends_well(hec("report", "--json", "t.hec", preexec_fn=small()))
        ends_well(hec("whatif", "t.hec", preexec_fn=small()))
    else:
        assert [path.name for path in hec.folder.iterdir()] == ["t.json"]


def test_run_files(hec):
    hec.ok("run", "-q", "-o", "whole.hec", "--sim", "h200", "--", hec.path, "sim", "mixed", "--seconds", 1)
    for name, sql in FILES.items():
        shutil.copy(hec.folder / "whole.hec", hec.folder / "r.hec")
        with sqlite3.connect(hec.folder / "r.hec") as file:
            file.executescript(sql)
        file.close()
        read(hec, "r.hec")
        assert not (hec.folder / "ran").exists(), name


def test_names_are_only_names(hec):
    events = [{**KERNEL, "name": name, "ts": 100 * i} for i, name in enumerate(3 * NAMES)]
    events += [{**KERNEL, "cat": "user_annotation", "name": name, "ts": 100 * i, "dur": 90, "args": {}} for i, name in enumerate(NAMES)]
    hec.imported("n", json.loads(trace(*events)))
    shown = {words: hec.ok(*words, "n.hec").stdout for words in
             (("report", "-v"), ("report", "--md"), ("report", "--json"), ("report", "--html"), ("whatif",), ("export", "--csv", "-o", "-"))}
    for words, text in shown.items():
        controls = {hex(ord(c)) for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t\r"}
        assert not controls and ("\r" not in text or "--csv" in words), (words, controls)
        assert "<script>alert" not in text or "--html" not in words
    cells = [cell for row in csv.reader(io.StringIO(shown["export", "--csv", "-o", "-"])) for cell in row]
    assert not [cell for cell in cells if re.match(r"[\s\u00a0\u3000]*[=+@\uff1d-]", cell) and not re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", cell)]
    assert "](javascript" not in re.sub(r"`[^`]*`", "", shown["report", "--md"]) and "<script" not in re.sub(r"`[^`]*`", "", shown["report", "--md"])
