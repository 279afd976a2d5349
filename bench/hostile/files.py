"""Hostile files, one function each: small files that ask for much memory, disk or time. Each makes the file `path`, some of them
from `base`, a sound run file."""
import gzip
import json
import pathlib
import shutil
import sqlite3
import struct

from sqlite_pages import Pages, text_record, varint

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = 4096  # activities of a block, at most
KINDS = {}    # the functions by name


def hostile(function):
    KINDS[function.__name__] = function
    return function


# ---- run files ----

def column(least=0, plane=None):
    """A column of a block of activities: a constant, or one plane of BLOCK bytes."""
    value, zigzag = [], least << 1 if least >= 0 else (-least << 1) - 1
    while zigzag >= 0x80:
        value.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    value.append(zigzag)
    if plane is None:
        return b"\0" + bytes(value)
    return b"\1" + bytes(value) + bytes([len(plane)]) + plane


def first_zero_then(byte):
    """A frame of zstd: 0, then BLOCK - 1 times a byte (RFC 8878: a raw block and one of a run)."""
    return (b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", BLOCK - 256) + struct.pack("<I", 1 << 3)[:3] + b"\0" +
            struct.pack("<I", 1 | 1 << 1 | (BLOCK - 1) << 3)[:3] + bytes([byte]))


def block(duration=1, gap=1, detail=0, names=b"", amount=0):
    """BLOCK activities that all look the same, `gap` between them."""
    gaps = column(0, first_zero_then(gap)) if gap else column()
    return ((names or column()) + gaps + column(duration) + column() + b"\0" + column(amount) +
            column(detail) + 3 * column())


def open_run(base, path):
    shutil.copyfile(base, path)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=MEMORY")
    db.execute("PRAGMA synchronous=OFF")
    return db


def root_of(db, table):
    return db.execute("SELECT rootpage FROM sqlite_master WHERE name=?", [table]).fetchone()[0]


THREAD = "INSERT INTO track VALUES ({id}, 'thread', 7, NULL, NULL, 0, 7, NULL)"
STREAM = "INSERT INTO track VALUES ({id}, 'stream', 7, NULL, {device}, 0, {id}, NULL)"
ACTIVITIES = ("INSERT INTO activity_block (track, kind, t0_ns, t1_ns, n, total_ns, amount, data) "
              f"VALUES (?, ?, ?, ?, {BLOCK}, 1, 0.0, ?)")


def fill(db, kind, blocks, data, track=1, span=2 * BLOCK, every=None):
    every = span if every is None else every
    db.executemany(ACTIVITIES, ((track, kind, i * every, i * every + span, data) for i in range(blocks)))


def small_pages(base, path, table):
    """A run whose pages are the smallest there are, with nothing in the table: its root, and the pages."""
    db = open_run(base, path)
    db.execute(f"DELETE FROM {table}")
    db.execute("PRAGMA page_size=512")
    db.execute("VACUUM")
    root = root_of(db, table)
    db.close()
    return root, Pages(path)


def name_leaves(pages, count, length):
    """Names whose texts are one chain of overflow pages, so a few bytes each."""
    head = text_record(length, 1)
    payload = len(head) + length
    while pages.local_bytes(payload) > (pages.size - 12) * 32 // 255 - 23:
        length -= 1  # until the least stays in the leaf
        head = text_record(length, 1)
        payload = len(head) + length
    local = pages.local_bytes(payload)
    chain = struct.pack(">I", pages.overflow(b"n" * (payload - local)))
    cells = [varint(payload) + varint(i) + (head + b"n" * local)[:local] + chain for i in range(1, count + 1)]
    leaves = []
    while cells:
        before = len(cells)
        content = pages.leaf(cells)
        leaves.append((pages.add(content), count - len(cells)))
        assert len(cells) < before
    return leaves


@hostile
def names_of_one_chain(base, path):
    """70000 names of 32 KB in 3.5 MB."""
    root, pages = small_pages(base, path, "trace_name")
    pages.build(root, name_leaves(pages, 70000, 32000))
    pages.save()


