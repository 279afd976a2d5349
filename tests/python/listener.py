"""A stand-in for HEC's collector, in Python: takes rings from a socket and reads their records. It is written from the
record ABI in src/base/ring.h, not from its code, so that the two check each other."""

import array
import mmap
import os
import socket
import struct

MAGIC = 0x31474E4952434548
NAME, STEP, UNITS, BEGIN, END, KNOB = 1, 16, 17, 18, 19, 20


class Listener:
    def __init__(self, folder):
        self.path = os.path.join(str(folder), "marks")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(self.path)
        self.socket.listen(16)
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()

    def rings(self):
        """The records of every process that connected: a list of (pid, [(kind, tid, name, value), ...])."""
        found = []
        while True:
            try:
                connection, _ = self.socket.accept()
            except BlockingIOError:
                return found
            with connection:
                data, rights, _, _ = connection.recvmsg(64, socket.CMSG_LEN(4))
            magic, abi, role, pid, _ = struct.unpack("<QIIII", data)
            assert (magic, abi, role) == (MAGIC, 1, 1)
            fds = array.array("i")
            fds.frombytes(rights[0][2])
            with mmap.mmap(fds[0], 0) as ring:
                os.close(fds[0])
                found.append((pid, self._records(ring)))

    @staticmethod
    def _records(ring):
        magic, abi, header, size, capacity, _, _ = struct.unpack_from("<QIIIIII", ring)
        assert (magic, abi, header, size) == (MAGIC, 1, 4096, 64)
        assert len(ring) == header + capacity * size
        (head,) = struct.unpack_from("<Q", ring, 64)
        (dropped,) = struct.unpack_from("<Q", ring, 192)
        assert dropped == 0 and head <= capacity
        names, records, last = {0: None}, [], 0
        for i in range(head):
            at = header + i * size
            sequence, t_ns, tid, kind, _ = struct.unpack_from("<QqIHH", ring, at)
            assert sequence == i + 1
            at += 24
            if kind == NAME:
                identity, piece, pieces, length = struct.unpack_from("<IBBH", ring, at)
                text = ring[at + 8 : at + 8 + min(32, length - 32 * piece)]
                names[identity] = (names[identity] if piece else b"") + text
                assert piece < pieces
                continue
            assert t_ns >= last
            last = t_ns
            if kind == KNOB:
                name, text, kind_of_value, flags, integer, number = struct.unpack_from("<IIIIqd", ring, at)
                value = {1: integer, 2: number, 3: (names[text] or b"").decode()}[kind_of_value], flags
            else:
                name, _, value = struct.unpack_from("<IId", ring, at)
            records.append((kind, tid, names[name].decode() if name else None, value))
        return records
