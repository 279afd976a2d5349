"""What any user of a node may do to its agent: a row an attack, as a function that does it once, alone (test_attacks.py) and beside all
others (test_soak.py). It runs as that user, in a process of its own, and returns what is to stay open until the attacker is killed."""
import array
import contextlib
import ctypes
import fcntl
import itertools
import mmap
import os
import pathlib
import re
import resource
import select
import signal
import socket
import struct
import time

MAGIC, MARKS, TRACE, REQUEST, REQUEST_MAGIC = 0x31474E4952434548, 1, 2, 3, 0x31514552434548
ABI = int(re.search(r"HEC_RING_ABI (\d+)", (pathlib.Path(__file__).parents[2] / "src/base/ring.h").read_text())[1])
SEAL, SHRINK, GROW, WRITE, FUTURE = 1, 2, 4, 8, 16
ATTACKS = {}
libc = ctypes.CDLL(None, use_errno=True)


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def connect(place):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(5)
    peer.connect(place.socket)
    return peer


def hello(role=TRACE, magic=MAGIC, pid=None, tag=7):
    return struct.pack("<QIIII", magic, ABI, role, pid or os.getpid(), tag)


def rights(*fds):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]


def send(place, *fds, message=None):
    peer = connect(place)
    with contextlib.suppress(OSError):
        peer.sendmsg([hello() if message is None else message], rights(*fds) if fds else [])
    return peer


def header(records=64, role=TRACE, size=64, first=4096, magic=MAGIC):
    return struct.pack("<QIIIIII", magic, ABI, first, size, records, role, os.getpid())


def memory(head=None, bytes=4096 + 64 * 64, seals=SEAL | SHRINK | GROW, flags=2):
    fd = os.memfd_create("hec-ring", flags)
    os.truncate(fd, bytes)
    os.pwrite(fd, header() if head is None else head, 0)
    fcntl.fcntl(fd, 1033, seals)  # F_ADD_SEALS
    return fd


def request(place, job=b"x", seconds=1.0, message=None, kind=socket.SOCK_SEQPACKET, close=False):
    mine, theirs = socket.socketpair(socket.AF_UNIX, kind)
    mine.send(struct.pack("<Q352sd", REQUEST_MAGIC, job, seconds) if message is None else message)
    peer = send(place, theirs.fileno(), message=hello(REQUEST))
    theirs.close()
    if close:
        mine.close()
    return peer, mine


# ---- descriptors ----

@attack
def seals_missing(place):
    return [send(place, memory(seals=seals)) for seals in (0, SEAL, SHRINK | GROW, SEAL | GROW, SEAL | SHRINK)]


@attack
def seals_that_forbid_writing(place):
    return [send(place, memory(seals=SEAL | SHRINK | GROW | seal)) for seal in (WRITE, FUTURE)]


@attack
def opened_for_reading(place):
    fd = memory()
    return [send(place, os.open(f"/proc/self/fd/{fd}", how)) for how in (os.O_RDONLY, os.O_WRONLY, os.O_PATH)]


@attack
def headers_that_lie(place):
    heads = [header(records=n) for n in (0, 1, 3, 63, 65, 2 ** 31, 2 ** 32 - 1)] + [header(size=n) for n in (0, 1, 63, 65, 2 ** 32 - 1)]
    heads += [header(first=n) for n in (0, 1, 64, 2 ** 31, 2 ** 32 - 1)] + [header(role=n) for n in (0, 4, 2 ** 32 - 1)] + [b"", b"\xff" * 64]
    return [send(place, memory(head)) for head in heads]


@attack
def sizes_that_lie(place):
    return [send(place, memory(header(n), size)) for n, size in ((64, 0), (64, 1), (64, 4095), (2 ** 30, 2 ** 46), (64, 2 ** 46))]


@attack
def large_pages_with_holes(place):
    try:
        fd = os.memfd_create("x", 2 | 4)  # MFD_HUGETLB
        os.truncate(fd, 2 << 20)
        with mmap.mmap(fd, 2 << 20) as page:
            page[:36] = header()
    except (OSError, ValueError):
        return []  # the machine has none
    fcntl.fcntl(fd, 1033, SEAL | SHRINK | GROW)
    held = [send(place, fd)]
    libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(2 << 20))  # PUNCH_HOLE | KEEP_SIZE
    return held


@attack
def punched_while_it_is_read(place):
    fd = memory(bytes=4096 + 64 * 16384, head=header(16384))
    held = [send(place, fd)]
    for _ in range(20):
        libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(1 << 20))
        os.pwrite(fd, header(16384), 0)
    return held