def blocks_of(kind, blocks, data):
    def make(base, path):
        db = open_run(base, path)
        db.execute("BEGIN")
        db.execute("INSERT INTO trace_name VALUES (1, 'data')")
        db.execute(THREAD.format(id=1))
        for i in range(2, 18):
            db.execute(STREAM.format(id=i, device=i - 2))
        db.execute("INSERT INTO tracer (pid, mode, traced_ns, holder_ns, windows, records, dropped, lost, bad, self_ns, "
                   "first_ns, last_ns) VALUES (7, 'full', 1, 0, 1, 1, 0, 0, 0, 0, 0, 1000000000000)")
        fill(db, kind, blocks, data)
        db.execute("COMMIT")
        db.close()
    return make


@hostile
def steps(base, path):
    """40 million steps of a process on sixteen devices in 1 MB."""
    blocks_of("step", 10000, block(detail=2))(base, path)


@hostile
def windows(base, path):
    """40 million windows of a tracer in 1 MB."""
    blocks_of("window", 10000, block())(base, path)


@hostile
def data_phases(base, path):
    """40 million phases called "data" in 1 MB."""
    blocks_of("phase", 10000, block(names=column(1)))(base, path)


@hostile
def stacks(base, path):
    """40 million stack samples in 1 MB."""
    blocks_of("stack", 10000, block())(base, path)


@hostile
def calls(base, path):
    """40 million synchronisations that overlap, in 1 MB."""
    blocks_of("sync", 10000, block(duration=1 << 40))(base, path)


@hostile
def blocks_at_once(base, path):
    """8000 full blocks that all begin together: 33 million activities would have to wait."""
    db = open_run(base, path)
    db.execute("BEGIN")
    db.execute(STREAM.format(id=1, device=0))
    fill(db, "memset", 8000, block(), every=0)
    db.execute("COMMIT")
    db.close()


