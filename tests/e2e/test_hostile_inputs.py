"""Traces and run files that somebody made to hurt: a row an attack. Each verb ends within its limits with a report, or with one sentence and
no file; nothing of them is a formula, markup or a control sequence in what is shown."""
import csv
import gzip
import io
import json
import os
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

RUNS_LONG = "(WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM r) SELECT count(*) FROM r)"
HEAVY = "length(hex(zeroblob(400000000)))"
FILES |= {
    "a generated column of a name that is read": "ALTER TABLE trace_name RENAME TO old; CREATE TABLE trace_name AS SELECT * FROM old; "
                                                 f"ALTER TABLE trace_name ADD COLUMN more AS ({HEAVY})",
    "a view in the place of a table": f"ALTER TABLE trace_name RENAME TO old; CREATE VIEW trace_name AS SELECT * FROM old WHERE {RUNS_LONG} > 0",
    "a view of everything": f"CREATE VIEW device_view AS SELECT {RUNS_LONG}",
    "a trigger that replaces a view's rows": f"CREATE VIEW v AS SELECT 1 AS a; CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN SELECT {HEAVY}; END",
    "a check of each row": f"CREATE TABLE checked (a CHECK ({HEAVY} > 0))",
    "a value by default": f"CREATE TABLE given (a DEFAULT ({HEAVY}))",
    "a table without rows' numbers": "CREATE TABLE other (a PRIMARY KEY, b) WITHOUT ROWID",
    "a thousand tables": "".join(f"CREATE TABLE t{i} (a);" for i in range(1000)),
    "a thousand columns": f"CREATE TABLE wide ({','.join(f'c{i}' for i in range(1000))})",
    "a name of a kilobyte": f"CREATE TABLE \"{'n' * 1000}\" (a)",
    "names with quotes": 'CREATE TABLE "a""b\'; DROP TABLE meta; --" ("x""; DROP TABLE device; --")',
    "a schema that lies": "PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql='CREATE TABLE device(x CHECK(" + "(" * 80 + "1" + ")" * 80 + "))' WHERE name='device'",
    "two tables in one place": "PRAGMA writable_schema=ON; UPDATE sqlite_master SET rootpage=(SELECT rootpage FROM sqlite_master WHERE name='meta') WHERE name='block'",
    "a table in no place": "PRAGMA writable_schema=ON; UPDATE sqlite_master SET rootpage=999999 WHERE name='block'",
}

