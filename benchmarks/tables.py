"""Write the tables of README.md from results/*.json, so that no figure is copied by hand.

    python benchmarks/tables.py

Each table stands between a line ``<!-- name -->`` and a line ``<!-- end -->``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cost import table as cost_table
from families import families
from limits import head as limits_head

HERE = Path(__file__).resolve().parent
Row = dict[str, Any]

BUSY = 0.25
"""Processor cores of other programs from which on a table names each row's load."""


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def by_work(rows: Iterable[Row]) -> dict[str, list[Row]]:
    works: dict[str, list[Row]] = {}
    for row in rows:
        works.setdefault(row["work"], []).append(row)
    return works


class Origin:
    """Where rows come from: what they share goes into a line, what differs into columns."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._names: dict[str, dict[str, str]] = {}
        """Of each thing that differs, what its values are called in the column."""
        said = []
        for what in ("commit", "date", "machine"):
            values = list(dict.fromkeys(_told(row, what) for row in rows))
            if len(values) == 1:
                said.append(f"{what} {values[0]}")
                continue
            self._names[what] = {value: value for value in values}
            if what == "machine":  # too long for a column
                letters = {value: chr(ord("A") + i) for i, value in enumerate(values)}
                self._names[what] = letters
                said += [f"machine {letter}: {value}" for value, letter in letters.items()]
        loads = [row["load"] for row in rows if row["load"] is not None]
        if loads and max(loads) > BUSY:
            self._names["load"] = {_told(row, "load"): _told(row, "load") for row in rows}
        least, most = (f"{f(loads):.1f}" if loads else "" for f in (min, max))
        load = f"{least} to {most} cores" if least != most else f"{most} cores"
        said.append(f"load of other programs: {load if loads else NOT_NOTED}")
        self.line = f"{'; '.join(said)}."
        self.line = self.line[0].upper() + self.line[1:]
        self.header = list(self._names)

    def cells(self, row: Row) -> list[str]:
        return [names[_told(row, what)] for what, names in self._names.items()]


NOT_NOTED = "not noted"


def _told(row: Mapping[str, Any], what: str) -> str:
    return NOT_NOTED if row[what] is None else str(row[what])


def spread(runs: Sequence[float], digits: int = 0) -> str:
    """The slowest and the fastest turn, in brackets."""
    if len(runs) < 2:
        return ""
    return f" ({number(min(runs), digits)} to {number(max(runs), digits)})"


def faster_by(row: Row) -> str:
    """The median of the ratios of neighbouring turns, and the least and greatest of them."""
    if row["runs"] == row["ours"]["runs"]:
        return "1.00"
    turns = zip(row["ours"]["runs"], row["runs"], strict=False)
    ratios = [ours / its for ours, its in turns]
    rising = ", still warming up" if row["flat"] is False else ""
    return f"{row['ours_is_faster_by']:.2f}{spread(ratios, 2)}{rising}"


def versions(rows: Sequence[Row]) -> str:
    """The versions of the programs beside ours, in a sentence."""
    others = (row for row in rows if not row["system"].startswith("dragoman"))
    told = dict.fromkeys(f"{row['system']} {row['version']}" for row in others)
    return f"Versions: {', '.join(told)}."


def train(results: Row) -> str:
    origin = Origin(results["rows"])
    parts = [f"{origin.line} {versions(results['rows'])}"]
    for work, rows in by_work(results["rows"]).items():
        header = ["", "kind", "precision", "target tokens/s", "ours is faster by", "memory, MB",
                  "updates: warming up + timed", "loss held out", "ours then",
                  "share of the precision's rate", *origin.header]  # fmt: skip
        cells = []
        if has_tiles := any("share_of_tiles" in row for row in rows):
            header.insert(-len(origin.header) or len(header), "share of the tiles' peak")
        for row in rows:
            timed, share = row["updates_of_a_turn"] * len(row["runs"]), row["share_of_products"]
            of_tiles = row.get("share_of_tiles")
            cells.append((
                row["system"], row["kind"], row["precision"],
                number(row["median"]) + spread(row["runs"]), faster_by(row),
                number(row["memory_mb"]), f"{row['updates'] - timed} + {timed}",
                number(row["held_out_nll"], 3), number(row["ours"]["held_out_nll"], 3),
                "" if share is None else f"{100 * share:.0f} %",
                *(["" if of_tiles is None else f"{100 * of_tiles:.1f} %"] if has_tiles else []),
                *origin.cells(row),
            ))  # fmt: skip
        parts.append(f"`{work}`\n\n{markdown(header, cells)}")
    return "\n\n".join(parts)


def ways(results: Row) -> str:
    origin = Origin(results["rows"])
    parts = [origin.line]
    for work, rows in by_work(results["rows"]).items():
        header = ["way", "precision", "threads", "products, GOP/s", "tokens/s", "", *origin.header]
        cells = [
            (kernels, precision, threads, number(gops), number(rate), why, *origin.cells(row))
            for row in rows
            for kernels, precision, threads, gops, rate, why in row["ways"]
        ]
        parts.append(f"{work}\n\n{markdown(header, cells)}")
    return "\n\n".join(parts)


def limits(results: Row) -> str:
    origin = Origin(results["rows"])
    parts = [origin.line]
    for row in results["rows"]:
        whole = "step" if row["precision"] == "int8" else "update"
        places = 3 if whole == "step" else 1
        about = (
            f"{row['work']}, {row['precision']}: {number(row['milliseconds'], places)} ms; at "
            f"most {number(row['peak'] / 1e9)} GOP/s and {number(row['copied'] / 1e9)} GB/s"
        )
        table = markdown(limits_head(whole), row["kernels"])
        parts.append(f"{_titled(about, row, origin)}\n\n{table}")
    return "\n\n".join(parts)


def translate(results: Row) -> str:
    def key(row: Row) -> tuple[str, str, str]:
        return row["system"], row["kind"], row["vocabulary"]

    origin = Origin(results["rows"])
    parts = [f"{origin.line} {versions(results['rows'])}"]
    for work, rows in by_work(results["rows"]).items():
        latency = {(key(r), r["measure"]): r["median"] for r in rows if r["measure"] != "speed"}
        speeds = [row for row in rows if row["measure"] == "speed"]
        scored = any(row["bleu"] is not None for row in speeds)
        header = ["", "kind", "vocabulary", "precision", "sentences", "sentences/s",
                  "ours is faster by", *(["BLEU", "at its best"] if scored else []),
                  "same as ours", "memory, MB", "one sentence, ms: median", "95th",
                  *origin.header]  # fmt: skip
        cells = []
        for row in speeds:
            digits = 0 if row["median"] > 99 else 1
            cells.append((
                *key(row), row["precision"], number(row["sentences"]),
                number(row["median"], digits) + spread(row["runs"], digits), faster_by(row),
                *([_bleu(row), _best_bleu(row)] if scored else []),
                _same(row), number(row["memory_mb"]),
                number(latency.get((key(row), "latency-median")), 2),
                number(latency.get((key(row), "latency-p95")), 2), *origin.cells(row),
            ))  # fmt: skip
        parts.append(f"`{work}` ({speeds[0]['weights']} weights)\n\n{markdown(header, cells)}")
    return "\n\n".join(parts)


def _bleu(row: Row) -> str:
    """With the α that it was timed with; greedy search knows none."""
    if row["bleu"] is None or row["alpha"] is None:
        return number(row["bleu"], 2)
    return f"{row['bleu']:.2f} (α {row['alpha']:g})"


def _best_bleu(row: Row) -> str:
    scores = {float(alpha): score for alpha, score in row["bleu_by_alpha"].items()}
    if not scores:
        return ""
    best = max(scores, key=lambda alpha: scores[alpha])
    return f"{scores[best]:.2f} (α {best:g})"


def _same(row: Row) -> str:
    """Shortlists of random tokens say nothing about outputs."""
    is_random = row["weights"] == "random" and row["vocabulary"] == "shortlist"
    return "" if is_random else f"{100 * row['identical_to_ours']:.1f} %"


def serve(results: Row) -> str:
    loads = [("arrays", results["arrays"]), ("single sentences", results["single"]),
             ("single sentences", results["single_eight_clients"])]  # fmt: skip
    header = ["", "clients", "seconds", "requests", "errors", "sentences/s", "p50, ms", "p95, ms",
              "processor seconds: clients", "server"]  # fmt: skip
    cells = [
        (
            f"{name} of {load['sentences_each']}" if name == "arrays" else name, load["clients"],
            number(load["seconds"]), number(load["requests"]), load["errors"],
            number(load["sentences_per_second"]), number(load["p50_ms"], 1),
            number(load["p95_ms"], 1), number(load["client_cpu_seconds"], 1),
            number(load["server_cpu_seconds"], 1),
        )
        for name, load in loads
    ]  # fmt: skip
    before, after = results["offline_sentences_per_second"]
    memory = results["memory_mib"]
    first, last = memory["over_time"][0], memory["over_time"][-1]
    share = results["arrays_share_of_offline"]
    of_free = results["arrays_share_of_offline_on_free_cores"]
    noticed = [
        (_attack(row), *(number(value, 0) for value in (*row["health_ms"], *row["sentence_ms"])))
        for row in results.get("neighbour", ())
    ]
    titles = ("attack", "/health: p50, ms", "p99, ms", "a sentence: p50, ms", "p99, ms")
    neighbour = (
        f"\n\nWhat another client notices:\n\n{markdown(titles, noticed)}" if noticed else ""
    )
    return (
        f"{Origin([results]).line}\n\n{markdown(header, cells)}\n\n"
        f"Offline, the same sentences: {before:,.0f} sentences/s before, {after:,.0f} after. "
        f"The arrays had {100 * share:.1f} % of that, {100 * of_free:.1f} % of what the clients "
        f"left free. Memory {first:.0f} MiB at first, {last:.0f} at last, {memory['most']:.0f} at "
        f"most.{neighbour}"
    )


def _attack(row: Row) -> str:
    task = row.get("task", "translation")
    return row["attack"] if task == "translation" else f"{task}: {row['attack']}"


def neighbour(results: Row) -> str:
    """What another client notices before and now: median and 99th of a hundred.

    A row with a commit of its own was measured again after the others; it is marked by "*".
    """
    found: dict[str, dict[str, Row]] = {}
    for row in results["neighbour"]:
        found.setdefault(_attack(row), {})[row["tree"]] = row
    header = ("attack", "/health, before", "an answer, before", "/health, now", "an answer, now")
    cells = [
        (
            f"{name} *" if "commit" in trees["now"] else name,
            *(
                f"{number(trees[tree][what][0])} / {number(trees[tree][what][1])}"
                for tree in ("before", "now")
                for what in ("health_ms", "sentence_ms")
            ),
        )
        for name, trees in found.items()
    ]
    loads = [row["load"] for row in results["neighbour"]]
    load = f"The system's load average was {min(loads):.0f} to {max(loads):.0f} meanwhile."
    return f"{Origin([results]).line} {load}\n\n{markdown(header, cells)}"


def cost(results: Row) -> str:
    origin = Origin(results["rows"])
    parts = [origin.line]
    for row in results["rows"]:
        title = _titled(f"`{row['series']}`", row, origin)
        parts.append(f"{title}\n\n{cost_table(row['points'])}")
    return "\n\n".join(parts)


def one_table(
    results: Row, header: Sequence[str], lines: Callable[[Row], Iterable[Sequence[object]]]
) -> str:
    """Where the rows come from, and one table of them; a row may be several lines of it."""
    rows = results["rows"]
    origin = Origin(rows)
    cells = [(*line, *origin.cells(row)) for row in rows for line in lines(row)]
    return f"{origin.line}\n\n{markdown([*header, *origin.header], cells)}"


def language_models(results: Row) -> str:
    def lines(row: Row) -> Iterable[Sequence[object]]:
        ours, other = row["ours"], row["ngram"]
        yield (
            f"`{row['run']}`", number(row["trained_minutes"], 1), number(row["train_tokens"]),
            number(row["vocabulary"]), number(ours["perplexity"], 2),
            number(other["perplexity"], 2),
            f"{100 * (1 - ours['perplexity'] / other['perplexity']):.1f} %",
            number(ours["bits_per_byte"], 4), number(other["bits_per_byte"], 4),
        )  # fmt: skip

    header = ["", "trained, minutes", "tokens learned from", "vocabulary", "perplexity",
              "of the n-gram", "less by", "bits per byte", "of the n-gram"]  # fmt: skip
    return one_table(results, header, lines)


def masked(results: Row) -> str:
    def lines(row: Row) -> Iterable[Sequence[object]]:
        words = ", whole words" if row["whole_words"] else ""
        hidden = f"{100 * row['share']:.0f} %{words}"
        minutes = number(row["trained_minutes"], 1)
        for name, found, trained in (
            (f"`{row['run']}`", row["ours"], minutes),
            ("counts of what stands between two", row["counts"], ""),
            ("the most frequent token", row["most_frequent"], ""),
        ):
            yield (
                name, trained, hidden, number(row["test_tokens"]),
                f"{100 * found['accuracy']:.1f} %", number(found.get("perplexity"), 1),
            )  # fmt: skip

    header = ["", "trained, minutes", "hidden", "asked for", "right", "perplexity"]
    return one_table(results, header, lines)


def parsing(results: Row) -> str:
    def lines(row: Row) -> Iterable[Sequence[object]]:
        for name, scores in row["scores"].items():
            ours = name == "ours"
            share = row["bootstrap_not_higher"].get(name)
            yield (
                f"`{row['run']}`" if ours else f"{name}, the same trees",
                number(row["trained_minutes"], 1) if ours else "",
                *(number(scores[key], 2) for key in ("f1", "precision", "recall", "exact")),
                "" if share is None else f"{100 * share:.1f} %",
            )

    header = ["", "trained, minutes", "F1", "precision", "recall", "exact", "not above it"]
    table = one_table(results, header, lines)
    pairs = [pair for row in results["rows"] for pair in row.get("pairs", ())]
    cells = [
        (
            " and ".join(f"`{name}`" for name in pair["runs"]), metric,
            *(number(value, 2) for value in found["values"]), f"{found['p_value']:.4f}",
        )
        for pair in pairs for metric, found in tests_of(pair)
    ]  # fmt: skip
    if not cells:
        return table
    of_pairs = markdown(["", "", "of the first", "of the second", "p"], cells)
    return f"{table}\n\nEach pair of runs:\n\n{of_pairs}"


def tests_of(pair: Row) -> list[tuple[str, Row]]:
    """The metrics that two parsers are tested by, and what was found."""
    return [(metric, pair[metric]) for metric in ("F1", "exact")]


def labels(results: Row) -> str:
    def score(found: Row) -> tuple[str, str]:
        p = found["p_value"]
        value = f"{found['value']:.2f} ± {found['deviation'] or 0:.2f}"
        return value, "" if p is None else f"{p:.3f}"

    def lines(row: Row) -> Iterable[Sequence[object]]:
        for start in row["starts"]:
            yield (
                row["labels"], start["from"], f"{row['updates']:,} of {row['tokens']:,}",
                *score(start["accuracy"]), *score(start["macro F1"]),
            )  # fmt: skip

    header = ["labels", "from", "updates of tokens", "accuracy", "p", "macro F1", "p"]
    return one_table(results, header, lines)


def _titled(title: str, row: Row, origin: Origin) -> str:
    """A table that is one row of the results has what differs in its title."""
    pairs = zip(origin.header, origin.cells(row), strict=True)
    more = ", ".join(f"{what} {value}" for what, value in pairs)
    return f"{title} ({more})" if more else title


def demo_hops(results: Row) -> str:
    def lines(row: Row) -> Iterable[Sequence[object]]:
        hops = (
            f"{row[hop]['least']:,.2f}, {row[hop]['median']:,.2f}"
            for hop in ("first", "second", "rival")
        )
        yield (
            row["way"], row["seed"], f"{row['BLEU']:.2f}", f"{100 * row['pronouns']:.0f} %",
            f"{100 * row['orders']:.0f} %", *hops, f"{100 * row['both_hops_clear']:.0f} %",
        )  # fmt: skip

    header = ["way", "seed", "BLEU", "pronouns right", "orders right", "first hop: least, median",
              "second hop", "over the other noun", "both hops clear"]  # fmt: skip
    return one_table(results, header, lines)


TABLES: dict[str, Callable[[Row], str]] = {
    "ways": ways,
    "limits": limits,
    "train": train,
    "train-avx2": train,
    "train-amx": train,
    "train-intel": train,
    "translate": translate,
    "translate-avx2": translate,
    "translate-avxvnni": translate,
    "translate-amx": translate,
    "serve": serve,
    "neighbour": neighbour,
    "cost": cost,
    "language-models": language_models,
    "masked": masked,
    "parsing": parsing,
    "labels": labels,
    "demo-hops": demo_hops,
}


def main() -> None:
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        path = HERE / "results" / f"{name}.json"
        if path.exists():
            text = placed(text, name, table(json.loads(path.read_text(encoding="utf-8"))))
    text = placed(text, "families", families(HERE / "results"))
    readme.write_text(text, encoding="utf-8")


def placed(text: str, name: str, table: str) -> str:
    """The page with a table in its place."""
    begin, end = f"<!-- {name} -->", "<!-- end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"README.md has no {begin} … {end}")
    return pattern.sub(lambda _: f"{begin}\n\n{table.strip()}\n\n{end}", text)


if __name__ == "__main__":
    main()