@attack
def kinds_of_descriptors(place):
    epoll, (read, write) = select.epoll(), os.pipe()
    epoll.register(read)
    kinds = [epoll.fileno(), read, write, os.open("/", os.O_RDONLY), os.open("/proc/self/mem", os.O_RDONLY), os.open("/proc/self/fd", os.O_RDONLY),
             os.open("/dev/zero", os.O_RDWR), os.open("/dev/full", os.O_RDWR), os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY),
             os.open("/proc/self/exe", os.O_RDONLY), os.open(place.file, os.O_RDWR | os.O_CREAT, 0o600), libc.inotify_init(), libc.eventfd(0, 0),
             libc.timerfd_create(1, 0), libc.syscall(434, os.getpid(), 0), libc.syscall(447, 0)]  # pidfd_open, memfd_secret
    os.pwrite(kinds[-6], header(), 0)
    return [send(place, fd) for fd in kinds if fd >= 0]


@attack
def a_fifo_without_a_writer(place):
    with contextlib.suppress(FileExistsError):
        os.mkfifo(place.file + ".fifo")
    return [send(place, os.open(place.file + ".fifo", os.O_RDONLY | os.O_NONBLOCK))]


@attack
def sockets_that_linger(place):
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    peer = listener.accept()[0]
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            client.send(b"x" * 65536)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    held = [send(place, client.fileno()), peer, listener]
    client.close()
    return held


@attack
def a_socket_in_its_own_queue(place):
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.sendmsg([b"x"], rights(mine.fileno(), theirs.fileno()))
    return [send(place, mine.fileno()), send(place, theirs.fileno(), message=hello(REQUEST))]


@attack
def the_connection_itself(place):
    held = []
    for role in (TRACE, REQUEST):
        peer, other = connect(place), connect(place)
        peer.sendmsg([hello(role)], rights(peer.fileno(), ))
        other.sendmsg([hello(role)], rights(peer.fileno()))
        held += [peer, other]
    return held


@attack
def many_in_one_message(place):
    fd = memory()
    return [send(place, *[fd] * count) for count in (2, 3, 16, 253)] + [send(place)]


@attack
def sockets_of_other_families(place):
    kinds = [(socket.AF_NETLINK, socket.SOCK_RAW, 0), (38, socket.SOCK_SEQPACKET, 0), (40, socket.SOCK_STREAM, 0), (socket.AF_INET6, socket.SOCK_STREAM, 0),
             (socket.AF_INET, socket.SOCK_DGRAM, 0), (socket.AF_UNIX, socket.SOCK_DGRAM, 0), (socket.AF_INET, socket.SOCK_STREAM, 262)]  # AF_ALG, AF_VSOCK, MPTCP
    held = []
    for kind in kinds:
        with contextlib.suppress(OSError):
            held.append(socket.socket(*kind))
    return [held, [send(place, one.fileno(), message=hello(role)) for one in held for role in (TRACE, REQUEST)]]


@attack
def sockets_in_a_chain(place):
    """Each lies in the queue of the next: closing the last one closes all."""
    last = memory()
    for _ in range(200):
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.sendmsg([b"x"], rights(last if isinstance(last, int) else last.fileno()))
        last = theirs
        mine.close()
    return [send(place, last.fileno()), send(place, last.fileno(), message=hello(REQUEST))]