# Of a program's database that is no run: what stands beside its tables, or in their place, and how many kernels are read; None: it is refused.
KERNELS = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER"
EXPORT = (f"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({KERNELS});"
          "INSERT INTO StringIds VALUES (3, 'k');"
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<50) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10*i, 10*i+5, 0, 1, 7, i, 0, 3 FROM n;")
INSTEAD = "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO old;"
EXPORTS = {
    "nothing": ("", 50),
    "a generated column that is read": (f"{INSTEAD} CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({KERNELS.replace('shortName INTEGER', f'shortName AS ({HEAVY})')});"
                                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start, end, deviceId, contextId, streamId, correlationId, globalPid FROM old", 50),
    "a stored column that is read": (f"{INSTEAD} CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({KERNELS.replace('shortName INTEGER', 'shortName AS (length(hex(start))) STORED')});"
                                     "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start, end, deviceId, contextId, streamId, correlationId, globalPid FROM old", 50),
    "a generated column beside": (f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN more AS ({HEAVY})", 50),
    "a view in the place of kernels": (f"{INSTEAD} CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM old WHERE {RUNS_LONG} > 0", None),
    "a view in the place of names": (f"ALTER TABLE StringIds RENAME TO olds; CREATE VIEW StringIds AS SELECT id, hex(zeroblob(400000000)) AS value FROM olds", 50),
    "a trigger": (f"CREATE TRIGGER t AFTER UPDATE ON StringIds BEGIN SELECT {HEAVY}; END", 50),
    "an index of an expression": ("CREATE INDEX i ON CUPTI_ACTIVITY_KIND_KERNEL (abs(start))", 50),
    "an index of a part": ("CREATE INDEX i ON CUPTI_ACTIVITY_KIND_KERNEL (start) WHERE length(hex(end)) > 99", 50),
    "an index in another order": ("CREATE INDEX i ON CUPTI_ACTIVITY_KIND_KERNEL (start COLLATE NOCASE DESC)", 50),
    "a virtual table of search": ("CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(start, \"end\", globalTid, text)", 50),
    "a virtual table of boxes": ("CREATE VIRTUAL TABLE NVTX_EVENTS USING rtree(id, start, \"end\")", 50),
    "a check of each row": (f"CREATE TABLE c (a CHECK ({HEAVY} > 0))", 50),
    "a column by default": (f"CREATE TABLE d (a DEFAULT ({HEAVY}))", 50),
    "no rows' numbers": (f"{INSTEAD} CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({KERNELS}, PRIMARY KEY (start)) WITHOUT ROWID;"
                         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM old", 50),
    "statistics that lie": ("CREATE INDEX i ON CUPTI_ACTIVITY_KIND_KERNEL (start); ANALYZE; UPDATE sqlite_stat1 SET stat='1 1'", 50),
    "a column of two quotes": ("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN \"\"\"; DROP TABLE StringIds; --\"", 50),
    "wrong kinds of values": ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (x'00', zeroblob(1000000), 'x', 1e308, -1, 9e18, 0.5, 'y')", 50),
    "many tables": ("".join(f"CREATE TABLE t{i} (a);" for i in range(2000)), 50),
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


@pytest.mark.parametrize("name", EXPORTS)
def test_databases_of_others(hec, name):
    """Nothing that they define is computed; they are read as they are, or refused in one sentence, and never written."""
    sql, kernels = EXPORTS[name]
    path = hec.folder / "t.sqlite"
    with sqlite3.connect(path) as file:
        file.executescript(EXPORT + sql)
    file.close()
    before = path.read_bytes()
    good = ends_well(hec("import", "-q", "-o", "t.hec", "t.sqlite", preexec_fn=small()))
    assert good == (kernels is not None) and path.read_bytes() == before
    assert sorted(entry.name for entry in hec.folder.iterdir()) == (["t.hec", "t.sqlite"] if good else ["t.sqlite"])
    if good:
        with sqlite3.connect(hec.folder / "t.hec") as file:
            assert file.execute("SELECT value FROM meta WHERE key='complete'").fetchone()
        file.close()
        assert hec.report("t.hec")["devices"][0]["timeline"]["kernels"] == kernels


@pytest.mark.parametrize("beside", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("what", ["a journal of another database", "noise", "a pipe", "a folder", "a link"])
def test_what_lies_beside_a_database(hec, beside, what):
    """It is neither played back into the file, nor waited for, nor followed, nor taken away."""
    path = hec.folder / "t.sqlite"
    with sqlite3.connect(path) as file:
        file.executescript(EXPORT)
    file.close()
    planted = hec.folder / f"t.sqlite{beside}"
    if what == "a journal of another database":  # a first page of zeros, to be put back
        planted.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + (1).to_bytes(4, "big") + b"\0\0\0\0" + (2).to_bytes(4, "big") + (512).to_bytes(4, "big") +
                            (4096).to_bytes(4, "big") + b"\0" * 484 + (1).to_bytes(4, "big") + b"\0" * 4100)
    elif what == "noise":
        planted.write_bytes(b"\x37\x7f\x06\x82" * 2000)
    elif what == "a pipe":
        os.mkfifo(planted)
    elif what == "a folder":
        planted.mkdir()
    else:
        (hec.folder / "far").write_text("mine")
        planted.symlink_to("far")
    def stands():  # when it was read last may be another second
        at = planted.lstat()
        return at.st_ino, at.st_mode, at.st_size, at.st_mtime_ns

    before, stood = path.read_bytes(), stands()
    ends_well(hec("import", "-q", "-o", "t.hec", "t.sqlite", preexec_fn=small()))
    assert path.read_bytes() == before and stands() == stood
    assert what != "a link" or (hec.folder / "far").read_text() == "mine"


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
