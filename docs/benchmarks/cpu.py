"""The CPU engine against what Python has, on one core or several: scipy's cKDTree, BLAS with a partial sort, faiss (flat, IVF, HNSW), rapidfuzz.

    go test -c -o /tmp/enginetest ./gpuexec/enginetest
    python3 docs/benchmarks/cpu.py DATA /tmp/enginetest[,/tmp/another] FOLDER [SET ...]

DATA is the folder of the real data (GENIEMQ_DATA), FOLDER one to write into. Needs numpy, scipy, faiss-cpu and rapidfuzz, from pip. Everything is asked in
batches of all queries, in turns: the engine, then the others, TURNS times, each again and again for .3 s. Everybody has CORES cores, 1 where it is not set. Times are microseconds per query, the median of the turns:
of one core what it worked for the process (the machine may be busy), of several by the clock. Several engines are asked in turns too, and the last is what others are compared with. A neighbour is found when an object that is as near is answered. JSON lines; at the end a table in Markdown.
"""
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

CORES = int(os.environ.get("CORES", "1"))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # of BLAS in each thread

import faiss
import numpy as np
import rapidfuzz
import scipy
from rapidfuzz.distance import Levenshtein
from scipy.spatial import cKDTree

TURNS, K = int(os.environ.get("TURNS", "3")), 10
faiss.omp_set_num_threads(CORES)
THREADS = ThreadPoolExecutor(CORES)
clock = time.process_time if CORES == 1 else time.perf_counter


def clusters(n, dims, count, spread, seed):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(count, dims))
    return (centres[rng.integers(count, size=n)] + spread * rng.normal(size=(n, dims))).astype(np.float32)


def bvecs(path):
    raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    return np.frombuffer(raw, np.uint8).reshape(-1, 4 + 128)[:, 4:].astype(np.float32)


def sets(data):
    """Name, objects, queries, what is built beside the scan, and (method, recall) to ask by."""
    scan, exact = ("scan", 0), [("tree", 0), ("scan", 0)]
    rng = np.random.default_rng(1)
    lines = gzip.open(data / "cities15000/cities15000.txt.gz", "rt", encoding="utf-8").read().splitlines()
    degrees = np.radians([[float(f) for f in line.split("\t")[4:6]] for line in lines])
    lat, lon = degrees[:, 0], degrees[:, 1]
    cities = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], 1).astype(np.float32)
    cities = cities[rng.permutation(len(cities))]
    yield "cities", cities[1024:], cities[:1024], "tree", exact
    rows = gzip.open(data / "nasa_atmos/atmos.csv.gz", "rt").read().splitlines()
    header = [h.strip('"') for h in rows[0].split(",")]
    wanted = [header.index(h) for h in ("cloudhigh", "cloudlow", "cloudmid", "ozone", "pressure", "surftemp", "temp")]
    table = np.array([[float(f) if f not in ("NA", "") else np.nan for f in (row.split(",")[i] for i in wanted)] for row in rows[1:]])
    table = table[~np.isnan(table).any(1)]
    nasa = ((table - table.min(0)) / (table.max(0) - table.min(0))).astype(np.float32)
    nasa = nasa[rng.permutation(len(nasa))]
    yield "nasa", nasa[1024:], nasa[:1024], "tree", exact
    yield "sift", bvecs(data / "sift_bigann10k/base.bvecs.gz"), bvecs(data / "sift_bigann10k/queries.bvecs"), "scan", [scan]
    for name, spread in (("w1", .1), ("overlapping", .75)):
        x = clusters(200_000 + 1024, 32, 2000, spread, 1)
        yield name, x[1024:], x[:1024], "cells", [("cells", .9), ("cells", .99), scan]
    words = [w for w in gzip.open(data / "words/american-english-insane.gz", "rt", encoding="utf-8").read().split() if w.isascii() and w.isalpha() and w.islower()]
    words = [words[i] for i in rng.permutation(len(words))[:86_016 + 256]]
    yield "words", words[256:], words[:256], "scan", [scan]


def timed(f):
    """The median of as many calls as the engine's test makes."""
    began, times = time.perf_counter(), []
    while len(times) < 3 or time.perf_counter() - began < .3:
        start = clock()
        f()
        times.append(clock() - start)
    return statistics.median(times)


def first(d):
    """The K least of each row."""
    ids = np.argpartition(d, K, axis=1)[:, :K]
    return np.take_along_axis(ids, np.argsort(np.take_along_axis(d, ids, 1), axis=1), 1)


