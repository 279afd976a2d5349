"""A stand-in for HEC's collector, in Python: takes rings from a socket and reads their records. It is written from the
record ABI in src/base/ring.h, not from its code, so that the two check each other."""

import array
import math
import mmap
import os
import socket
import struct

MAGIC, ABI = 0x31474E4952434548, 2
NAME, STEP, UNITS, BEGIN, END, KNOB = 1, 16, 17, 18, 19, 20
STEP_FOUND, VALUE, INTERVAL, FRAME, STACK, FACT, RANGE = 21, 22, 23, 24, 25, 26, 27
OPTIMIZER, MODULE = 1, 2


class Found:
    """What the hooks of one process told."""

    def __init__(self, pid):
        self.pid = pid
        self.steps = []  # (samples or None, source)
        self.step_ns = []
        self.values = []  # (name, value)
        self.intervals = []  # (name, start_ns, end_ns)
        self.frames = {}  # id: (parent, file, function, line)
        self.stacks = []  # (tid, frame, period_us)
        self.facts = {}
        self.marks = 0  # of the program itself

    def samples(self):
        return [samples for samples, _ in self.steps]

    def named(self, name):
        return [entry for entry in self.intervals if entry[0] == name]

    def stack(self, frame):
        """[(file, function, line), ...], outermost first."""
        entries = []
        while frame:
            parent, *entry = self.frames[frame]
            entries.insert(0, tuple(entry))
            frame = parent
        return entries


class Listener:
    def __init__(self, folder):
        self.path = os.path.join(str(folder), "marks")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(self.path)
        self.socket.listen(16)
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()

    def _accept(self):
        """Every process that connected: (pid, ring)."""
        while True:
            try:
                connection, _ = self.socket.accept()
            except BlockingIOError:
                return
            with connection:
                data, rights, _, _ = connection.recvmsg(64, socket.CMSG_LEN(4))
            magic, abi, role, pid, _ = struct.unpack("<QIIII", data)
            assert (magic, abi, role) == (MAGIC, ABI, 1)
            fds = array.array("i")
            fds.frombytes(rights[0][2])
            with mmap.mmap(fds[0], 0) as ring:
                os.close(fds[0])
                yield pid, ring

    def rings(self):
        """The records of every process that connected: a list of (pid, [(kind, tid, name, value), ...])."""
        return [(pid, self._marks(ring)) for pid, ring in self._accept()]

    def found(self, full=False):
        """What the hooks of every process told, in the order in which they connected. full: the ring may be."""
        return [self._found(pid, ring, full) for pid, ring in self._accept()]

    @staticmethod
    def _records(ring, full=False):
        """(kind, tid, flags, t_ns, payload, names so far)"""
        magic, abi, header, size, capacity, _, _ = struct.unpack_from("<QIIIIII", ring)
        assert (magic, abi, header, size) == (MAGIC, ABI, 4096, 64)
        assert len(ring) == header + capacity * size
        (head,) = struct.unpack_from("<Q", ring, 64)
        (dropped,) = struct.unpack_from("<Q", ring, 192)
        assert full or dropped == 0
        assert head <= capacity
        names = {0: None}
        for i in range(head):
            at = header + i * size
            sequence, t_ns, tid, kind, flags, _ = struct.unpack_from("<QqIBBH", ring, at)
            assert sequence == i + 1
            payload = ring[at + 24 : at + 64]
            if kind == NAME:
                identity, piece, pieces, length = struct.unpack_from("<IBBH", payload)
                text = payload[8 : 8 + min(32, length - 32 * piece)]
                names[identity] = (names[identity] if piece else b"") + text
                assert piece < pieces
                continue
            yield kind, tid, flags, t_ns, payload, names

    @staticmethod
    def _marks(ring):
        records, last = [], 0
        for kind, tid, _, t_ns, payload, names in Listener._records(ring):
            assert t_ns >= last
            last = t_ns
            if kind == KNOB:
                name, text, kind_of_value, flags, integer, number = struct.unpack_from("<IIIIqd", payload)
                value = {1: integer, 2: number, 3: (names[text] or b"").decode()}[kind_of_value], flags
            elif kind == RANGE:
                name, kind_of_value = struct.unpack_from("<II", payload)
                value = struct.unpack_from("<qqq" if kind_of_value == 1 else "<ddd", payload, 8)
            else:
                name, _, value = struct.unpack_from("<IId", payload)
            records.append((kind, tid, names[name].decode() if name else None, value))
        return records

    @staticmethod
    def _found(pid, ring, full):
        found = Found(pid)
        for kind, tid, flags, t_ns, payload, names in Listener._records(ring, full):

            def text(identity):
                return names[identity].decode() if identity else ""

            if kind == STEP_FOUND:
                name, _, value = struct.unpack_from("<IId", payload)
                assert text(name) == "sample"
                found.steps.append((None if math.isnan(value) else value, flags))
                found.step_ns.append(t_ns)
            elif kind == VALUE:
                name, _, value = struct.unpack_from("<IId", payload)
                found.values.append((text(name), value))
            elif kind == INTERVAL:
                duration_ns, name, _ = struct.unpack_from("<qII", payload)
                found.intervals.append((text(name), t_ns, t_ns + duration_ns))
            elif kind == FRAME:
                identity, parent, file, function, line = struct.unpack_from("<IIIII", payload)
                assert identity not in found.frames and (parent == 0 or parent in found.frames)
                found.frames[identity] = (parent, text(file), text(function), line)
            elif kind == STACK:
                frame, period_us = struct.unpack_from("<II", payload)
                assert frame in found.frames and period_us > 0
                found.stacks.append((tid, frame, period_us))
            elif kind == FACT:
                key, value = struct.unpack_from("<II", payload)
                found.facts[text(key)] = text(value)
            else:
                found.marks += 1
        return found
