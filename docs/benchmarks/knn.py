"""Exact kNN in PyTorch, and an IVF of twenty lines, on the vectors of w1, w5 or w5sift, against what geniemq answered to the same queries.

    geniemq bench engine --engine cuda --workload w5 --recall 0.95 --export DIR
    python3 docs/benchmarks/knn.py DIR...

The folders hold the vectors themselves, as the workload's seed makes them, so both search the same. JSON lines: of each folder (of another
--recall or --reach, say; the vectors are those of the first) the recall of its answers against the exact neighbours. Then a line a way to do it
in PyTorch: precision of the matrix product, objects a chunk, median of 7 batches by CUDA events; then the IVF by how many lists it looks into,
with its recall, to be compared at equal recall; for w1 also the same times for random clustered points in 128 dimensions. The distance is
|x|^2 - 2 q.x, the part of the squared distance that the order depends on.
"""
import json
import sys
import time

import numpy as np
import torch

RUNS = 7


def search(points, norms, queries, chunk, k, split):
    """The k nearest of each query: a matrix product and top-k a chunk, then top-k of the chunks' bests.

    split > 1 cuts each row of a chunk in that many, so that top-k has more rows to work on at a time.
    """
    best, ids = [], []
    for first in range(0, points.shape[0], chunk):
        x = points[first:first + chunk]
        d = torch.addmm(norms[first:first + chunk].to(queries.dtype), queries, x.T, alpha=-2)
        n = x.shape[0]
        s = split if n % split == 0 and n // split >= k else 1
        v, i = torch.topk(d.view(d.shape[0] * s, n // s), k, dim=1, largest=False, sorted=False)
        i = i.view(d.shape[0], s, k) + (first + torch.arange(s, device=i.device) * (n // s)).view(1, s, 1)
        best.append(v.view(d.shape[0], s * k))
        ids.append(i.reshape(d.shape[0], s * k))
    best, ids = torch.cat(best, 1), torch.cat(ids, 1)
    v, i = torch.topk(best, k, dim=1, largest=False)
    return torch.gather(ids, 1, i)


def timed(f, runs):
    f()
    times = []
    for _ in range(runs):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        out = f()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return sorted(times)[len(times) // 2], out


def recall(got, want):
    return float(np.mean([len(np.intersect1d(g, w)) / len(w) for g, w in zip(got, want)]))


def measure(name, points, queries, exact, k):
    norms = (points.double() ** 2).sum(1).float()
    for precision in ("fp32", "tf32", "bf16"):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        p, q = points.to(dtype), queries.to(dtype)
        gemm = None
        for chunk, split in ((250_000, 1), (1 << 20, 1), (1 << 20, 64), (points.shape[0], 1)):
            chunk = min(chunk, points.shape[0])
            if gemm is None:
                gemm, _ = timed(lambda: [torch.mm(q, p[f:f + (1 << 20)].T) for f in range(0, p.shape[0], 1 << 20)], RUNS)
            torch.cuda.empty_cache()
            ms, ids = timed(lambda: search(p, norms, q, chunk, k, split), 3 if chunk == points.shape[0] else RUNS)
            line = dict(points=name, objects=points.shape[0], dims=points.shape[1], queries=queries.shape[0], k=k, precision=precision,
                        chunk=chunk, split=split, total_ms=round(ms, 3), gemm_ms=round(gemm, 3))
            if exact is not None:
                line["recall_at_k"] = round(recall(ids[:64].cpu().numpy(), exact[:64]), 4)
            print(json.dumps(line), flush=True)


def ivf(points, lists, rounds=8):
    """k-means on a sample, and the objects by their nearest centre: rows of ids, filled up with -1."""
    sample = points[torch.randperm(points.shape[0], device=points.device)[:64 * lists]]
    centres = sample[:lists].clone()
    nearest = lambda x: torch.cat([torch.cdist(part, centres).argmin(1) for part in x.split(1 << 16)])
    for _ in range(rounds):
        of = nearest(sample)
        sums = torch.zeros_like(centres).index_add_(0, of, sample)
        sizes = torch.bincount(of, minlength=lists).unsqueeze(1)
        centres = torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)
    of = nearest(points)
    sizes = torch.bincount(of, minlength=lists)
    order, ends = torch.argsort(of), torch.cumsum(sizes, 0)
    place = torch.arange(order.shape[0], device=of.device) - (ends - sizes)[of[order]]
    rows = torch.full((lists, int(sizes.max())), -1, dtype=torch.long, device=of.device)
    rows[of[order], place] = order
    return centres, rows


def probe(points, centres, rows, queries, k, n):
    """The k nearest of the objects in the n lists whose centres are nearest, some queries at a time."""
    out = []
    for q in queries.split(max(1, (1 << 28) // (n * rows.shape[1] * points.shape[1]))):
        ids = rows[torch.topk(torch.cdist(q, centres), n, largest=False).indices].flatten(1)
        d = (points[ids.clamp(min=0)] - q.unsqueeze(1)).square_().sum(2).masked_fill_(ids < 0, float("inf"))
        out.append(torch.gather(ids, 1, torch.topk(d, k, dim=1, largest=False).indices))
    return torch.cat(out)


def main():
    folders = sys.argv[1:]
    print(json.dumps(dict(device=torch.cuda.get_device_name(), torch=torch.__version__)), flush=True)
    with open(f"{folders[0]}/shape.json") as f:
        shape = json.load(f)
    name, dims, K = shape["workload"], shape["dims"], shape["k"]
    read = lambda file: torch.from_numpy(np.fromfile(f"{folders[0]}/{file}", dtype="<f4").reshape(-1, dims)).cuda()
    points, queries = read("points.f32"), read("queries.f32")
    assert points.shape[0] == shape["objects"] and queries.shape[0] == shape["queries"]

    # Exact in float64, 64 queries at a time.
    torch.backends.cuda.matmul.allow_tf32 = False
    p64 = points.double()
    n64 = (p64 ** 2).sum(1)
    exact, sample = [], min(256, queries.shape[0])
    for first in range(0, sample, 64):
        d = torch.addmm(n64, queries[first:first + 64].double(), p64.T, alpha=-2)
        exact.append(torch.topk(d, K, dim=1, largest=False).indices.cpu().numpy())
    exact = np.concatenate(exact)
    del p64, n64, d
    torch.cuda.empty_cache()
    near = torch.from_numpy(exact).cuda()
    q = queries[:sample].double().unsqueeze(1)
    of = lambda ids, of: torch.sort((points[ids].double() - q[of]).norm(dim=2), 1).values
    for folder in folders:
        with open(f"{folder}/shape.json") as f:
            own = json.load(f)
        if any(own[field] != shape[field] for field in ("workload", "seed", "objects", "queries", "dims", "k")):
            sys.exit(f"{folder} is of other vectors or queries than {folders[0]}: {own}, {shape}")
        answers = np.fromfile(f"{folder}/answers.u32", dtype="<u4").reshape(queries.shape[0], -1)
        line = dict(answers=folder, compared=sample)
        for k in sorted({1, 10, K}):
            line[f"geniemq_recall_at_{k}"] = round(recall(answers[:sample, :k], exact[:, :k]), 4)
        line[f"exact_10_within_geniemq_{K}"] = round(recall(answers[:sample], exact[:, :10]), 4)
        line[f"exact_1_within_geniemq_{K}"] = round(recall(answers[:sample], exact[:, :1]), 4)
        # How much farther geniemq's j-th hit is than the j-th neighbour (the ratio that c-approximate search bounds).
        whole = (answers[:sample] != 0xffffffff).all(1)
        hits = torch.from_numpy(answers[:sample][whole].astype(np.int64)).cuda()
        there = torch.from_numpy(whole).cuda()
        line["distance_ratio"] = round(float((of(hits, there) / of(near[there], there)).mean()), 4)
        print(json.dumps(line), flush=True)

    measure(name, points, queries, exact, K)
    torch.backends.cuda.matmul.allow_tf32 = False
    lists = int(4 * points.shape[0] ** 0.5)
    centres, rows = ivf(points, lists)
    for n in (1, 2, 4, 8, 16, 32, 64):
        ms, ids = timed(lambda: probe(points, centres, rows, queries, K, n), RUNS)
        print(json.dumps(dict(points=name, objects=points.shape[0], dims=dims, queries=queries.shape[0], k=K, ivf_lists=lists, ivf_probes=n,
                              longest_list=rows.shape[1], total_ms=round(ms, 3), recall_at_k=round(recall(ids[:sample].cpu().numpy(), exact), 4))), flush=True)
    if name != "w1":
        return
    n = points.shape[0]
    del points, rows
    torch.manual_seed(1)
    centres = torch.randn(20000, 128, device="cuda")
    points = torch.empty(n, 128, device="cuda")
    for first in range(0, n, 1 << 20):
        part = points[first:first + (1 << 20)]
        part.copy_(centres[torch.randint(20000, (part.shape[0],), device="cuda")] + 0.45 * torch.randn_like(part))
    queries = points[torch.randint(n, (queries.shape[0],), device="cuda")] + 0.25 * torch.randn(queries.shape[0], 128, device="cuda")
    measure("clustered-128", points, queries, None, K)


start = time.time()
main()
print(json.dumps(dict(seconds=round(time.time() - start, 1))))