@hostile
def kernels_by_device(base, path):
    """4096 names of kernels on each of 64 devices, in 4 MB; their rows."""
    db = open_run(base, path)
    db.execute("BEGIN")
    db.executemany("INSERT INTO trace_name VALUES (?, ?)", ((i, f"k{i}") for i in range(1, 65536)))
    db.executemany("INSERT INTO kernel (id, name) VALUES (?, ?)", ((i, i) for i in range(1, 65536)))
    low = bytes(range(256)) * 16
    high = bytes(i // 256 for i in range(BLOCK))
    for device in range(64):
        db.execute(STREAM.format(id=device + 1, device=device))
    for k in range(15):
        names = (b"\2" + column(1 + k * BLOCK)[1:] + b"\0" + low + b"\0" + high)
        for device in range(64):
            fill(db, "kernel", 1, block(names=names), track=device + 1)
    db.execute("COMMIT")
    db.close()


@hostile
def event_tree(base, path):
    """An event table whose pages repeat, with long texts: they were sorted on disk."""
    db = open_run(base, path)
    db.execute("DELETE FROM event")
    db.executemany("INSERT INTO event (t_ns, kind, text) VALUES (?, 'note', ?)", ((i, "x" * 60000) for i in range(2)))
    root = root_of(db, "event")
    db.close()
    pages = Pages(path)
    pages.repeat(root, 3)
    pages.save()


@hostile
def event_rows(base, path):
    """200000 events with one text of 60 KB, in 3 MB."""
    root, pages = small_pages(base, path, "event")
    length = 60000
    while True:
        head_types = b"\0\x08\x15\0" + varint(13 + 2 * length)
        head = varint(len(head_types) + 1) + head_types + b"note"
        payload = len(head) + length
        if pages.local_bytes(payload) == (pages.size - 12) * 32 // 255 - 23:
            break
        length -= 1
    local = pages.local_bytes(payload)
    chain = struct.pack(">I", pages.overflow(b"n" * (payload - local)))
    cells = [varint(payload) + varint(i) + (head + b"n" * local)[:local] + chain for i in range(1, 60001)]
    total, leaves = len(cells), []
    while cells:
        content = pages.leaf(cells)
        leaves.append((pages.add(content), total - len(cells)))
    pages.build(root, leaves)
    pages.save()


def tree_of(table, fill_table):
    def make(base, path):
        db = open_run(base, path)
        db.execute(f"DELETE FROM {table}")
        fill_table(db)
        root = root_of(db, table)
        db.close()
        pages = Pages(path)
        pages.repeat(root, 6)
        pages.save()
    return make


@hostile
def track_tree(base, path):
    """A table of tracks whose pages repeat."""
    tree_of("track", lambda db: db.execute(THREAD.format(id=1)))(base, path)


@hostile
def block_tree(base, path):
    """A table of blocks of activities whose pages repeat."""
    def rows(db):
        db.execute(THREAD.format(id=1))
        fill(db, "range", 3, block())
    tree_of("activity_block", rows)(base, path)


@hostile
def tracer_tree(base, path):
    """A table of tracers whose pages repeat."""
    tree_of("tracer", lambda db: db.execute(
        "INSERT INTO tracer (pid, mode, traced_ns, holder_ns, windows, records, dropped, lost, bad, self_ns) "
        "VALUES (7, 'full', 1, 0, 1, 1, 0, 0, 0, 0)"))(base, path)


@hostile
def schema_tree(base, path):
    """The list of tables itself repeats, with one that may be there already."""
    db = open_run(base, path)
    db.execute("CREATE TABLE zz (x)")
    db.execute("PRAGMA writable_schema=ON")
    db.execute("UPDATE sqlite_master SET sql='CREATE TABLE IF NOT EXISTS zz (x)' WHERE name='zz'")
    db.close()
    pages = Pages(path)
    top = bytearray(pages.page(1))
    if top[100] == 13:  # one leaf: move it down, cells stay where they are
        leaf = bytearray(pages.size)
        count = struct.unpack(">H", top[103:105])[0]
        leaf[100:] = top[100:]
        leaf[:8] = top[100:108]
        leaf[8:8 + 2 * count] = top[108:108 + 2 * count]
        child = pages.add(bytes(leaf))
    else:
        child = struct.unpack(">I", top[108:112])[0]
    for _ in range(5):
        child = pages.add(pages.interior([(child, 1)] * pages.fan()))
    fan = pages.fan() - 12
    inner = pages.interior([(child, 1)] * fan)
    top[100:112] = inner[:12]
    top[112:112 + 2 * (fan - 1)] = inner[12:12 + 2 * (fan - 1)]
    cells = struct.unpack(">H", inner[5:7])[0]
    top[cells:] = inner[cells:]
    pages.put(1, bytes(top))
    pages.save()


@hostile
def leap(base, path):
    """Readings decades apart."""
    db = open_run(base, path)
    db.execute("BEGIN")
    db.execute("INSERT OR REPLACE INTO device VALUES (0, 'GPU-0', 'NVIDIA H200', NULL, NULL, NULL, 9, 0, 1, 700000, 700000, "
               "1, 0, 0, 1, 1, 1, 1, 'nvidia')")
    db.execute(STREAM.format(id=1, device=0))
    db.execute("INSERT OR REPLACE INTO series VALUES (9001, 'gpu_power', 0, 'mW', 'mean', 'nvml'), "
               "(9002, 'gpu_energy', 0, 'mJ', 'counter', 'nvml')")
    decades = 36 * 31557600 * 1000000
    for series, base_value in ((9001, 100000), (9002, 1)):
        for t in (0, 1000000, 2000000, decades // 2, decades - 1000000):
            db.execute("INSERT INTO block (series, t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r) "
                       f"VALUES (?, ?, ?, 2, {base_value + t // 1000 % 1000}, 0, '', 0, 0, '')", [series, t, t + 500000])
    for t in (0, 1000000000, decades * 500, decades * 999):
        fill(db, "memset", 1, block(), every=0)
        db.execute("UPDATE activity_block SET t0_ns=?, t1_ns=? WHERE id=(SELECT max(id) FROM activity_block)",
                   [t, t + 2 * BLOCK])
    db.execute("INSERT OR REPLACE INTO meta VALUES ('duration_ns', ?)", [str(decades * 1000)])
    db.execute("COMMIT")
    db.close()


# ---- exports of Nsight Systems ----

NSYS = ("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT, "
        "correlationId INT, globalPid INT, demangledName INT, shortName INT, gridX INT);"
        "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT);")


def open_export(path, page_size=4096):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA page_size={page_size}")
    db.executescript(NSYS)
    return db


@hostile
def export_tree(base, path):
    """A table of kernels whose pages repeat: 7e16 rows in 36 KB."""
    db = open_export(path)
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, 1, 1, 1, 1)",
                   ((i * 10 + 1, i * 10 + 5, i + 1) for i in range(60)))
    root = root_of(db, "CUPTI_ACTIVITY_KIND_KERNEL")
    db.close()
    pages = Pages(path)
    pages.repeat(root, 6)
    pages.save()


