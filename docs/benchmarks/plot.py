"""Draws the lines of `geniemq bench scale` and prints them as a table.

    python3 docs/benchmarks/plot.py NAME.svg FILE...

Files hold JSON lines, anything else in them is skipped. One panel per axis, one curve per workload: match + select of a batch;
dotted: the whole call.

Of `geniemq bench capacity` it draws the distances by the capacity of a tree, a panel per data set, a curve per question; dotted: what was expected; where NAME
has time in it, the time of a query. The table has the expected by the measured. Of `geniemq bench growth`, where NAME has growth in it, it draws the time of a query by
the share of the objects, a panel per data set, a curve per way.
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


def measurements(paths, name):
    """The lines of one of the measurements of searches by distance."""
    for path in paths:
        with open(path) as f:
            for text in f:
                if text.startswith(f'{{"measurement":"{name}"'):
                    yield json.loads(text)


def capacities(paths):
    lines = {}
    for r in measurements(paths, "capacity"):
        asked = f'r = {r["radius"]:g}' if r.get("radius") else f'k = {r["k"]}'
        lines.setdefault((r["set"], r["bounds"], asked), []).append(r)
    return lines


def growths(paths):
    lines = {}
    for r in measurements(paths, "growth"):
        if r["distinct"] == 1:
            lines.setdefault((r["set"], r["method"]), []).append(r)
    return lines


def capacity_table(lines):
    print("| data | objects | bounds | asked | distances, % of the objects, capacity 4 to 128 | expected / measured | leaves, expected / measured |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (data, bounds, asked), points in lines.items():
        share = " / ".join(f'{100 * r["distances"] / r["objects"]:.3g}' for r in points)
        ratios = [" / ".join(f'{r["expected_" + what] / r[what]:.2f}' for r in points) for what in ("distances", "blocks")]
        print(f'| {data} | {points[0]["objects"]:,} | {bounds} | {asked} | {share} | {ratios[0]} | {ratios[1]} |')


def draw_capacities(lines, path):
    measured, expected, what = ("took_us", "expected_us", "us") if "time" in path else ("distances", "expected_distances", "distances")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib import ticker

    names = list(dict.fromkeys(data for data, bounds, _ in lines if bounds == "pivot"))
    rows = (len(names) + 3) // 4
    figure, panels = plt.subplots(rows, 4, figsize=(16, 3.6 * rows), squeeze=False)
    for name, panel in zip(names, panels.flat):
        curves = [(asked, points) for (data, bounds, asked), points in lines.items() if data == name and bounds == "pivot"]
        for i, (asked, points) in enumerate(curves):
            x = [r["capacity"] for r in points]
            panel.plot(x, [r[measured] for r in points], marker="o", color=f"C{i}", label=asked)
            panel.plot(x, [r[expected] for r in points], linestyle=":", color=f"C{i}")
        panel.set(title=f'{name}, {curves[0][1][0]["objects"]:,}', xlabel="capacity", xscale="log", yscale="log", xticks=x, xticklabels=x)
        panel.xaxis.set_minor_locator(ticker.NullLocator())
        low, high = panel.get_ylim()
        if high < 30 * low:  # too few powers of ten to read it by
            panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_minor_locator(ticker.NullLocator())
        panel.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=8)
    for panel in list(panels.flat)[len(names):]:
        panel.axis("off")
    panels[0][0].set_ylabel(f"{what} per query (dotted: expected)")
    figure.tight_layout()
    figure.savefig(path)


def growth_table(lines):
    print("| data | way | 20 / 40 / 60 / 80 / 100 % of the objects: distances per query | us |")
    print("| --- | --- | --- | --- |")
    for (data, method), points in lines.items():
        cells = [" / ".join(f"{r[what]:,.{digits}f}" for r in points) for what, digits in (("distances", 0), ("took_us", 1))]
        print(f"| {data} | {method} | {cells[0]} | {cells[1]} |")


def draw_growths(lines, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(data for data, _ in lines))
    figure, panels = plt.subplots(1, len(names), figsize=(3.6 * len(names), 3.6), squeeze=False)
    for name, panel in zip(names, panels[0]):
        for (data, method), points in lines.items():
            if data == name:
                dotted = method == "auto"
                panel.plot([100 * r["share"] for r in points], [r["took_us"] for r in points], marker="" if dotted else "o", linestyle=":" if dotted else "-", label=method)
        most = max(r["objects"] for (data, _), points in lines.items() if data == name for r in points)
        panel.set(title=f"{name}, {most:,}", xlabel="% of the objects", yscale="log", xticks=[20, 40, 60, 80, 100])
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=8)
    panels[0][0].set_ylabel("us per query, k = 8")
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    if "growth" in sys.argv[1] and (parts := growths(sys.argv[2:])):
        growth_table(parts)
        draw_growths(parts, sys.argv[1])
    elif trees := capacities(sys.argv[2:]):
        capacity_table(trees)
        draw_capacities(trees, sys.argv[1])
    else:
        found = read(sys.argv[2:])
        table(found)
        draw(found, sys.argv[1])
