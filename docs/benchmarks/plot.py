"""Draws the lines of `geniemq bench scale` and prints them as a table.

    python3 docs/benchmarks/plot.py NAME.svg FILE...

Files hold JSON lines, anything else in them is skipped. One panel per axis, one curve per workload: match + select of a batch;
dotted: the whole call.
"""
import json
import sys

TITLES = {"n": "objects", "q": "queries in the batch", "k": "k", "density": "share of the objects in an item's lists"}


def read(paths):
    lines = {}
    for path in paths:
        with open(path) as f:
            for text in f:
                if text.startswith('{"axis"'):
                    r = json.loads(text)
                    lines.setdefault((r["axis"], r["workload"]), []).append(r)
    return lines


KERNELS = {"tile_queries": "(query, tile)", "sliced_queries": "shared decode", "filter_queries": "filter"}


def kernels(r):
    """The kernels that ran, the one with the most queries first."""
    done = [(r["achieved"].get(field, 0), name) for field, name in KERNELS.items()]
    return ", ".join(name if n == r["queries"] else f"{name} {n:,}" for n, name in sorted(done, reverse=True) if n > 0)


def table(lines):
    print("| axis | workload | point | match + select, ms | match | select | whole call | postings a query | kernel |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (axis, workload), points in sorted(lines.items()):
        for r in points:
            at = f'{r["density"]:.3f} (reach {max(0, r["point"])})' if axis == "density" else f'{r["point"]:,}'
            cells = [axis, workload, at, r["match_select_ms"], r.get("match_ms"), r.get("select_ms"), r["total_ms"]]
            cells = [f"{c:.3f}" if isinstance(c, float) else str(c) for c in cells]
            print("| " + " | ".join(cells + [f'{r["postings_scanned"] / r["queries"]:,.0f}', kernels(r)]) + " |")


def draw(lines, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = [a for a in TITLES if any(axis == a for axis, _ in lines)]
    figure, panels = plt.subplots(1, len(axes), figsize=(4.2 * len(axes), 3.8), squeeze=False)
    workloads = sorted({workload for _, workload in lines})
    for axis, panel in zip(axes, panels[0]):
        for (a, workload), points in sorted(lines.items()):
            if a != axis:
                continue
            x = [r["density"] if axis == "density" else r["point"] for r in points]
            color = f"C{workloads.index(workload)}"
            panel.plot(x, [r["match_select_ms"] for r in points], marker="o", color=color, label=workload)
            if axis in ("q", "k"):
                panel.plot(x, [r["total_ms"] for r in points], linestyle=":", color=color)
        scale = "linear" if axis == "density" else "log"
        panel.set(xlabel=TITLES[axis], xscale=scale, yscale=scale)
        if axis == "density":
            panel.set_ylim(bottom=0)
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=8)
    panels[0][0].set_ylabel("ms, match + select (dotted: whole call)")
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    found = read(sys.argv[2:])
    table(found)
    draw(found, sys.argv[1])
