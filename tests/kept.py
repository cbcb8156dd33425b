"""What the drain process keeps for --recover, as bytes: where words lie in d<pid>.<serial> (common/shm.h), and their checks (writer/meaning/kept.c)."""

import struct

# struct xs_kept_file
TRACE, COMPLETE, OUTPUT, OUTPUT_SIZE, HEADER = 80, 116, 120, 4096, 8192
OUTPUT_CHECK = 104
IS_COMPLETE = 0x704D4F43
# struct xs_kept_ring, a page each
PAGE, MOVED, COPIES = 4096, 8, (16, 16 + 2032)
MASK = (1 << 64) - 1
SALT = 0x78AC7E5B1D0936F5
OF_OUTPUT, OF_RING = 3, 4


def check(what, data):
    sum = SALT * what & MASK
    for (word,) in struct.iter_unpack("<Q", data + bytes(-len(data) % 8)):
        sum = (sum ^ word) * 0x9E3779B97F4A7C15 & MASK
        sum ^= sum >> 32
    return sum or 1


def put_output(file, path):
    """Another path, as a process of the same user could write it."""
    with file.open("r+b") as stream:
        stream.seek(OUTPUT)
        stream.write(path + b"\0")
        stream.seek(OUTPUT_CHECK)
        stream.write(struct.pack("<Q", check(OF_OUTPUT, path)))


def put_ring(file, tail=None, records=None, open=()):
    """Likewise, of the first ring the copy that counts. open: pairs of ns and name."""
    with file.open("r+b") as stream:
        stream.seek(HEADER)
        page = stream.read(PAGE)
        at = max(COPIES, key=lambda at: struct.unpack_from("<Q", page, at))
        words = list(struct.unpack_from("<4Q2I2I2I", page, at))
        words[1] = words[1] if tail is None else tail
        words[2] = words[2] if records is None else records
        words[7] = len(open)
        head, tasks = struct.pack("<4Q2I2I2I", *words), b"".join(struct.pack("<QII", ns, name, 0) for ns, name in open)
        stream.seek(HEADER + at)
        stream.write(head + struct.pack("<Q", check(OF_RING, head + tasks)) + tasks)