@attack
def terminals_pipes_and_leases(place):
    master, slave = os.openpty()
    os.write(slave, b"x" * 2000)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 65536)
    file = os.open(place.file + ".lease", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    with contextlib.suppress(OSError):
        fcntl.fcntl(file, 1024, fcntl.F_RDLCK)  # F_SETLEASE
    return [[send(place, fd) for fd in (master, slave, read, write, file)], [send(place, fd, message=hello(REQUEST)) for fd in (master, read, file)]]


# ---- what is said ----

@attack
def words_that_are_none(place):
    fd = memory()
    for message in (b"x", b"x" * 23, hello() + b"x", b"\0" * 24, b"x" * 60000, hello(99), hello(magic=1), hello(MARKS), hello(pid=1), hello(tag=2 ** 32 - 1)):
        send(place, fd, message=message).close()
    return []


@attack
def said_twice(place):
    peer, fd = send(place, memory()), memory()
    for _ in range(50):
        with contextlib.suppress(OSError):
            peer.sendmsg([hello()], rights(fd), socket.MSG_DONTWAIT)
    return [peer]


@attack
def silence(place):
    held = [connect(place) for _ in range(50)]
    held[0].shutdown(socket.SHUT_WR)
    held[1].shutdown(socket.SHUT_RDWR)
    return held


@attack
def gone_at_once(place):
    fd = memory()
    for _ in range(100):
        with contextlib.suppress(OSError):
            send(place, fd).close()
    return []


@attack
def requests_that_are_none(place):
    nan, inf = float("nan"), float("inf")
    held = [request(place, seconds=seconds) for seconds in (nan, inf, -inf, -1.0, 0.0, 1e300, 300.1)]
    held += [request(place, job=job) for job in (b"j" * 352, b"\x1b[31m\n", b"%s%n", b"-1", b"1", b"99999999999999999999", b"../../x")]
    held += [request(place, message=message) for message in (b"x", b"\0" * 368, b"x" * 60000)]
    held += [request(place, kind=kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    return held


@attack
def nobody_takes_the_answer(place):
    held = [request(place, b"", close=True) for _ in range(20)]
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.send(struct.pack("<Q352sd", REQUEST_MAGIC, b"", 1.0))
    theirs.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            theirs.send(b"x" * 4096)
    return [held, mine, send(place, theirs.fileno(), message=hello(REQUEST))]


@attack
def words_and_descriptors_apart(place):
    fd, held = memory(), []
    for parts in (([b""], [fd]), ([hello()[:12]], [fd]), ([hello(), hello()], [fd]), ([hello()], [])):
        peer = connect(place)
        with contextlib.suppress(OSError):
            peer.sendmsg(parts[0], rights(*parts[1]) if parts[1] else [])
            peer.sendmsg([hello()], rights(fd))
        held.append(peer)
    return held


@attack
def half_a_request(place):
    held = []
    for late in (b"", b"x", struct.pack("<Q352sd", REQUEST_MAGIC, b"", 1.0)):
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        held += [send(place, theirs.fileno(), message=hello(REQUEST)), mine]
        theirs.close()
        time.sleep(0.01)
        with contextlib.suppress(OSError):
            mine.send(late)
    return held


# ---- more than a share ----

@attack
def ring_after_ring_of_one_process(place):
    fd, held = memory(), []
    for number in range(300):
        with contextlib.suppress(OSError):
            held.append(send(place, fd, message=hello(tag=1000 + number % 7)))
    return held


@attack
def jobs_of_others_by_their_tags(place):
    held = [send(place, memory(), message=hello(tag=tag)) for tag in range(20, 40)]
    return held + [request(place, b"run-%d-%d" % (uid, tag), 300.0) for uid in (0, 7002) for tag in (20, 21, 22)]


@attack
def lists_in_a_loop(place):
    return [request(place, b"", close=number % 2 == 0) for number in range(100)]


@attack
def asks_for_a_window_and_goes(place):
    held = [send(place, memory(), message=hello(tag=3))]
    for _ in range(20):
        peer, mine = request(place, b"run-%d-3" % os.getuid(), 60.0, close=True)
        peer.close()
    return held


@attack
def one_connection_of_many_processes(place):
    peer = send(place, memory())
    for _ in range(30):
        if os.fork() == 0:
            signal.alarm(5)
            signal.pause()
    return [peer]


@attack
def a_job_of_many_processes_of_others(place):
    """Its connections are handed from process to process, which end."""
    held = []
    for _ in range(20):
        mine, theirs = socket.socketpair()
        if os.fork() == 0:
            with contextlib.suppress(OSError):
                peer = send(place, memory())
                theirs.sendmsg([b"x"], rights(peer.fileno()))
            os._exit(0)
        theirs.close()  # of one who was refused comes nothing
        with contextlib.suppress(OSError):
            held.append(mine.recvmsg(1, 64))
        os.wait()
    return held


@attack
def many_jobs(place):
    held = []
    for tag in range(1, 65):
        fd = memory()
        held.append(send(place, fd, message=hello(tag=tag)))
        os.close(fd)
    return held


@attack
def windows_for_minutes(place):
    held = [send(place, memory(), message=hello(tag=tag)) for tag in range(100, 104)]
    time.sleep(0.05)
    return held + [request(place, b"run-%d-%d" % (os.getuid(), tag), 300.0) for tag in range(100, 104)]


@attack
def processes_that_come_and_go(place):
    for _ in range(40):
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(OSError):
                send(place, memory())
            os._exit(0)
        os.waitpid(pid, 0)
    return []


@attack
def names_of_processes(place):
    for name in (b"\x1b]0;x\x07", b"a\nb c) S 1", b"\xff\xfe", b'"}\n# TYPE', b"((((((((((((((("):
        if os.fork() == 0:
            signal.alarm(5)
            libc.prctl(15, name, 0, 0, 0)
            with contextlib.suppress(OSError):
                send(place, memory())
            signal.pause()
    return []


@attack
def environments_that_lie(place):
    if os.fork() == 0:
        connection = send(place, memory())
        os.set_inheritable(connection.fileno(), True)
        huge = {f"V{n}": "x" * 1000 for n in range(500)}
        os.execve("/bin/sleep", ["sleep", "5"], {"SLURM_JOB_ID": "1\x1b[31m\"}\n9", "HEC_JOB": "\n" * 500, "KUBERNETES_PORT": "\udcff", **huge})
    return []


# ---- over HTTP ----

NEW_USER, NEW_MOUNT, PRIVATE = 0x10000000, 0x20000, 1 << 18 | 1 << 14
FUSE_GETATTR, FUSE_OPEN, FUSE_INIT = 3, 14, 26


def serve_but_never_close(device):
    """A file system of one file, for who opens it; a close waits for ever."""
    answers = {FUSE_INIT: struct.pack("<IIIIHHIIHH28x", 7, 31, 0, 0, 12, 10, 4096, 1, 0, 0), FUSE_OPEN: bytes(16),
               FUSE_GETATTR: struct.pack("<QIIQQQQQQIIIIIIIIII", 1, 0, 0, 1, 1 << 20, 2048, 0, 0, 0, 0, 0, 0, 0o100666, 1, os.getuid(), os.getgid(), 0, 4096, 0)}
    with contextlib.suppress(OSError):  # it is unmounted
        while True:
            _, what, unique = struct.unpack_from("<IIQ", os.read(device, 1 << 20))
            if what in answers:
                os.write(device, struct.pack("<IiQ", 16 + len(answers[what]), 0, unique) + answers[what])


@attack
def a_file_of_a_user_who_answers_for_it(place):
    """A user may mount a file system in a namespace of his own, and say when a close of its file returns: never. Not even a kill ends
    that, but the end of who serves it."""
    uid, gid, path = os.getuid(), os.getgid(), f"{place.file}-{os.getpid()}"
    ready, told = os.pipe()
    if os.fork():  # which ends with what it gave away
        os.close(told)
        assert os.read(ready, 1), "no file system"
        return []
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    assert libc.unshare(NEW_USER | NEW_MOUNT) == 0
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    device = os.open(f"{place.file}.fuse", os.O_RDWR)
    libc.mount(None, b"/", None, PRIVATE, None)
    assert libc.mount(b"x", path.encode(), b"fuse", 6, f"fd={device},rootmode=100666,user_id={uid},group_id={gid}".encode()) == 0
    if os.fork() == 0:  # who has the device has no file of it: that one could not end
        serve_but_never_close(device)
        os._exit(0)
    os.close(device)
    os.stat(path)  # whose it is
    held = [send(place, os.open(path, os.O_RDWR)) for _ in range(40)]
    held.append(request(place)[0])
    os.write(told, b".")
    signal.pause()


def web(place, text, wait=False):
    peer = socket.create_connection(("127.0.0.1", place.port), timeout=5)
    with contextlib.suppress(OSError):
        peer.sendall(text)
        if wait:
            peer.recv(65536)
    return peer


@attack
def heads_that_never_end(place):
    return [web(place, b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * n) for n in (0, 1, 100)] + \
           [web(place, b"GET /" + b"a" * 100000), web(place, b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nx")]


@attack
def requests_of_no_page(place):
    for text in (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00" * 50, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * 1000,
                 b"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"\r\n" * 1000,
                 b"GET %00%0a%0d\x1b[31m HTTP/9.9\r\n\r\n", b"GET /metrics?" + b"a=b&" * 5000 + b" HTTP/1.1\r\n\r\n",
                 b"TRACE / HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n", b"GET /live.json HTTP/1.1\r\nHost: x\r\nRange: bytes=0-,0-,0-\r\n\r\n"):
        web(place, text).close()
    return []


@attack
def pages_that_nobody_reads(place):
    return [web(place, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50) for _ in range(4)]


@attack
def wrong_passwords(place):
    for _ in range(30):
        web(place, b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp5\r\nConnection: close\r\n\r\n").close()
    return []


def job(place):
    """What a user does who attacks nobody: one ring of one process."""
    return [send(place, memory(), message=hello(tag=place.tag))]


def start(name, place, uid, again=None, group=None):
    """The attacker's process, which writes a line to place.done after its first time. again: so many seconds between one time and the
    next, else there is no other. The parent must be root. group: the file that takes it into a control group."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.nice(19)
        if group:
            with open(group, "w", encoding="utf-8") as file:
                file.write("0")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.setresgid(uid, uid, uid)
        os.setgroups([])
        os.setresuid(uid, uid, uid)
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its own files in /proc are its user's
        held = []
        for time_number in itertools.count():
            try:
                held = [held[-1:], ATTACKS.get(name, job)(place)]
                said = "done"
            except OSError as error:  # it has been shut out
                said = repr(error)
            if time_number == 0:
                os.write(place.done, f"{name}: {said}\n".encode())
            if again is None:
                signal.pause()
            time.sleep(again)
            with contextlib.suppress(ChildProcessError):  # those that have ended are not kept
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    finally:
        os._exit(1)
