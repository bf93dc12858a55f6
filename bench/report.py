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
    "fit_score": ("The fit of the score", _fit_table, None),
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


def _bars(file: Path, groups: list[str], series: dict[str, list[float]], label: str) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - only a plot needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of the canvas

    figure, axes = plt.subplots(figsize=(8, 3.6), dpi=120)
    width = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        at = [group + place * width for group in range(len(groups))]
        axes.bar_label(axes.bar(at, values, width, label=name), fmt="%.2f", fontsize=7)
    axes.set_xticks([group + 0.4 - width / 2 for group in range(len(groups))], groups, fontsize=8)
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    # No date and no version inside: the same figures give the same bytes.
    figure.savefig(file, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
