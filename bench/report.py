"""Bench output as Markdown tables and PNG plots: `python -m bench.report bench/results --figures docs/figures`.

Every `*.json` of the folder that a benchmark wrote becomes one section of `docs/figures/report.md`; the tables between
the marks of README.md are replaced by the same text, so that no figure there is typed by hand.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import report_protocol, report_routing, report_summaries

Figures = dict[str, Any]


def main() -> None:
    """Render, write, and put the short tables into the README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("results", type=Path)
    parser.add_argument("--figures", type=Path, default=Path("docs/figures"))
    parser.add_argument("--readme", type=Path, default=Path("README.md"))
    options = parser.parse_args()
    options.figures.mkdir(parents=True, exist_ok=True)
    sections = []
    for name, (title, table, plot) in RENDERED.items():
        file = options.results / f"{name}.json"
        if not file.exists():
            continue
        figures = json.loads(file.read_text(encoding="utf-8"))
        text = table(figures)
        if plot is not None:
            plot(figures, options.figures / f"{name}.png")
            text += f"\n![{title}]({name}.png)\n"
        sections.append(f"## {title}\n\n{text}\n{_ran_on(figures)}\n")
        _replace(options.readme, name, table(figures))
    report = "# Figures\n\nMade by `python -m bench.report bench/results`; the raw output lies there.\n\n"
    (options.figures / "report.md").write_text(report + "\n".join(sections), encoding="utf-8")


def _start_table(figures: Figures) -> str:
    start, encoder = figures["start"], figures["encoder"]
    rows = [
        ("start to `tools/list`", f"{start['wall_ms']['median']:.0f} ms wall, {start['cpu_ms']['median']:.0f} ms CPU"),
    ]
    for at in figures["sizes"]:
        query, save = at["query"]["cpu_ms"]["median"], at["save"]["cpu_ms"]["median"]
        outside = query - encoder["query"]["median"]
        rows += [
            (f"query at {at['notes']:,} notes", f"{query:.1f} ms CPU, of which {outside:.1f} outside the encoder"),
            (f"save of a 40-token note at {at['notes']:,} notes", f"{save:.1f} ms CPU"),
            (
                f"first save after a start, model not loaded, {at['notes']:,} notes",
                f"{at['first_save_wall_ms']:.0f} ms",
            ),
            (f"memory with the model, {at['notes']:,} notes", f"{at['rss_mb']:.0f} MB resident"),
            (f"disk, {at['notes']:,} notes", f"{at['disk_mb']:.1f} MB"),
        ]
    rows.append(("installed, with every dependency", f"{figures['installed_mb']:.0f} MB"))
    peer = figures.get("peer", {})
    if "start" in peer:
        told = (
            f"start {peer['start']['wall_ms']['median']:.0f} ms wall, query {peer['query']['cpu_ms']['median']:.1f},"
            f" save {peer['save']['cpu_ms']['median']:.1f} ms CPU, {peer['rss_mb']:.0f} MB"
        )
        rows.append(("beside it: reference memory server (Node, substring search), 10,000 notes", told))
    return _table(("what", "median of 5"), rows)


def _start_plot(figures: Figures, file: Path) -> None:
    sizes = [at["notes"] for at in figures["sizes"]]
    series = {name: [at[name]["cpu_ms"]["median"] for at in figures["sizes"]] for name in ("query", "save")}
    _bars(file, [f"{size:,} notes" for size in sizes], series, "CPU milliseconds a call")


def _cache_table(figures: Figures) -> str:
    cpu = figures["cpu_ms"]
    rows = [(name, f"{cpu[name]['median']:.2f} ms") for name in ("L1 hit", "L2 hit", "miss", "no cache")]
    rows.append(("miss against no cache", f"{cpu['miss / no cache']['median']:.2f} x"))
    return _table(
        (f"query inside the service, {figures['notes']:,} notes, without the encoder", "CPU, median of 5"), rows
    )


def _smoke_table(figures: Figures) -> str:
    rows = []
    for name, one in figures["sets"].items():
        measure = {"scifact": "ndcg@10", "locomo": "any@10"}.get(name, "any@5")
        values = [f"{one['systems'][system][measure]:.3f}" for system in ("agora", "vectors", "bm25")]
        rows.append((f"{_NAMES.get(name, name)}: {measure} ({one['questions']} questions)", *values))
    return _table(("set", "Agora", "vectors alone", "BM25 alone"), rows)


