"""Exact nearest texts by edit distance in PyTorch: the table of each pair, diagonal by diagonal, on a device.

    python3 docs/benchmarks/edit.py [--k 8] [--batches 1,32,1024] FILE...

A file has a text a line. The queries are texts of it, evenly spread. JSON lines: the median time of 5 batches (of 1 that takes more than 2 s), and how many
distances of the first query differ from those of a table filled in Python, which must be none.
"""
import argparse
import json
import time

import torch

ROOM = 4 << 30  # bytes of one diagonal of all pairs that are looked at together


def codes(texts, length):
    """A column for each text, of so many rows; what is after a text is like nothing."""
    out = torch.full((length, len(texts)), -1, dtype=torch.int16)
    for i, t in enumerate(texts):
        out[: len(t), i] = torch.tensor([ord(c) % 32749 for c in t], dtype=torch.int16)
    return out.cuda()


def distances(q, words, lengths):
    """Of queries of one length to words of several, which are ordered by length."""
    n, m, most = q.shape[0], q.shape[1], int(lengths.max())
    pad = torch.full((m, words.shape[1]), -2, dtype=torch.int16, device="cuda")
    back = torch.cat([pad, words[:most], pad]).flip(0)  # row r holds symbol most + m - 1 - r
    far = torch.full((n, m + 1, words.shape[1]), 100, dtype=torch.int8, device="cuda")
    before, last, out = far.clone(), far.clone(), far[:, 0].clone()
    last[:, 0] = 0
    out[:, lengths == 0] = m
    for d in range(1, m + most + 1):
        new = torch.minimum(last[:, 1:], last[:, :-1]) + 1
        first = most + m - 1 - (d - 2)  # where the symbol is that cell 1 compares
        same = back[first : first + m] if first + m <= back.shape[0] else torch.cat([back[first:], pad])[:m]
        new = torch.minimum(new, before[:, :-1] + (same[None] != q[:, :, None]).to(torch.int8))
        full = torch.cat([torch.full_like(new[:, :1], min(d, 100)), new], 1)
        if d <= m:
            full[:, d] = d
        full[:, d + 1 :] = 100
        if d > most:
            full[:, : d - most] = 100
        before, last = last, full
        done = lengths == d - m
        out[:, done] = full[:, m][:, done]
    return out


def nearest(queries, words, lengths, k):
    """The k nearest of each query, queries by length and words in pieces."""
    found = []
    for q in queries:
        best = []
        each = max(1, ROOM // (q.shape[0] * (q.shape[1] + 1)))
        for at in range(0, words.shape[1], each):
            d = distances(q, words[:, at : at + each], lengths[at : at + each])
            best.append(torch.topk(d.to(torch.float16), min(k, d.shape[1]), largest=False))
        values, ids = torch.cat([b.values for b in best], 1), torch.cat([b.indices + i * each for i, b in enumerate(best)], 1)
        top = torch.topk(values, k, largest=False)
        found.append((top.values, ids.gather(1, top.indices)))
    return found


def table(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        old, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            old, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, old + (x != y))
    return row[-1]


parser = argparse.ArgumentParser()
parser.add_argument("files", nargs="+")
parser.add_argument("--k", type=int, default=8)
parser.add_argument("--batches", default="1,32,1024")
args = parser.parse_args()
for name in args.files:
    texts = sorted({t for t in open(name, encoding="utf-8").read().split("\n") if 0 < len(t) <= 96}, key=len)
    lengths = torch.tensor([len(t) for t in texts], device="cuda")
    words = codes(texts, len(texts[-1]))
    for batch in map(int, args.batches.split(",")):
        asked = [texts[i * len(texts) // batch] for i in range(batch)]
        groups = [codes([t for t in asked if len(t) == n], n).T.contiguous() for n in sorted({len(t) for t in asked})]
        times = []
        while len(times) < 5 and sum(times) < 2:
            torch.cuda.synchronize()
            began = time.time()
            found = nearest(groups, words, lengths, args.k)
            torch.cuda.synchronize()
            times.append(time.time() - began)
        query = next(t for t in asked if len(t) == groups[0].shape[1])
        values, ids = found[0]
        wrong = sum(table(query, texts[i]) != int(v) for v, i in zip(values[0].tolist(), ids[0].tolist()))
        print(json.dumps(dict(texts=name.split("/")[-1], objects=len(texts), longest=len(texts[-1]), k=args.k, queries=batch, ms=round(1000 * sorted(times)[len(times) // 2], 2), runs=len(times), wrong=wrong)), flush=True)
