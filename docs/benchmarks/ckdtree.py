"""Times scipy's cKDTree on the cities: k nearest of 1,024 places that are not in the tree, one core, microseconds of processor per query, the least of some rounds.

"degrees to metres" is what a search for places is asked and answers: unit vectors of degrees are computed, and metres of chords.

    python3 docs/benchmarks/ckdtree.py DATA/cities15000/cities15000.txt.gz
"""
import gzip
import sys
import time

import numpy
from scipy.spatial import cKDTree

places = []
with gzip.open(sys.argv[1], "rt", encoding="utf-8") as f:
    for line in f:
        fields = line.split("\t")
        places.append((float(fields[4]), float(fields[5])))
places = numpy.array(places)
numpy.random.default_rng(1).shuffle(places)
EARTH = 6371008.8  # its mean radius in metres


def unit(degrees):
    latitude, longitude = numpy.radians(degrees).T
    flat = numpy.cos(latitude)
    return numpy.stack([flat * numpy.cos(longitude), flat * numpy.sin(longitude), numpy.sin(latitude)], axis=1)


def metres(chords):
    return 2 * EARTH * numpy.arcsin(numpy.minimum(chords / 2, 1))


def same(values):
    return values


sets = {  # rows of the tree, what is asked, what makes a row of it, what makes a distance of the tree's
    "unit vectors": (unit(places), unit(places), same, same),
    "degrees to metres": (unit(places), places, unit, metres),
    "l2, 2 dimensions": (places, places, same, same),
}
for name, (rows, questions, prepare, report) in sets.items():
    objects, asked = rows[:-1024], questions[-1024:]
    for leaf in (8, 16):
        tree = cKDTree(objects, leafsize=leaf)
        for k in (1, 8, 10, 32, 100):
            took = []
            for _ in range(60):
                began = time.process_time()
                distances, _ = tree.query(prepare(asked), k=k)
                report(distances)
                took.append(time.process_time() - began)
            print(f"{name}, leaves of {leaf}, k = {k}: {min(took) / len(asked) * 1e6:.2f} us")