def _smoke_plot(figures: Figures, file: Path) -> None:
    names = list(figures["sets"])
    series = {
        system: [figures["sets"][name]["systems"][system]["mrr"] for name in names]
        for system in ("agora", "vectors", "bm25")
    }
    _bars(file, [_NAMES.get(name, name) for name in names], series, "mean reciprocal rank")


def _fit_table(figures: Figures) -> str:
    rows = [
        (f"{name} ({row['questions']})", *(f"{row[kind]['recall@5']:.3f}" for kind in ("cosine", "coverage", "fitted")))
        for name, row in figures["figures"].items()
    ]
    return _table(("held-out questions, recall at 5", "cosine", "coverage", "score"), rows)


def _index_table(figures: Figures) -> str:
    runs = sorted(figures["runs"], key=lambda run: (run["vectors"], run["origin"]))
    names = list(dict.fromkeys(name for run in runs for name in run["systems"]))
    rows = [(_PEERS.get(name, name), *(_index_cell(run, name) for run in runs)) for name in names]
    best = [next(name for name in ("agora, simsimd", "agora, numpy") if name in run["systems"]) for run in runs]
    for share in runs[0]["filters"]:
        cells = (f"{run['filters'][share][name]['cpu_ms']:.2f} ms" for run, name in zip(runs, best, strict=True))
        rows.append((f"Agora, {float(share):.0%} of the rows allowed", *cells))
    files = [run["opening"]["files"] for run in runs]
    rows += [
        (
            "Agora opened from its files, from the rows",
            *(
                f"{run['opening']['files']['open']['cpu_ms']:.1f}, {run['opening']['rows']['open']['cpu_ms']:.0f} ms"
                for run in runs
            ),
        ),
        ("fresh process to first answer, wall", *(f"{one['start_to_answer_wall_ms']:.0f} ms" for one in files)),
        ("look whether anything changed", *(f"{run['empty_check']['check_us']:.1f} µs" for run in runs)),
        (
            "bytes a vector on disk",
            *(f"{run['systems'][name]['bytes_per_vector']:,.0f}" for run, name in zip(runs, best, strict=True)),
        ),
    ]
    head = ("ten nearest of", *(f"{run['vectors']:,} {run['origin']}" for run in runs))
    return _table(head, rows)


def _index_cell(run: Figures, name: str) -> str:
    one = run["systems"].get(name)
    if one is None:
        return "left out"
    times = run["systems"]["numpy float32"]["cpu_ms"] / one["cpu_ms"]
    return f"{one['cpu_ms']:.2f} ms, {times:.1f} x, recall {one['recall@10']:.3f}"


def _index_plot(figures: Figures, file: Path) -> None:
    runs = sorted((run for run in figures["runs"] if run["origin"] == "clustered"), key=lambda run: run["vectors"])
    names = dict.fromkeys(name for run in runs for name in run["systems"])
    series = {
        _PEERS.get(name, name): [
            (run["vectors"], run["systems"][name]["cpu_ms"]) for run in runs if name in run["systems"]
        ]
        for name in names
    }
    _curves(file, series, ("vectors", "CPU milliseconds a search"))


_PEERS = {
    "numpy float32": "numpy float32, matmul",
    "numpy vecdot": "numpy float32, vecdot",
    "faiss flat": "faiss, flat",
    "hnswlib": "hnswlib, approximate",
    "agora, numpy": "Agora, numpy alone",
    "agora, simsimd": "Agora, simsimd (default)",
    "agora, numkong": "Agora, numkong",
}


