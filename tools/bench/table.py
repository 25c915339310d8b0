"""The paired table: measures its rows, judges them, and prints them.

Each row is measured in rounds; in each, Lathe and the peers that are still in
run once, in an order that turns from round to round. All peers run in the
warm-up round; only those near the best of their family stay in.
"""

import json
import os
import pathlib
import statistics
import sys

import programs
import table_rows
from programs import BenchError

# A peer below this share of its family's best in the warm-up round cannot become
# the best by noise, and is not run again.
STAYS_IN = 0.8
STEP_DEPTH = 128  # Tokens behind each row of a step
STEP_RUNS = 64


def spread(values: list) -> dict:
    """Median, smallest and largest."""
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


def run_lathe(lathe, row) -> tuple:
    """(speed, limits) of one run; speed is 1/s for times, more is better."""
    if row.kind == "decode":
        return lathe.decode(row.tokens, row.depth, row.threads, row.head)
    if row.kind == "prefill":
        return lathe.prefill(row.tokens, row.threads)
    if row.kind == "together":
        # All steps at the depth that is their mean.
        depth = row.depth + row.tokens // 2
        return lathe.together(row.sequences, depth, row.tokens, row.threads)
    if row.kind == "step":
        speed, limits = lathe.together(
            row.sequences, STEP_DEPTH, STEP_RUNS, row.threads
        )
        return speed / row.sequences, limits
    seconds, limits = lathe.first(row.threads)
    return 1 / seconds, limits


def run_peer(peer, row) -> float:
    if row.kind == "decode":
        return peer.decode(row.tokens, row.depth, row.threads)
    if row.kind == "prefill":
        return peer.prefill(row.tokens, row.threads)
    if row.kind == "together":
        return peer.together(row.sequences, row.depth, row.tokens, row.threads)
    return 1 / peer.first(row.threads)


def best_of(figures: dict, family: list) -> str | None:
    """The name with the best median among those with figures."""
    names = [peer.name for peer in family if figures.get(peer.name)]
    return max(names, key=lambda n: statistics.median(figures[n]), default=None)


def in_unit(row, speed: float) -> float:
    """A speed of run_lathe or run_peer in the row's unit."""
    return {"s": 1 / speed, "ms": 1e3 / speed}.get(row.unit, speed)


def measure_rounds(row, lathe, peers: list, rounds: int, say) -> tuple:
    """Figures by name (a list over rounds), the limits of each of Lathe's runs,
    and the peers that left after the warm-up with their figure then."""
    contenders = [lathe] + ([] if row.kind == "step" else list(peers))
    figures = {c.name: [] for c in contenders}
    limits, left = [], {}
    for turn in range(rounds + 1):
        say(f"{row.title}: " + (f"round {turn} of {rounds}" if turn else "warm-up"))
        warm = {}
        first = turn % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            if contender is lathe:
                speed, limit = run_lathe(lathe, row)
                limits += [limit] if turn else []
            else:
                speed = run_peer(contender, row)
            warm[contender.name] = speed
            if turn:
                figures[contender.name].append(speed)
        if not turn:
            for family in {c.family for c in contenders[1:]}:
                own = [c for c in contenders[1:] if c.family == family]
                best = max(warm[c.name] for c in own)
                for c in own:
                    if warm[c.name] < STAYS_IN * best:
                        left[c.name] = in_unit(row, warm[c.name])
            contenders = [c for c in contenders if c.name not in left]
    return figures, limits, left


