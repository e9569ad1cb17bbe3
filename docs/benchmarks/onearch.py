"""Leaves a shared library the device code of one architecture, so that a large library can be carried to a machine that nothing can be fetched on.

    python3 docs/benchmarks/onearch.py libcuvs.so 90

Code for other architectures, and PTX, becomes zeros in place, which any archiver packs away: no offset changes, and the driver takes the entry of its own
device, as before. Entries of other kinds (code that is linked when it runs) stay.
"""
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, CUBIN = 1, 2


def entries(data):
    """Of each fat binary: where an entry's header is and how long, its kind, its architecture, and the size of what follows."""
    at = 0
    while (at := data.find(MAGIC, at)) >= 0:
        _, version, header, size = struct.unpack_from("<IHHQ", data, at)
        end = at + header + size
        if version != 1 or header != 16 or end > len(data):
            at += len(MAGIC)
            continue
        at += header
        while at < end:
            kind, _, length, payload = struct.unpack_from("<HHIQ", data, at)
            arch, = struct.unpack_from("<I", data, at + 28)
            if length < 32 or at + length + payload > end:
                sys.exit(f"an entry of an unknown form at byte {at}")
            yield at, length, kind, arch, payload
            at += length + payload


def main(path, arch):
    with open(path, "rb") as f:
        data = bytearray(f.read())
    kept = cleared = 0
    for at, length, kind, own, payload in entries(data):
        if kind == PTX or kind == CUBIN and own != arch:
            data[at + length:at + length + payload] = bytes(payload)
            cleared += payload
        else:
            kept += payload
    if not kept:
        sys.exit(f"{path} has no code for architecture {arch}")
    with open(path, "wb") as f:
        f.write(data)
    print(f"{path}: {kept} bytes of device code kept, {cleared} cleared")


main(sys.argv[1], int(sys.argv[2]))
