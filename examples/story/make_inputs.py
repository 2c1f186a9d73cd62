#!/usr/bin/env python3
"""Turns story.txt into the inputs of story.kina. Only the standard library is needed.

Site t of the text predicts byte t + 1 from byte t. Its logits are log(n + 1), n being how often each byte follows byte t in
the text. log_softmax normalises that to log((n + 1) / (N + 256)), N being how often byte t is followed at all, so the mean
loss of story.kina is a cross-entropy that can be computed from the counts alone: this script prints it.

Writes story.npz: `logits`, F32 [1, T, 256], and `targets`, I64 [1, T].
"""

import math
import pathlib
import struct
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def npy(descr, shape, data):
    """The bytes of an .npy file, version 1.0."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii") + data


def main():
    text = (HERE / "story.txt").read_bytes()
    sites = len(text) - 1
    if f"tensor<F32, [1, {sites}, 256], @host>" not in (HERE / "story.kina").read_text():
        raise SystemExit(f"story.txt has {sites} sites: write [1, {sites}, 256] and [1, {sites}] into story.kina")

    follows = [[0] * 256 for _ in range(256)]
    for here, after in zip(text, text[1:]):
        follows[here][after] += 1

    rows = {byte: struct.pack("<256f", *(math.log(n + 1) for n in follows[byte])) for byte in set(text)}
    logits = b"".join(rows[byte] for byte in text[:-1])
    targets = struct.pack(f"<{sites}q", *text[1:])

    with zipfile.ZipFile(HERE / "story.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in (("logits", npy("<f4", (1, sites, 256), logits)), ("targets", npy("<i8", (1, sites), targets))):
            entry = zipfile.ZipInfo(name + ".npy")  # dated 1980: the same bytes every time
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, array)

    # Each pair of bytes counts once per occurrence, so the sum is over pairs, not sites.
    nats = 0.0
    for row in follows:
        for n in row:
            if n:
                nats += n * (math.log(sum(row) + 256) - math.log(n + 1))
    print(f"cross-entropy from the counts: {nats / sites:.6f} nats per byte over {sites} sites")


if __name__ == "__main__":
    main()