def judge(row, bar, model, measured: tuple, peers: list, one_row_step) -> dict:
    """A row's entry of the result. one_row_step: Lathe's times of a step of one
    row, by round, if measured."""
    figures, limits, left = measured
    own = figures["Lathe"]
    entry = {
        "id": row.id,
        "title": row.title,
        "unit": row.unit,
        "lathe": spread([in_unit(row, v) for v in own]),
        "families": {},
        "left_after_warm_up": left,
        "bar": bar.text(),
    }
    shares = []
    for speed, limit in zip(own, limits):
        if limit.get("compute_share") is not None and row.kind == "prefill":
            shares.append(limit["compute_share"])
        elif "bandwidth" in limit:
            most = table_rows.limit(row, model, limit["bandwidth"])
            shares += [speed / most] if most else []
    share = statistics.median(shares) if shares else None
    if shares:
        entry["share_of_limit"] = spread(shares)
        arithmetic = limits[0].get("arithmetic")
        entry["limit_is"] = arithmetic if row.kind == "prefill" else "bandwidth"
    bandwidths = [x["bandwidth"] for x in limits if "bandwidth" in x]
    if bandwidths:
        entry["bandwidth_bytes_per_second"] = spread(bandwidths)
    for family in sorted({p.family for p in peers}, reverse=True):
        best = best_of(figures, [p for p in peers if p.family == family])
        if best is not None:
            entry["families"][family] = {
                "best": best,
                "figure": spread([in_unit(row, v) for v in figures[best]]),
                "ratio": spread([a / b for a, b in zip(own, figures[best])]),
                "all": {
                    p.name: spread([in_unit(row, v) for v in figures[p.name]])
                    for p in peers
                    if p.family == family and figures[p.name]
                },
            }
    step = None
    if row.kind == "step" and row.sequences > 1 and one_row_step:
        times = [1 / v for v in own]
        entry["of_one_row"] = spread([a / b for a, b in zip(times, one_row_step)])
        step = entry["of_one_row"]["median"]
    seconds = entry["lathe"]["median"] if row.kind == "first" else None
    ratio = entry["families"].get("llama.cpp", {}).get("ratio", {}).get("median")
    entry["met"] = bar.met(ratio, share, seconds, step)
    ik = entry["families"].get("ik_llama.cpp")
    if ik:
        ik["ahead"] = ik["ratio"]["median"] >= 1
    return entry


def measure_steps(rows: list, lathe, rounds: int, say) -> dict:
    """Steps of several row counts are compared with each other: they alternate
    as peers do. Row id -> what measure_rounds gives."""
    result = {row.id: ({"Lathe": []}, [], {}) for row in rows}
    for turn in range(rounds + 1):
        say("steps: " + (f"round {turn} of {rounds}" if turn else "warm-up"))
        first = turn % len(rows)
        for row in rows[first:] + rows[:first]:
            speed, limit = run_lathe(lathe, row)
            if turn:
                result[row.id][0]["Lathe"].append(speed)
                result[row.id][1].append(limit)
    return result


def measure_model(rows, bars, model, lathe, peers, rounds, say, on_row) -> None:
    """Measures all rows; on_row gets each entry, also that of a row that failed
    ("error")."""

    def add(row, measure, one_row_step=None):
        try:
            measured = measure()
        except BenchError as error:
            say(str(error))
            on_row({"id": row.id, "title": row.title, "error": str(error)})
            return
        bar = bars.get(row.id, table_rows.Bar())
        on_row(judge(row, bar, model, measured, peers, one_row_step))

    for row in rows:
        if row.kind != "step":
            add(row, lambda row=row: measure_rounds(row, lathe, peers, rounds, say))
    steps = [row for row in rows if row.kind == "step"]
    if not steps:
        return
    try:
        measured = measure_steps(steps, lathe, rounds, say)
    except BenchError as error:
        say(str(error))
        for row in steps:
            on_row({"id": row.id, "title": row.title, "error": str(error)})
        return
    one = next((r for r in steps if r.sequences == 1), None)
    base = [1 / v for v in measured[one.id][0]["Lathe"]] if one else None
    for row in steps:
        add(row, lambda row=row: measured[row.id], base)


def number(value: float, unit: str) -> str:
    if unit == "tokens/s":
        return f"{value:.1f}" if value < 1000 else f"{value:.0f}"
    return f"{value:.3f} s" if unit == "s" else f"{value:.2f} ms"


