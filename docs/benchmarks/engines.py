"""Two builds of geniemq in turns: medians of match + select and of whole calls, ratios of pairs with their 95 % interval by bootstrap.

    python3 docs/benchmarks/engines.py OLD NEW CACHE DATA ROUNDS OUT.jsonl w1:1000000 w2:1500000 w3:2000000 w4:976840
"""
import json, os, random, statistics, subprocess, sys

old, new, cache, data, rounds, out = sys.argv[1:7]
os.makedirs(cache, exist_ok=True)  # builds of before the house do not make it
binaries = {"before": old, "after": new}


def run(which, name, objects, queries, runs):
    r = subprocess.run([binaries[which], "bench", "engine", "--engine", "cuda", "--workload", name, "--objects", objects, "--runs", str(runs), "--queries",
                        str(queries), "--checks", "1", "--cache", cache, "--data", data], capture_output=True, text=True)
    try:
        line = json.loads(r.stdout)
    except ValueError:
        sys.exit(f"{which} {name}: {r.stdout} {r.stderr}")
    line["build"] = which
    with open(out, "a") as f:
        f.write(json.dumps(line) + "\n")
    return line


def interval(ratios):
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(10_000))
    return medians[250], medians[9749]


for queries, runs in ((1024, 101), (1, 301)):
    for arg in sys.argv[7:]:
        name, objects = arg.split(":")
        lines = {"before": [], "after": []}
        for i in range(int(rounds)):
            for which in (("before", "after") if i % 2 == 0 else ("after", "before")):
                lines[which].append(run(which, name, objects, queries, runs))
        wrong = sum(l["mismatches"] for ls in lines.values() for l in ls)
        text = f"{name} {objects} x{queries} wrong {wrong}"
        for field in ("match_select_ms", "total_ms"):
            b, a = ([l[field] for l in lines[w]] for w in ("before", "after"))
            ratios = [y / x for x, y in zip(b, a)]
            low, high = interval(ratios)
            text += f" | {field} {statistics.median(b):.3f} {statistics.median(a):.3f} ratio {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})"
        print(text, flush=True)
