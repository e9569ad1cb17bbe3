"""Exact kNN in PyTorch, an IVF of twenty lines, and cuVS where it is installed, on exported vectors, against what geniemq answered to the same queries.

    geniemq bench engine --engine cuda --workload w5 --recall 0.95 --export DIR
    geniemq bench ways --engine cuda --sets clusters,vector --asked 16384 --export DIR
    python3 docs/benchmarks/knn.py [--batches 1,1024,16384] [--k 8,100] [--recall 0.995] DIR... DIR/clusters DIR/vector...

The folders hold the vectors themselves, so all search the same. JSON lines: of each folder the recall of its answers against the exact neighbours. Then, once for
the folders of the same vectors: a line a way to do it in PyTorch (precision of the matrix product, objects a chunk), the best of which is asked in batches of
every size and for every k; then the IVF by how many lists it looks into, and, in batches, by as many as it needs for the recall; the same of cuVS, brute
force, IVF-flat and CAGRA. Times are medians of 7 batches by CUDA events (the longer of 2 where one takes half a second), of l2 |x|^2 - 2 q.x, the part of the squared distance that the order
depends on; cosine is l2 of unit vectors, and of inner products (ip) -2 q.x alone, by PyTorch's exact search only.

Where cuVS has to be carried: its wheels and those it needs, unpacked into a folder of PYTHONPATH, libcuvs.so cut down by onearch.py.
"""
import argparse
import json
import time

import numpy as np
import torch

RUNS = 7
LONG = 0.5  # seconds: what takes as long is measured twice
ROOM = 24 << 30  # bytes that the distances of a batch may take