def markdown(result: dict) -> str:
    """The whole result as docs/performance.md holds it."""
    here = result["machine"]
    lines = [
        f"CPU: {here['cpu']}, {here['cores']} cores ({' '.join(here['features'])}). "
        f"Load before: {here['load']:.1f}, at most {result['load_max']:.1f} during. "
        f"Medians of {result['rounds']} round" + "s" * (result["rounds"] > 1)
        + (", quick: fewer tokens than the bars are for." if result["quick"] else ".")
        + (" All run code for AVX2." if result["isa"] else "")
    ]
    for model in result["models"]:
        families = ["llama.cpp"] + (["ik_llama.cpp"] if result["ik"] else [])
        heads = ["work", "Lathe"]
        heads += [h for f in families for h in (f"best {f}", "ratio")]
        heads += ["% of limit", "bar", "met"]
        bandwidth = model_bandwidth(model)
        lines += ["", f"**{model['name']}**, {model['weights'] / 1e6:.1f} MB a token"]
        if bandwidth:
            lines[-1] += f", memory {bandwidth / 1e9:.1f} GB/s (median)"
        lines += [
            "",
            "| " + " | ".join(heads) + " |",
            "|---|---:|" + "---|---:|" * len(families) + "---:|---|---|",
        ]
        lines += [row_line(row, families) for row in model["rows"]]
    return "\n".join(lines)


def model_bandwidth(model: dict) -> float | None:
    """Over the rows that ran on all threads."""
    values = [
        row["bandwidth_bytes_per_second"]["median"]
        for row in model["rows"]
        if "bandwidth_bytes_per_second" in row and row["id"] != "decode-1"
    ]
    return statistics.median(values) if values else None


def row_line(row: dict, families: list) -> str:
    if "error" in row:
        cells = [row["title"], f"not measured: {row['error']}"]
        cells += ["–"] * (2 * len(families) + 3)
        return "| " + " | ".join(c.replace("|", "/") for c in cells) + " |"
    cells = [row["title"], number(row["lathe"]["median"], row["unit"])]
    for family in families:
        entry = row["families"].get(family)
        if not entry:
            step = row.get("of_one_row")
            of_one = f"{step['median']:.2f} of one row's" if step else "–"
            cells += ["–", of_one if family == families[0] else "–"]
            continue
        ratio = entry["ratio"]
        best = number(entry["figure"]["median"], row["unit"])
        cells.append(f"{best} ({entry['best'].removeprefix(family).strip()})")
        cells.append(
            f"{ratio['median']:.2f} ({ratio['min']:.2f}–{ratio['max']:.2f})"
            + ("" if entry.get("ahead", True) else " behind")
        )
    share = row.get("share_of_limit")
    kind = row.get("limit_is")
    note = f" {kind}" if kind not in (None, "bandwidth") else ""
    cells.append(f"{share['median'] * 100:.0f} %{note}" if share else "–")
    cells += [row["bar"], {True: "yes", False: "**no**", None: "–"}[row["met"]]]
    return "| " + " | ".join(cells) + " |"


def choose(rows: list, ids) -> list:
    """Those of the ids given (None: all)."""
    return [row for row in rows if ids is None or row.id in ids]


def make(arguments, models: dict) -> dict:
    """The whole table. models: path -> ModelBytes. arguments: those of
    against_llama. Writes --json after each row, so that nothing is lost."""
    folder = programs.peer_folder(*arguments.peer)
    result = {
        "machine": programs.machine(),
        "load_max": os.getloadavg()[0],
        "isa": arguments.isa,
        "rounds": arguments.pairs,
        "quick": arguments.quick,
        "ik": arguments.ik is not None,
        "models": [],
    }
    for path, model in models.items():
        profile = table_rows.profile(model)
        # What holds floats is compared with the same type only.
        with_q4_0 = not arguments.no_q4_0 and not model.floats
        peers = programs.peers(path, folder, arguments.ik, with_q4_0)
        lathe = programs.Lathe(arguments.lathe, arguments.engine or path)
        entry = {
            "name": path.name,
            "profile": profile,
            "weights": model.weights,
            "rows": [],
        }
        result["models"].append(entry)

        def on_row(row, entry=entry):
            entry["rows"].append(row)
            result["load_max"] = max(result["load_max"], os.getloadavg()[0])
            if arguments.json:
                text = json.dumps(result, indent=1) + "\n"
                pathlib.Path(arguments.json).write_text(text)

        def say(text, name=path.name):
            print(f"against_llama: {name}: {text}", file=sys.stderr, flush=True)

        chosen = choose(
            table_rows.rows(model, arguments.threads, arguments.quick), arguments.rows
        )
        measure_model(
            chosen,
            table_rows.BARS[profile],
            model,
            lathe,
            peers,
            arguments.pairs,
            say,
            on_row,
        )
    return result
