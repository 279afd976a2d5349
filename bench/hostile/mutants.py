"""Sound files, changed at random: run files, traces and exports, from what lies in the tree. The same seed, the same mutants."""
import gzip
import random
import sqlite3
import struct

import files

NUMBERS = [0, 1, -1, 2, 63, 64, 4095, 4096, 4097, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 59, 1 << 60,
           (1 << 63) - 1, -(1 << 63), -(1 << 59), 0.5, 1e300, -1e300]


def flip(r, b):
    for _ in range(r.choice([1, 1, 2, 4, 16, 64])):
        b[r.randrange(len(b))] ^= 1 << r.randrange(8)


def overwrite(r, b):
    at = r.randrange(len(b))
    for i in range(at, min(len(b), at + r.choice([1, 2, 4, 8, 64, 512]))):
        b[i] = r.choice([0, 0x7F, 0x80, 0xFF, r.randrange(256)])


def cut(r, b):
    del b[r.randrange(1, len(b)):]


def repeat(r, b):
    at = r.randrange(len(b))
    piece = bytes(b[at:at + r.choice([1, 16, 200, 4096, 20000])])
    b[at:at] = piece * r.choice([1, 2, 50, 400])


def drop(r, b):
    at = r.randrange(len(b))
    del b[at:at + r.choice([1, 3, 40, 1000])]
    if not b:
        b += b"{"


def copy_page(r, b):
    pages = len(b) // 4096
    to, of = r.randrange(pages), r.randrange(pages)
    keep = 100 if 0 in (to, of) else 0
    b[to * 4096 + keep:to * 4096 + 4096] = b[of * 4096 + keep:of * 4096 + 4096]


def point_elsewhere(r, b):
    """A child, the last child or an overflow page is another page."""
    pages = len(b) // 4096
    for _ in range(r.choice([1, 3, 20])):
        page = r.randrange(pages)
        start = page * 4096 + (100 if page == 0 else 0)
        kind, cells = b[start], struct.unpack(">H", b[start + 3:start + 5])[0]
        head = 12 if kind in (2, 5) else 8
        if not cells or cells > 1000:
            continue
        where = start + head + 2 * r.randrange(cells)
        at = page * 4096 + struct.unpack(">H", b[where:where + 2])[0]
        if kind in (2, 5) and r.random() < 0.3:
            at = start + 8
        if at + 4 <= len(b):
            b[at:at + 4] = struct.pack(">I", r.randrange(1, pages + 2))


BYTES = [flip, overwrite, cut, repeat, drop]
PAGES = [flip, overwrite, cut, copy_page, copy_page, point_elsewhere, point_elsewhere]