def timed(f):
    torch.cuda.synchronize()
    began = time.time()
    f()
    torch.cuda.synchronize()
    times = []
    for _ in range(RUNS if time.time() - began < LONG else 2):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        out = f()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return sorted(times)[len(times) // 2], out


def recall(got, want):
    return round(float(np.mean([len(np.intersect1d(g, w)) / len(w) for g, w in zip(got, want)])), 4)


class Data:
    """Exported vectors: what is searched, what is asked for, and the exact neighbours of the first queries."""

    def __init__(self, folder, shape, ks):
        self.shape, self.metric, self.name = shape, shape.get("metric", "l2"), shape["workload"]
        read = lambda file: torch.from_numpy(np.fromfile(f"{folder}/{file}", dtype="<f4").reshape(-1, shape["dims"])).cuda()
        self.points, self.queries = read("points.f32"), read("queries.f32")
        assert self.points.shape[0] == shape["objects"] and self.queries.shape[0] == shape["queries"]
        if self.metric == "cosine":
            self.points, self.queries = (x / x.norm(dim=1, keepdim=True) for x in (self.points, self.queries))
        self.norms = (self.points.double() ** 2).sum(1)
        if self.metric == "ip":
            self.norms = torch.zeros_like(self.norms)
        self.exact = self.nearest(max(ks), min(256, self.queries.shape[0]))

    def nearest(self, k, n):
        """By float64, 64 queries at a time."""
        rows, points = [], self.points.double()
        for first in range(0, n, 64):
            q = self.queries[first:min(n, first + 64)].double()
            if self.metric == "l1":
                d = torch.cat([torch.cdist(q, part, p=1) for part in points.split(1 << 18)], 1)
            else:
                d = torch.addmm(self.norms, q, points.T, alpha=-2)
            rows.append(torch.topk(d, k, dim=1, largest=False).indices.cpu().numpy())
        return np.concatenate(rows)

    def batch(self, n):
        """n queries, the same ones again where there are fewer."""
        return self.queries.repeat(-(-n // self.queries.shape[0]), 1)[:n].contiguous()

    def tell(self, **line):
        print(json.dumps(dict(points=self.name, metric=self.metric, objects=self.points.shape[0], dims=self.points.shape[1]) | line), flush=True)

    def found(self, ids, k):
        n = min(len(self.exact), len(ids))
        return recall(ids[:n].cpu().numpy(), self.exact[:n, :k])


def distances(metric, queries, x, norms):
    if metric == "l1":
        return torch.cdist(queries, x, p=1)
    return torch.addmm(norms.to(queries.dtype), queries, x.T, alpha=-2)


def search(metric, points, norms, queries, chunk, k, split):
    """The k nearest of each query: distances and top-k a chunk, then top-k of the chunks' bests.

    split > 1 cuts each row of a chunk in that many, so that top-k has more rows to work on at a time.
    """
    best, ids = [], []
    for first in range(0, points.shape[0], chunk):
        x = points[first:first + chunk]
        d = distances(metric, queries, x, norms[first:first + chunk])
        n = x.shape[0]
        s = split if n % split == 0 and n // split >= k else 1
        v, i = torch.topk(d.view(d.shape[0] * s, n // s), min(k, n // s), dim=1, largest=False, sorted=False)
        i = i.view(d.shape[0], s, -1) + (first + torch.arange(s, device=i.device) * (n // s)).view(1, s, 1)
        best.append(v.view(d.shape[0], -1))
        ids.append(i.reshape(d.shape[0], -1))
    best, ids = torch.cat(best, 1), torch.cat(ids, 1)
    i = torch.topk(best, k, dim=1, largest=False).indices
    return torch.gather(ids, 1, i)


def exactly(data, batches, ks):
    """Every precision and size of a chunk for one batch; the quickest of each precision for all."""
    k, n = ks[0], min(1024, max(batches))
    for precision in ("fp32",) if data.metric == "l1" else ("fp32", "tf32", "bf16"):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        points, norms = data.points.to(dtype), data.norms.float()
        ask = lambda n, chunk, split, k: timed(lambda: search(data.metric, points, norms, data.batch(n).to(dtype), min(chunk, ROOM // (4 * n)), k, split))
        best = (float("inf"),)
        for chunk, split in ((250_000, 1), (1 << 20, 1), (1 << 20, 64), (points.shape[0], 1)):
            torch.cuda.empty_cache()
            ms, ids = ask(n, chunk, split, k)
            data.tell(by="torch", precision=precision, chunk=chunk, split=split, queries=n, k=k, total_ms=round(ms, 3), found=data.found(ids, k))
            best = min(best, (ms, chunk, split))
        for n_, k_ in [(b, k) for b in batches if b != n] + [(n, k) for k in ks[1:]]:
            torch.cuda.empty_cache()
            ms, ids = ask(n_, *best[1:], k_)
            data.tell(by="torch", precision=precision, chunk=best[1], split=best[2], queries=n_, k=k_, total_ms=round(ms, 3), found=data.found(ids, k_))
    torch.backends.cuda.matmul.allow_tf32 = False


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


def probe(metric, points, centres, rows, queries, k, n):
    """The k nearest of the objects in the n lists whose centres are nearest, some queries at a time."""
    out = []
    for q in queries.split(max(1, (1 << 28) // (n * rows.shape[1] * points.shape[1]))):
        ids = rows[torch.topk(torch.cdist(q, centres), n, largest=False).indices].flatten(1)
        d = points[ids.clamp(min=0)] - q.unsqueeze(1)
        d = (d.abs_() if metric == "l1" else d.square_()).sum(2).masked_fill_(ids < 0, float("inf"))
        out.append(torch.gather(ids, 1, torch.topk(d, k, dim=1, largest=False).indices))
    return torch.cat(out)


def efforts(data, batches, ks, wanted, tries, ask, **what):
    """Asks with more and more effort until the recall is there, and then in batches of every size and for every k; a try that fails is told of."""
    k, n = ks[0], min(1024, max(batches))
    for effort in tries:
        ms, ids = timed(lambda: ask(data.batch(n), k, effort))
        found = data.found(ids, k)
        data.tell(queries=n, k=k, effort=effort, total_ms=round(ms, 3), found=found, **what)
        if found < wanted and effort != tries[-1]:
            continue
        for n_, k_ in [(b, k) for b in batches if b != n] + [(n, k) for k in ks[1:]]:
            ms, ids = timed(lambda: ask(data.batch(n_), k_, effort))
            data.tell(queries=n_, k=k_, effort=effort, total_ms=round(ms, 3), found=data.found(ids, k_), **what)
        return


def cuvs(data, batches, ks, wanted):
    try:
        from cuvs.neighbors import brute_force, cagra, ivf_flat
    except (ImportError, OSError) as missing:
        data.tell(by="cuvs", missing=str(missing))
        return
    metric = {"l2": "sqeuclidean", "cosine": "sqeuclidean", "l1": "l1"}[data.metric]
    as_ids = lambda found: torch.as_tensor(found[1], device="cuda").long()

    def built(by, make):
        began = time.time()
        index = make()
        torch.cuda.synchronize()
        data.tell(by=by, built_s=round(time.time() - began, 3))
        return index

    index = built("cuvs brute_force", lambda: brute_force.build(data.points, metric=metric))
    efforts(data, batches, ks, 0, [0], lambda q, k, _: as_ids(brute_force.search(index, q, k)), by="cuvs brute_force")
    if data.metric == "l1":
        return
    lists = int(4 * data.points.shape[0] ** 0.5)
    index = built("cuvs ivf_flat", lambda: ivf_flat.build(ivf_flat.IndexParams(n_lists=lists, metric=metric), data.points))
    efforts(data, batches, ks, wanted, [1, 2, 4, 8, 16, 32, 64, 128, 256],
            lambda q, k, n: as_ids(ivf_flat.search(ivf_flat.SearchParams(n_probes=n), index, q, k)), by="cuvs ivf_flat", lists=lists)
    index = built("cuvs cagra", lambda: cagra.build(cagra.IndexParams(metric=metric), data.points))
    efforts(data, batches, ks, wanted, [max(32, max(ks)), 128, 256, 512],
            lambda q, k, n: as_ids(cagra.search(cagra.SearchParams(itopk_size=n), index, q, k)), by="cuvs cagra")


def answered(data, folder, own):
    """What geniemq answered against the exact neighbours."""
    n, k = len(data.exact), min(own["k"], data.exact.shape[1])
    answers = np.fromfile(f"{folder}/answers.u32", dtype="<u4").reshape(-1, own["k"])
    line = dict(answers=folder, compared=n)
    for some in sorted({1, min(10, k), k}):
        line[f"geniemq_recall_at_{some}"] = recall(answers[:n, :some], data.exact[:, :some])
    line[f"exact_10_within_geniemq_{own['k']}"] = recall(answers[:n], data.exact[:, :10])
    line[f"exact_1_within_geniemq_{own['k']}"] = recall(answers[:n], data.exact[:, :1])
    if data.metric == "ip":
        return data.tell(**line)
    # How much farther geniemq's j-th hit is than the j-th neighbour (the ratio that c-approximate search bounds).
    whole = torch.from_numpy((answers[:n] != 0xffffffff).all(1)).cuda()
    q = data.queries[:n].double().unsqueeze(1)[whole]
    of = lambda ids: torch.sort((data.points[ids].double() - q).norm(p=1 if data.metric == "l1" else 2, dim=2), 1).values
    hits = torch.from_numpy(answers[:n, :k].astype(np.int64)).cuda()[whole]
    line["distance_ratio"] = round(float((of(hits) / of(torch.from_numpy(data.exact[:, :k]).cuda()[whole])).nanmean()), 4)
    data.tell(**line)


def main():
    parse = argparse.ArgumentParser()
    numbers = lambda text: [int(x) for x in text.split(",")]
    parse.add_argument("--batches", type=numbers)
    parse.add_argument("--k", type=numbers)
    parse.add_argument("--recall", type=float, default=0.995)
    parse.add_argument("folders", nargs="+")
    args = parse.parse_args()
    print(json.dumps(dict(device=torch.cuda.get_device_name(), torch=torch.__version__)), flush=True)
    groups = {}
    for folder in args.folders:
        with open(f"{folder}/shape.json") as f:
            shape = json.load(f)
        key = tuple(shape.get(x) for x in ("workload", "metric", "seed", "objects", "queries", "dims"))
        groups.setdefault(key, []).append((folder, shape))
    for group in groups.values():
        folder, shape = group[0]
        ks, batches = args.k or [shape["k"]], args.batches or [shape["queries"]]
        data = Data(folder, shape, ks + [own["k"] for _, own in group])
        for folder, own in group:
            answered(data, folder, own)
        exactly(data, batches, ks)
        if data.metric == "ip":
            continue
        lists = int(4 * data.points.shape[0] ** 0.5)
        centres, rows = ivf(data.points, lists)
        efforts(data, batches, ks, args.recall, [1, 2, 4, 8, 16, 32, 64, 128],
                lambda q, k, n: probe(data.metric, data.points, centres, rows, q, k, n), by="torch ivf", lists=lists, longest_list=rows.shape[1])
        del centres, rows
        torch.cuda.empty_cache()
        cuvs(data, batches, ks, args.recall)
        del data
        torch.cuda.empty_cache()


start = time.time()
main()
print(json.dumps(dict(seconds=round(time.time() - start, 1))))
