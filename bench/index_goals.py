"""The goals of the index, each with what was measured, and what is printed."""

from __future__ import annotations

from typing import Any

_RATIOS = ((100_000, 3.0, 7.0), (1_000_000, 4.0, 9.0))
"""Vectors; times as fast as numpy float32 with numpy alone, and with a compiled kernel."""
_WORTH_FILTERING = 40_000
"""Vectors below which numpy compares all of them in less time than a few calls from Python take."""
_COMPILED = ("agora, simsimd", "agora, numkong")


def reached(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry a goal and set of vectors: what, how much is wanted, how much was found, whether that is enough."""
    goals: list[dict[str, Any]] = []

    def add(what: str, wanted: float, found: float, *, least: bool = True) -> None:
        enough = found >= wanted if least else found <= wanted
        goals.append({"goal": what, "wanted": wanted, "found": round(found, 4), "reached": enough})

    for run in runs:
        name, systems = f"{run['origin']} {run['vectors']:,}", run["systems"]
        ours = {key: value for key, value in systems.items() if key.startswith("agora")}
        add(f"{name}: recall@10", 0.99, min(one["recall@10"] for one in ours.values()))
        plain = systems["numpy float32"]["cpu_ms"]
        for size, numpy_alone, compiled in _RATIOS:
            if run["vectors"] != size:
                continue
            add(f"{name}: numpy alone, times as fast", numpy_alone, plain / systems["agora, numpy"]["cpu_ms"])
            best = [systems[key]["cpu_ms"] for key in _COMPILED if key in systems]
            if best:
                add(f"{name}: compiled kernel, times as fast", compiled, plain / min(best))
        if run["vectors"] >= _WORTH_FILTERING:
            filtered = [one["cpu_ms"] for key, one in run["filters"]["0.01"].items() if key.startswith("agora")]
            add(f"{name}: filter of 1 %, share of unfiltered numpy", 0.1, max(filtered) / plain, least=False)
        add(f"{name}: empty check, microseconds", 10.0, run["empty_check"]["check_us"], least=False)
        files, rows = (run["opening"][way]["open"]["cpu_ms"] for way in ("files", "rows"))
        add(f"{name}: files open, times as fast as rows", 10.0, rows / files)
    return goals


def told(run: dict[str, Any]) -> str:
    """What a person wants to see of one set of vectors."""
    lines = [f"\n{run['origin']}, {run['vectors']:,} vectors"]
    plain = run["systems"]["numpy float32"]["cpu_ms"]
    for name, one in run["systems"].items():
        lines.append(
            f"  {name:16} {one['cpu_ms']:9.3f} ms  {plain / one['cpu_ms']:5.1f} x"
            f"  recall {one['recall@10']:.4f}  {one['bytes_per_vector']:.0f} bytes"
        )
    lines += [f"  {name:16} {why}" for name, why in run["left_out"].items()]
    for share, asked in run["filters"].items():
        each = ", ".join(f"{name} {one['cpu_ms']:.3f} ({one['recall@10']:.3f})" for name, one in asked.items())
        lines.append(f"  filter {float(share):.0%}: {each}")
    empty = run["empty_check"]
    lines.append(f"  empty check {empty['check_us']} of {empty['with_look_us']} microseconds")
    for way, one in run["opening"].items():
        memory = one["memory_bytes"].get("private")
        lines.append(
            f"  opened by {way}: {one['open']['cpu_ms']:.1f} ms CPU,"
            f" first query {one['first_query']['cpu_ms']:.1f},"
            f" start to answer {one['start_to_answer_wall_ms']:.0f} ms wall"
            + ("" if memory is None else f", {memory / run['vectors']:.0f} private bytes a vector")
        )
    return "\n".join(lines)


def summary(report: dict[str, Any]) -> str:
    """The goals, one a line, and how long it all took."""
    lines = [
        f"{'reached' if goal['reached'] else 'MISSED '} {goal['goal']}: {goal['found']} ({goal['wanted']})"
        for goal in report["goals"]
    ]
    return "\n".join(["", *lines, f"{report['seconds']:.0f} seconds"])
