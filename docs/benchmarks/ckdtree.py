"""Times scipy's cKDTree: k nearest of 1,024 places of the cities, or rows of the atmosphere, that are not in the tree, one core, microseconds of processor per query, the least of some rounds.

    python3 docs/benchmarks/ckdtree.py DATA

"degrees to metres" is what a search for places is asked and answers: unit vectors of degrees are computed, and metres of chords.
"""
import csv
import gzip
import pathlib
import sys
import time

import numpy
from scipy.spatial import cKDTree

EARTH = 6371008.8  # its mean radius in metres
data = pathlib.Path(sys.argv[1])
rng = numpy.random.default_rng(1)

places = []
with gzip.open(data / "cities15000" / "cities15000.txt.gz", "rt", encoding="utf-8") as f:
    for line in f:
        fields = line.split("\t")
        places.append((float(fields[4]), float(fields[5])))
places = rng.permutation(places)

air = []
with gzip.open(data / "nasa_atmos" / "atmos.csv.gz", "rt", encoding="utf-8") as f:
    for row in csv.DictReader(f):
        try:
            air.append([float(x) for x in list(row.values())[4:]])
        except ValueError:  # a field is missing
            continue
air = rng.permutation(air)
air = (air - air.mean(axis=0)) / air.std(axis=0)


def unit(degrees):
    latitude, longitude = numpy.radians(degrees).T
    flat = numpy.cos(latitude)
    return numpy.stack([flat * numpy.cos(longitude), flat * numpy.sin(longitude), numpy.sin(latitude)], axis=1)


def metres(chords):
    return 2 * EARTH * numpy.arcsin(numpy.minimum(chords / 2, 1))


def same(values):
    return values


sets = {  # rows of the tree, what is asked, what makes a row of it, what makes a distance of the tree's, and its p
    "unit vectors": (unit(places), unit(places), same, same, 2),
    "degrees to metres": (unit(places), places, unit, metres, 2),
    "l2, 2 dimensions": (places, places, same, same, 2),
    "atmosphere, l1, 7 dimensions": (air, air, same, same, 1),
}
for name, (rows, questions, prepare, report, p) in sets.items():
    objects, asked = rows[:-1024], questions[-1024:]
    for leaf in (8, 16):
        tree = cKDTree(objects, leafsize=leaf)
        for k in (1, 8, 10, 32, 100):
            took = []
            for _ in range(30):
                began = time.process_time()
                distances, _ = tree.query(prepare(asked), k=k, p=p)
                report(distances)
                took.append(time.process_time() - began)
            print(f"{name}, leaves of {leaf}, k = {k}: {min(took) / len(asked) * 1e6:.2f} us")
