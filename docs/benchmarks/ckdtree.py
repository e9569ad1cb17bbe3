"""Times scipy's cKDTree on the cities: k nearest of 1,024 places that are not in the tree, one core, microseconds of processor per query, the least of some rounds.

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
places = numpy.radians(numpy.array(places))
numpy.random.default_rng(1).shuffle(places)
latitude, longitude = places.T
sets = {
    "points (unit vectors)": numpy.stack([numpy.cos(latitude) * numpy.cos(longitude), numpy.cos(latitude) * numpy.sin(longitude), numpy.sin(latitude)], axis=1),
    "l2, 2 dimensions": numpy.degrees(places),
}
for name, rows in sets.items():
    objects, asked = rows[:-1024], rows[-1024:]
    for leaf in (8, 16):
        tree = cKDTree(objects, leafsize=leaf)
        for k in (1, 8, 10, 32, 100):
            took = []
            for _ in range(15):
                began = time.process_time()
                tree.query(asked, k=k)
                took.append(time.process_time() - began)
            print(f"{name}, leaves of {leaf}, k = {k}: {min(took) / len(asked) * 1e6:.2f} us")
