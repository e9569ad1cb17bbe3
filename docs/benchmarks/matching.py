"""How right and how fast geniemq match and dedupe are on three pairs of catalogues whose right pairs people have found.

    go build -o build/geniemq ./cmd/geniemq
    GENIEMQ_DATA=.../data python3 docs/benchmarks/matching.py build/geniemq out      # pairs, plots and reports go into the folder out

Beside it, what counting alone makes of the same titles: pairs by how many words they have in common, by a definition of its own that asks no geniemq.
"""
import collections, csv, gzip, itertools, json, os, re, resource, statistics, subprocess, sys, time

program, out = sys.argv[1:3]
data = os.environ["GENIEMQ_DATA"]
ROUNDS = 3
SETS = [  # name, indexed, asked, gold, its columns of the asked and the indexed, columns that find candidates, those that mean the same, the best weights found
    ("DBLP in ACM", "er_dblp_acm/ACM", "er_dblp_acm/DBLP2", "er_dblp_acm/DBLP-ACM_perfectMapping.csv.gz", ("idDBLP", "idACM"), ("title", "title"), [],
     ["--weight", "venue=0.3", "--weight", "authors=2"]),
    ("Abt in Buy", "er_abt_buy/Buy", "er_abt_buy/Abt", "er_abt_buy/abt_buy_perfectMapping.csv", ("idAbt", "idBuy"), ("name", "name"), [], ["--weight", "price=0"]),
    ("Amazon in Google", "er_amazon_google/GoogleProducts", "er_amazon_google/Amazon", "er_amazon_google/Amzon_GoogleProducts_perfectMapping.csv.gz",
     ("idAmazon", "idGoogleBase"), ("title", "name"), ["name=title", "price=price", "manufacturer=manufacturer", "description=description"], ["--weight", "manufacturer=0"]),
]


def read(path):
    text = gzip.open(path, "rt", encoding="latin-1") if path.endswith(".gz") else open(path, encoding="latin-1")
    with text:
        return list(csv.DictReader(text))


def timed(*args):
    """Runs a command; its output, and the seconds that it took, by the clock and of a core."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    done = subprocess.run([program, *args], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, time.time() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def counting(indexed, asked, gold, columns, titles):
    """The best F1 by least count, one-to-one, of the 20 objects of each row that have most words in common with it."""
    objects = collections.defaultdict(list)
    for i, record in enumerate(indexed):
        for word in words(record[titles[1]]):
            objects[word].append(i)
    pairs = []
    for i, record in enumerate(asked):
        counts = collections.Counter(o for word in words(record[titles[0]]) for o in objects.get(word, ()))
        pairs += sorted((-count, i, o) for o, count in counts.items())[:20]
    key = list(asked[0])[0], list(indexed[0])[0]
    wanted = {(g[columns[0]].strip(), g[columns[1]].strip()) for g in gold}
    rows, taken, right, best = set(), set(), 0, (0, 0)
    for count, tied in itertools.groupby(sorted(pairs), lambda pair: pair[0]):
        for _, i, o in tied:
            if i not in rows and o not in taken:
                rows.add(i), taken.add(o)
                right += (asked[i][key[0]].strip(), indexed[o][key[1]].strip()) in wanted
        best = max(best, (2 * right / (len(rows) + len(wanted)), -count))
    return best


def as_one(path, indexed, asked, gold, columns, maps):
    """Writes both catalogues as one file, and the right pairs in it. Keys say which catalogue a row is of, which nothing else does."""
    indexed_by = dict(reversed(m.split("=")) for m in maps)
    rows = []
    for letter, records in (("a", asked), ("b", indexed)):
        for record in records:
            values = list(record.items())
            rows.append({"id": f"{letter}:{values[0][1].strip()}"} | {indexed_by.get(column, column) if letter == "a" else column: v for column, v in values[1:]})
    fields = list(dict.fromkeys(field for row in rows for field in row))
    for file, header, lines in ((path + ".csv", fields, rows), (path + "-gold.csv", ["a", "b"], [{"a": "a:" + g[columns[0]].strip(), "b": "b:" + g[columns[1]].strip()} for g in gold])):
        with open(file, "w", encoding="utf-8", newline="") as text:
            writer = csv.DictWriter(text, header)
            writer.writeheader()
            writer.writerows(lines)


def dedupe(path):
    """Its best F1, one-to-one and not, and the seconds of the first."""
    base = ["dedupe", path + ".csv", "--gold", path + "-gold.csv", "--min", "0", "--report", "json", "--quiet", "--output", path + "-pairs.csv"]
    runs = [timed(*base, "--one-to-one") for _ in range(ROUNDS)]
    best = {"one-to-one": json.loads(runs[0][0]), "--k 1": json.loads(timed(*base, "--k", "1")[0])}
    for what, report in best.items():
        b = report["best"]
        print(f"  dedupe of both as one file, {what}: F1 {b['f1']:.3f} at {b['threshold']:g}, precision {b['precision']:.3f}, recall {b['recall']:.3f};"
              f" {report['rows']} rows, {report['pairs_considered'] / 1e6:.2f} M pairs")
        print("    F1 by threshold:", " ".join(f"{q['threshold']:g}:{q['f1']:.3f}" for q in report["thresholds"]))
    print(f"    seconds, medians of {ROUNDS}: {statistics.median(r[1] for r in runs):.2f} by the clock, {statistics.median(r[2] for r in runs):.2f} of a core")


os.makedirs(out, exist_ok=True)
for name, indexed, asked, gold, columns, titles, maps, weights in SETS:
    path = [os.path.join(data, p) for p in (indexed + ".csv.gz", asked + ".csv.gz", gold)]
    short = name.lower().replace(" ", "-")
    index = os.path.join(out, short + ".gmq")
    timed("build", path[0], "--output", index)
    base = ["match", "--index", f"x={index}", "--input", path[1], "--gold", path[2], "--min", "0", "--report", "json", "--quiet", "--output", os.path.join(out, short + ".csv")]
    for m in maps:
        base += ["--map", m]
    walls, cores = [], []
    for _ in range(ROUNDS):
        text, wall, core = timed(*base, "--one-to-one", "--plot", os.path.join(out, short + ".svg"))
        report = json.loads(text)
        walls.append(wall), cores.append(core)
    weighed, loose = (json.loads(timed(*base, *more)[0])["best"] for more in (["--one-to-one"] + weights, ["--k", "1"]))
    f1, least = counting(read(path[0]), read(path[1]), read(path[2]), columns, titles)
    million = report["pairs_considered"] / 1e6
    print(f"{name}: {report['rows']} rows x {report['objects']} objects = {million:.2f} M pairs, {report['gold']} right")
    print("  F1 by threshold:", " ".join(f"{q['threshold']:g}:{q['f1']:.3f}" for q in report["thresholds"]))
    for what, best in (("as guessed", report["best"]), (" ".join(weights), weighed), ("not one-to-one, --k 1", loose)):
        print(f"  {what}: F1 {best['f1']:.3f} at {best['threshold']:g}, precision {best['precision']:.3f}, recall {best['recall']:.3f}")
    print(f"  counting alone: F1 {f1:.3f} at {least} words")
    print(f"  seconds, medians of {ROUNDS}: {statistics.median(walls):.2f} by the clock, {statistics.median(cores):.2f} of a core;"
          f" per million pairs {statistics.median(walls) / million:.2f} and {statistics.median(cores) / million:.2f}")
    both = os.path.join(out, short + "-both")
    as_one(both, read(path[0]), read(path[1]), read(path[2]), columns, maps)
    dedupe(both)