def _concurrency_table(figures: Figures) -> str:
    rows = [
        (
            str(one["writers"]),
            f"{one['saves_per_second']:,.0f}",
            f"{one['save_wait_ms']['median']:.1f} / {one['save_wait_ms']['worst']:.0f} ms",
            f"{one['smallest_share']:.2f}",
            f"{one['queries_per_second']:,.0f}",
            f"{one['query_wait_ms']['worst']:.0f} ms",
            str(one["locked"]),
        )
        for one in figures["writers"]
    ]
    head = (
        f"writers beside {figures['readers']} readers",
        "saves a second",
        "a save: median / worst",
        "smallest part of an equal share",
        "queries a second",
        "a query: worst",
        '"database is locked"',
    )
    peer = figures["peer"]
    told = (
        f"One reader: {peer['alone_queries_per_second']:,.0f} queries a second alone,"
        f" {peer['beside_queries_per_second']:,.0f} beside a process that writes once a second"
        f" ({peer['times_slower']:.2f} times slower)."
    )
    return f"{_table(head, rows)}\n{told}\n"


def _routing_table(figures: Figures) -> str:
    tables = (report_routing.goals(figures), report_routing.ranks(figures), report_routing.calls(figures))
    return "\n".join(_table(*each) for each in tables)


_NAMES = {
    "agentnotes:en": "agent notes, English",
    "agentnotes:it": "agent notes, Italian",
    "agentnotes:ru": "agent notes, Russian",
    "locomo": "LoCoMo turns, one store",
    "scifact": "SciFact",
}

RENDERED: dict[str, tuple[str, Callable[[Figures], str], Callable[[Figures, Path], None] | None]] = {
    "start_and_query": ("Start, save and query over stdio", _start_table, _start_plot),
    "cache": ("Cache", _cache_table, None),
    "retrieval_smoke": ("Retrieval", _smoke_table, _smoke_plot),
    "index": ("Vector index", _index_table, _index_plot),
    "concurrency": ("Writers and readers at once", _concurrency_table, None),
    "protocol": ("Cost of the protocol layer", lambda figures: _table(*report_protocol.cost(figures)), None),
    "start": (
        "Sessions of the shared server",
        lambda figures: _table(*report_protocol.beside_goals("a session of the shared server", figures)),
        None,
    ),
    "fleet": (
        "Four agents at once",
        lambda figures: _table(*report_protocol.beside_goals("four agents at once", figures)),
        None,
    ),
    "gateway": (
        "Calls through the gateway",
        lambda figures: _table(*report_protocol.beside_goals("a call of another server's tool, over stdio", figures)),
        None,
    ),
    "conformance": ("Conformance", lambda figures: _table(*report_protocol.conformance(figures)), None),
    "fit_score": ("The fit of the score", _fit_table, None),
    "routing": ("Routing by meaning", _routing_table, None),
    "summaries": (
        "Summaries without a language model",
        lambda figures: _table(*report_summaries.kept(figures)),
        None,
    ),
}


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _ran_on(figures: Figures) -> str:
    machine = figures["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if version)
    return (
        f"{machine['processor']}, {machine['cores']} cores; Python {machine['python']}, SQLite {machine['sqlite']};"
        f" {packages}."
    )


def _replace(readme: Path, name: str, table: str) -> None:
    text = readme.read_text(encoding="utf-8")
    mark = re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- /bench -->)", re.DOTALL)
    readme.write_text(mark.sub(lambda found: f"{found[1]}{table}{found[2]}", text), encoding="utf-8")


def _curves(file: Path, series: dict[str, list[tuple[float, float]]], labels: tuple[str, str]) -> None:
    figure, axes = _canvas()
    for name, points in series.items():
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    _finish(figure, axes, file)


def _bars(file: Path, groups: list[str], series: dict[str, list[float]], label: str) -> None:
    figure, axes = _canvas()
    width = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        at = [group + place * width for group in range(len(groups))]
        axes.bar_label(axes.bar(at, values, width, label=name), fmt="%.2f", fontsize=7)
    axes.set_xticks([group + 0.4 - width / 2 for group in range(len(groups))], groups, fontsize=8)
    axes.set_ylabel(label)
    _finish(figure, axes, file)


def _canvas() -> tuple[Any, Any]:
    import matplotlib as mpl  # noqa: PLC0415 - only a plot needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of the canvas

    figure, axes = plt.subplots(figsize=(8, 3.6), dpi=120)
    return figure, axes


def _finish(figure: Any, axes: Any, file: Path) -> None:
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    # No date and no version inside: the same figures give the same bytes.
    figure.savefig(file, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