@hostile
def export_names(base, path):
    """100000 kernels, each with a name of 900 KB, in 6 MB."""
    db = open_export(path)
    db.execute("INSERT INTO StringIds VALUES (1, ?)", ["n" * 900000])
    db.execute("BEGIN")
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, 1, 1, 1, 1)",
                   ((i * 10 + 1, i * 10 + 5, i + 1) for i in range(100000)))
    db.execute("COMMIT")
    db.close()


@hostile
def export_schema_tree(base, path):
    """The list of tables of an export repeats."""
    export = path.with_suffix(".tmp")
    open_export(export).close()
    schema_tree(export, path)
    export.unlink()


# ---- Kineto traces ----

def kernel(i, correlation=None, name="k", stream=7):
    return (f'{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":{stream},"ts":{i + 1},"dur":1,"args":{{"device":0,'
            f'"stream":{stream},"correlation":{i + 1 if correlation is None else correlation}}}}}')


def write_trace(path, events, pack=None):
    opener = gzip.open(path, "wt", compresslevel=6) if pack else open(path, "w", encoding="ascii")
    with opener as file:
        file.write('{"traceEvents":[')
        for i, event in enumerate(events):
            file.write("," * (i > 0) + event)
        file.write("]}")


@hostile
def trace_correlations(base, path):
    """6 million kernels, each of its own launch, in 45 MB of gzip."""
    with open(path, "wb") as file:
        file.write(gzip.compress(b'{"traceEvents":[' + kernel(0).encode()))
        for part in range(60):
            events = "".join(f',{{"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":1,"args":{{"correlation":{i}}}}}'
                             for i in range(part * 100000, part * 100000 + 100000))
            file.write(gzip.compress(events.encode(), 1))
        file.write(gzip.compress(b"]}"))


@hostile
def trace_bomb(base, path):
    """3 MB of gzip: 12 million events."""
    body = gzip.compress((("," + kernel(1, 5)) * 400000).encode(), 9)
    with open(path, "wb") as file:
        file.write(gzip.compress(b'{"traceEvents":[' + kernel(0).encode()))
        for _ in range(30):
            file.write(body)
        file.write(gzip.compress(b"]}"))


@hostile
def trace_names(base, path):
    """20000 kernels, each with a name of its own of 16 KB."""
    write_trace(path, (kernel(i, name=f"{i}" + "n" * 16000) for i in range(20000)), "gz")


@hostile
def trace_steps(base, path):
    """A gzip file of 12 million steps."""
    step = '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":7,"tid":7,"ts":1,"dur":1}'
    body = gzip.compress((("," + step) * 400000).encode(), 9)
    with open(path, "wb") as file:
        file.write(gzip.compress(b'{"traceEvents":[' + kernel(0).encode()))
        for _ in range(30):
            file.write(body)
        file.write(gzip.compress(b"]}"))


@hostile
def trace_colliding(base, path):
    """150000 launches whose ids fall into one place of the table."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    ids = ((i * inverse) % (1 << 64) for i in range(1, 1 << 32))
    exact = (c for c in ids if c < 10**18)  # larger ones are read as doubles
    write_trace(path, (kernel(i, correlation) for i, correlation in zip(range(150000), exact)))


@hostile
def trace_empty_members(base, path):
    """Two empty members of gzip."""
    path.write_bytes(2 * gzip.compress(b""))


@hostile
def trace_open(base, path):
    """70000 events that begin and do not end."""
    begin = '{"ph":"B","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1}'
    write_trace(path, (begin for _ in range(70000)))


@hostile
def trace_tracks(base, path):
    """70000 streams."""
    write_trace(path, (kernel(i, stream=i) for i in range(70000)))


@hostile
def trace_deep(base, path):
    """Arrays inside of arrays."""
    path.write_text('{"traceEvents":[' + json.dumps("x") + "," + "[" * 5000000)
