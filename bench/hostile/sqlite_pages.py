"""SQLite files page by page: what no SQLite would write. Format: sqlite.org/fileformat2.html."""
import struct

CELLS_ROOM = 12  # header of an interior page


def varint(number):
    """A varint of SQLite: big-endian, seven bits a byte (up to 2^56 here)."""
    out = [number & 0x7F]
    while number := number >> 7:
        out.append(number & 0x7F | 0x80)
    return bytes(reversed(out))


def text_record(text_length, columns_before=0):
    """The head of a record: NULLs, then one text."""
    types = b"\0" * columns_before + varint(13 + 2 * text_length)
    return varint(len(types) + 1) + types


class Pages:
    """A database without a log, in memory."""

    def __init__(self, path):
        self.path = path
        self.bytes = bytearray(path.read_bytes())
        size = struct.unpack(">H", self.bytes[16:18])[0]
        self.size = 65536 if size == 1 else size
        assert len(self.bytes) % self.size == 0

    @property
    def count(self):
        return len(self.bytes) // self.size

    def page(self, number):
        return bytes(self.bytes[(number - 1) * self.size:number * self.size])

    def put(self, number, content):
        assert len(content) == self.size
        self.bytes[(number - 1) * self.size:number * self.size] = content

    def add(self, content):
        self.bytes += content
        return self.count

    def leaf(self, cells):
        """A leaf of a table: as many of the cells as fit are taken from the list."""
        page, pointers, at = bytearray(self.size), [], self.size
        while cells and at - len(cells[0]) >= 8 + 2 * len(pointers) + 2:
            cell = cells.pop(0)
            at -= len(cell)
            page[at:at + len(cell)] = cell
            pointers.append(at)
        page[:8] = struct.pack(">BHHHB", 13, 0, len(pointers), at & 0xFFFF, 0)
        page[8:8 + 2 * len(pointers)] = struct.pack(f">{len(pointers)}H", *pointers)
        return bytes(page)

    def interior(self, children):
        """An interior page of a table over (page, largest row id)."""
        page, pointers, at = bytearray(self.size), [], self.size
        for child, key in children[:-1]:
            cell = struct.pack(">I", child) + varint(key)
            at -= len(cell)
            page[at:at + len(cell)] = cell
            pointers.append(at)
        page[:12] = struct.pack(">BHHHBI", 5, 0, len(pointers), at & 0xFFFF, 0, children[-1][0])
        page[12:12 + 2 * len(pointers)] = struct.pack(f">{len(pointers)}H", *pointers)
        assert at >= 12 + 2 * len(pointers)
        return bytes(page)

    def fan(self):
        """So many children fit an interior page."""
        return (self.size - CELLS_ROOM) // 12

    def build(self, root, leaves):
        """A table with these leaves, (page, largest row id), in place of what its root page holds."""
        while len(leaves) > self.fan():
            groups = [leaves[i:i + self.fan()] for i in range(0, len(leaves), self.fan())]
            leaves = [(self.add(self.interior(group)), group[-1][1]) for group in groups]
        self.put(root, self.interior(leaves))

    def repeat(self, root, depth):
        """The table's rows over and over: `depth` more levels, each with one child repeated."""
        child = self.add(self.page(root))
        for _ in range(depth - 1):
            child = self.add(self.interior([(child, 1)] * self.fan()))
        self.put(root, self.interior([(child, 1)] * self.fan()))

    def overflow(self, content):
        """A chain of overflow pages; the first one's number."""
        room = self.size - 4
        parts = [content[i:i + room] for i in range(0, len(content), room)]
        first = self.count + 1
        for i, part in enumerate(parts):
            following = first + i + 1 if i + 1 < len(parts) else 0
            self.add(struct.pack(">I", following) + part.ljust(room, b"\0"))
        return first

    def local_bytes(self, payload):
        """Bytes of a payload that stay in a leaf cell of a table."""
        if payload <= self.size - 35:
            return payload
        least = (self.size - 12) * 32 // 255 - 23
        local = least + (payload - least) % (self.size - 4)
        return local if local <= self.size - 35 else least

    def save(self):
        self.bytes[28:32] = struct.pack(">I", self.count)
        self.bytes[92:96] = self.bytes[24:28]
        self.path.write_bytes(self.bytes)