def blas(x, norms, q):
    """Squared distances less |q|^2 by a matrix product, the K least of each row."""
    parts = np.array_split(q, max(CORES, len(q) * len(x) // 25_000_000))
    return np.concatenate(list(THREADS.map(lambda part: first(norms - 2 * (part @ x.T)), parts)))


def fuzzy(words, q):
    d = rapidfuzz.process.cdist(q, words, scorer=Levenshtein.distance, workers=CORES, dtype=np.uint8)
    return np.concatenate(list(THREADS.map(first, np.array_split(d, CORES))))


class Truth:
    def __init__(self, x, q):
        if isinstance(x, list):
            self.of = lambda i, ids: np.array([Levenshtein.distance(q[i], x[j]) for j in ids])
            d = rapidfuzz.process.cdist(q, x, scorer=Levenshtein.distance, dtype=np.uint8)
            self.last = np.partition(d, K - 1, axis=1)[:, K - 1]
            return
        x, q = x.astype(np.float64), q.astype(np.float64)
        self.of = lambda i, ids: ((x[ids] - q[i]) ** 2).sum(1)
        near = blas(x, (x * x).sum(1), q)
        self.last = np.array([self.of(i, ids).max() for i, ids in enumerate(near)])

    def recall(self, ids):
        return float(np.mean([(self.of(i, row) <= self.last[i] * (1 + 1e-9)).mean() for i, row in enumerate(ids)]))


def least(search, efforts, truth, want):
    """The first effort whose recall is as good."""
    for effort in efforts:
        if truth.recall(search(effort)) >= want:
            break
    return effort


def others(name, x, q, truth, recalls):
    """Way, and what answers all queries by it."""
    if isinstance(x, list):
        return {"rapidfuzz cdist + partial sort": lambda: fuzzy(x, q)}
    norms = (x * x).sum(1)
    flat = faiss.IndexFlatL2(x.shape[1])
    flat.add(x)
    ways = {"BLAS + partial sort": lambda: blas(x, norms, q), "faiss flat": lambda: flat.search(q, K)[1]}
    if x.shape[1] < 10:
        tree = cKDTree(x)
        ways["cKDTree"] = lambda: tree.query(q, k=K, workers=CORES)[1]
    if not recalls:
        return ways
    ivf = faiss.IndexIVFFlat(faiss.IndexFlatL2(x.shape[1]), x.shape[1], 2048)
    ivf.train(x)
    ivf.add(x)
    hnsw = faiss.IndexHNSWFlat(x.shape[1], 32)
    hnsw.hnsw.efConstruction = 80
    hnsw.add(x)

    def probing(n):
        ivf.nprobe = n
        return ivf.search(q, K)[1]

    def wading(n):
        hnsw.hnsw.efSearch = n
        return hnsw.search(q, K)[1]

    for way, recall in recalls.items():
        n = least(probing, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256], truth, recall)
        ways[f"faiss IVF 2048, {n} probes, for {way}"] = lambda n=n: probing(n)
        n = least(wading, [10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768], truth, recall)
        ways[f"faiss HNSW 32, ef {n}, for {way}"] = lambda n=n: wading(n)
    return ways


def engine(binary, folder):
    ran = subprocess.run([binary, "-test.run", "^TestAgainst$", "-test.timeout", "2h"], env=dict(os.environ, GENIEMQ_AGAINST=str(folder), GOMAXPROCS=str(CORES)),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode != 0:
        sys.exit(f"{binary}: {ran.stdout}")
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def main():
    data, binaries, folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), pathlib.Path(sys.argv[3]), sys.argv[4:]
    folder.mkdir(parents=True, exist_ok=True)
    everything, described = [s for s in sets(data) if not wanted or s[0] in wanted], []
    for name, x, q, built, ways in everything:
        for what, objects in (("base", x), ("queries", q)):
            if isinstance(x, list):
                (folder / f"{name}.{what}.txt").write_text("".join(w + "\n" for w in objects))
            else:
                objects.astype("<f4").tofile(folder / f"{name}.{what}.f32")
        column = "type: string, metric: edit" if isinstance(x, list) else f"type: vector, metric: l2, dims: {x.shape[1]}, index: [{built}]"
        described.append(dict(Name=name, Schema=f"{{name: {name}, columns: [{{name: x, {column}}}]}}", Dims=0 if isinstance(x, list) else x.shape[1], K=K,
                              Ways=[dict(Method=m, Recall=r) for m, r in ways]))
    (folder / "sets.json").write_text(json.dumps(described))
    print(json.dumps(dict(cores=CORES, numpy=np.__version__, scipy=scipy.__version__, faiss=faiss.__version__, rapidfuzz=rapidfuzz.__version__)), flush=True)
    engine(binaries[-1], folder)  # which builds
    times, recalls, against = {}, {}, {}
    for name, x, q, built, ways in everything:
        truth = Truth(x, q)
        for m, r in ways:
            recalls[name, f"{m}-{r}"] = truth.recall(np.fromfile(folder / f"{name}.{m}-{r}.u32", "<u4").reshape(-1, K))
        against[name] = others(name, x, q, truth, {f"{m}-{r}": recalls[name, f"{m}-{r}"] for m, r in ways if r})
        for way, f in against[name].items():
            recalls[name, way] = truth.recall(f())
    for turn in range(TURNS):
        for binary in binaries:
            for line in engine(binary, folder):
                times.setdefault((line["set"], line["way"] + ("" if binary == binaries[-1] else " by " + pathlib.Path(binary).name)), []).append(line["us"])
        for name, x, q, built, ways in everything:
            for way, f in against[name].items():
                times.setdefault((name, way), []).append(timed(f) * 1e6 / len(q))
    print("\n| data | way | recall of 10 | us | of the engine's best at that recall |\n| --- | --- | --- | --- | --- |")
    for name, x, q, built, ways in everything:
        own = {f"{m}-{r}": statistics.median(times[name, f"{m}-{r}"]) for m, r in ways}
        for way in list(own) + [w for n, w in times if n == name and " by " in w] + list(against[name]):
            recalls.setdefault((name, way), recalls.get((name, way.split(" by ")[0])))
            us, recall = statistics.median(times[name, way]), recalls[name, way]
            asked = way.rsplit(" for ", 1)[-1] if " for " in way else way.split(" by ")[0] if " by " in way else None
            best = own[asked] if asked else min(t for w, t in own.items() if recalls[name, w] >= 1)
            print(json.dumps(dict(set=name, way=way, recall=round(recall, 4), us=times[name, way])), file=sys.stderr)
            print(f"| {name} | {'**' + way + '**' if way in own else way} | {recall:.4f} | {us:.1f} | {'' if way in own else f'{us / best:.2f}'} |")


if __name__ == "__main__":
    main()