def change_rows(r, path):
    """Values that no writer makes, rows twice, rows gone."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=MEMORY")
    db.execute("PRAGMA synchronous=OFF")
    db.execute("BEGIN")
    tables = [t for t, in db.execute("SELECT name FROM sqlite_master WHERE type='table' AND rootpage>0")]
    tables = [t for t in tables if db.execute(f'SELECT 1 FROM "{t}" LIMIT 1').fetchone()]
    for _ in range(r.choice([1, 1, 2, 5])):
        table = r.choice(tables)
        columns = [c[1] for c in db.execute(f'PRAGMA table_info("{table}")')]
        column = r.choice(columns)
        value = r.choice([r.choice(NUMBERS), r.choice(NUMBERS), "x" * r.choice([1, 64, 300, 40000]), None, "", b"\0\1"])
        where = r.choice(["", f'WHERE "{column}" IN (SELECT "{column}" FROM "{table}" ORDER BY random() LIMIT 3)'])
        try:
            how = r.randrange(5)
            if how < 3:
                db.execute(f'UPDATE OR IGNORE "{table}" SET "{column}"=? {where}', [value])
            elif how == 3:
                db.execute(f'DELETE FROM "{table}" WHERE rowid IN (SELECT rowid FROM "{table}" LIMIT ?)', [r.randrange(9)])
            else:
                rest = ", ".join(f'"{c}"' for c in columns)
                for _ in range(r.choice([1, 6])):
                    db.execute(f'INSERT OR IGNORE INTO "{table}" SELECT {rest} FROM "{table}"')
        except (sqlite3.Error, OverflowError):
            pass  # a table without row ids, or a value that the column cannot have
    db.execute("COMMIT")
    db.close()


def change_numbers(r, b):
    """Numbers of a trace, in their places."""
    text = b.decode("utf-8", "replace")
    places = [i for i, c in enumerate(text) if c.isdigit() and not text[i - 1].isdigit()]
    for at in sorted(r.sample(places, min(len(places), r.choice([1, 5, 50]))), reverse=True):
        end = at
        while end < len(text) and text[end].isdigit():
            end += 1
        text = text[:at] + str(r.choice(NUMBERS)) + text[end:]
    b[:] = text.encode()


def sound_export(path):
    db = files.open_export(path)
    db.executescript("""CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
            globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, syncType INT, correlationId INT, globalPid INT);
        CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, totalMemory INT, computeMajor INT, computeMinor INT, uuid TEXT);
        CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);
        CREATE TABLE PROCESSES (globalPid INT, name TEXT);
        INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 150000000000, 9, 0, 'GPU-1');
        INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
        INSERT INTO PROCESSES VALUES (117440512, 'python');
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'relu'), (3, 'cudaLaunchKernel'), (4, 'cudaDeviceSynchronize');""")
    db.execute("BEGIN")
    for i in range(400):
        t = 1000 + i * 5000
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 117440519, ?, 3)", [t, t + 1500, i + 1])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, 117440512, ?, ?, 8)",
                   [t + 2000, t + 4000 + i % 7, i + 1, 1 + i % 2, 1 + i % 2])
        if i % 20 == 0:
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 1, 7, ?, 117440512, 4096, 1, 1, 2)",
                       [t + 4300, t + 4800, 10000 + i])
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?, ?, 3, ?, 117440512)", [t, t + 90, 20000 + i])
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, 117440519)", [t, t + 99000, f"step {i // 20}"])
    db.execute("COMMIT")
    db.close()


def with_activities(base, path):
    """A run file with a little of everything in its timeline."""
    db = files.open_run(base, path)
    db.execute("BEGIN")
    for i, name in enumerate(("gemm", "data", "loss", "train.py", "sample"), 1):
        db.execute("INSERT OR IGNORE INTO trace_name VALUES (?, ?)", [i, name])
    db.execute(files.THREAD.format(id=1))
    for i in (2, 3):
        db.execute(files.STREAM.format(id=i, device=i - 2))
        db.execute("INSERT OR REPLACE INTO device VALUES (?, ?, 'NVIDIA H200', NULL, NULL, NULL, 9, 0, 1, 700000, 700000, "
                   "1, 0, 0, 1, 1, 1, 1, 'nvidia')", [i - 2, f"GPU-{i}"])
    db.execute("INSERT OR IGNORE INTO kernel (id, name) VALUES (1, 1), (2, 1)")
    db.execute("INSERT OR IGNORE INTO frame VALUES (1, 0, 4, 4, 5), (2, 1, 4, 4, 6)")
    db.execute("INSERT INTO tracer (pid, mode, traced_ns, holder_ns, windows, records, dropped, lost, bad, self_ns, first_ns, "
               "last_ns) VALUES (7, 'full', 1, 0, 1, 1, 0, 0, 0, 0, 0, 1000000000000)")
    for kind in ("step", "phase", "stack", "value", "api", "sync", "range", "window", "operator", "burst"):
        name = files.column(2 if kind in ("stack", "phase") else 1)
        files.fill(db, kind, 2, files.block(duration=200000, gap=200, detail=2 * (kind == "step"), names=name), span=1 << 30)
    for track in (2, 3):
        for kind in ("kernel", "copy", "memset"):
            files.fill(db, kind, 2, files.block(duration=150000, gap=250, names=files.column(int(kind == "kernel"))), track, 1 << 30)
    db.execute("INSERT OR REPLACE INTO activity_total VALUES ('phase', 2, 8192, 1000), ('kernel', 1, 8192, 1000)")
    for series, (metric, unit, subject, base_value) in enumerate((("gpu_power", "mW", 0, 300000), ("gpu_energy", "mJ", 0, 0),
                                                                  ("gpu_util", "permille", 0, 500), ("gpu_power", "mW", 1, 90000)),
                                                                 9001):
        db.execute("INSERT INTO series VALUES (?, ?, ?, ?, 'mean', 'nvml')", [series, metric, subject, unit])
        for i in range(4):
            db.execute("INSERT INTO block (series, t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r) "
                       "VALUES (?, ?, ?, 20, ?, 1, ?, 0, 0, '')",
                       [series, i * 1000000, i * 1000000 + 950000, base_value + 400 * i, "#$%&'()*+,-./01234:;"[:20]])
    db.execute("INSERT OR REPLACE INTO meta VALUES ('duration_ns', '4000000000')")
    db.execute("COMMIT")
    db.close()


def seeds(base, folder):
    """(name, bytes) of sound files."""
    run, export = folder / "seed.hec", folder / "seed.sqlite"
    with_activities(base, run)
    sound_export(export)
    traces = sorted((files.ROOT / "tests" / "data" / "kineto").glob("*.json.gz"))
    found = [("run.hec", base.read_bytes()), ("run.hec", run.read_bytes()), ("run.hec", run.read_bytes()),
             ("export.sqlite", export.read_bytes())]
    found += [("trace.json", gzip.decompress(p.read_bytes())) for p in traces if p.stat().st_size < 10000]
    found += [("trace.json.gz", p.read_bytes()) for p in traces]
    run.unlink()
    export.unlink()
    return found


def mutant(r, name, content, folder):
    if name.endswith(("hec", "sqlite")):
        if r.random() < 0.65:
            path = folder / "rows"
            path.write_bytes(content)
            change_rows(r, path)
            content = path.read_bytes()
            path.unlink()
            if r.random() < 0.9:
                return content
        b = bytearray(content)
        for _ in range(r.choice([1, 1, 2, 4])):
            r.choice(PAGES)(r, b)
            if len(b) < 8192:
                break
        return bytes(b)
    packed = name.endswith("gz") and r.random() < 0.7
    b = bytearray(gzip.decompress(content) if packed else content)
    plain = packed or name.endswith("json")
    for _ in range(r.choice([1, 1, 2, 4])):
        if plain and r.random() < 0.6:
            change_numbers(r, b)
        else:
            r.choice(BYTES)(r, b)
    return gzip.compress(bytes(b), 1, mtime=0) if packed else bytes(b)


def mutants(number, seed, base, folder):
    """(name, bytes) of so many files."""
    sound = seeds(base, folder)
    for i in range(number):
        r = random.Random(f"{seed} {i}")
        name, content = sound[i % len(sound)]
        yield name, mutant(r, name, content, folder)
