"""What the paired table measures, and the bars that Lathe holds itself to."""

import dataclasses

import model_bytes

# Whoever reaches this share of the machine's limit meets a ratio's bar, too.
ENOUGH_SHARE = 0.9
# Beyond this a model counts as one of real size: fewer tokens, other bars.
LARGE_BYTES = 400e6


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table. kind: decode, prefill, together, first, step."""

    id: str
    kind: str
    threads: int
    tokens: int = 1
    depth: int = 0  # Of together: the prompt before the steps.
    head: str = "full"
    sequences: int = 1

    @property
    def unit(self) -> str:
        return {"first": "s", "step": "ms"}.get(self.kind, "tokens/s")

    @property
    def title(self) -> str:
        if self.kind == "decode":
            words = f"decode tg{self.tokens}"
            words += f" at depth {self.depth}" if self.depth else ""
            words += ", greedy" if self.head == "pick" else ""
        elif self.kind == "prefill":
            words = f"prefill pp{self.tokens}"
        elif self.kind == "together":
            words = f"{self.sequences} sequences, {self.depth} in, {self.tokens} out"
        elif self.kind == "first":
            words = "open + first token"
        else:
            words = f"step of {self.sequences} row" + "s" * (self.sequences > 1)
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{words}, {threads}"

    @property
    def mean_depth(self) -> float:
        """Keys that a token sees on average."""
        return self.depth + (self.tokens + 1) / 2


@dataclasses.dataclass(frozen=True)
class Bar:
    """What a row must reach; None: nothing asked. ratio: speed over the best
    llama.cpp's, or ENOUGH_SHARE of the limit, whichever is less. share: of the
    limit, besides. seconds: at most. step: time over that of one row's step."""

    ratio: float | None = None
    share: float | None = None
    seconds: float | None = None
    step: float | None = None

    def text(self) -> str:
        parts = [f"≥ {self.ratio:g} ×"] if self.ratio is not None else []
        parts += [f"≥ {self.share:.0%} of limit"] if self.share is not None else []
        parts += [f"≤ {self.seconds:g} s"] if self.seconds is not None else []
        parts += [f"≤ {self.step:.2f} ×"] if self.step is not None else []
        return " and ".join(parts) or "–"

    def met(self, ratio, share, seconds, step) -> bool | None:
        """Whether figures reach the bar; None where it asks nothing, or for
        what was not measured."""
        checks = []
        if self.ratio is not None and ratio is not None:
            enough = share is not None and share >= ENOUGH_SHARE
            checks.append(ratio >= self.ratio or enough)
        if self.share is not None and share is not None:
            checks.append(share >= self.share)
        if self.seconds is not None and seconds is not None:
            checks.append(seconds <= self.seconds)
        if self.step is not None and step is not None:
            checks.append(step <= self.step)
        return all(checks) if checks else None


_SMALL = {
    "decode-1": Bar(ratio=1.8),
    "pp512": Bar(ratio=2.2),
    "pp4096": Bar(ratio=2.4),
    "together-8": Bar(ratio=3.2),
    "together-32": Bar(ratio=3.8),
    "step-2": Bar(step=1.10),
    "step-4": Bar(step=1.45),
}
BARS = {
    "llama": {
        **_SMALL,
        "decode": Bar(ratio=1.9, share=0.66),
        "pick": Bar(ratio=1.9),
        "deep-2048": Bar(ratio=3),
        "deep-6144": Bar(ratio=4),
        "first": Bar(seconds=0.1),
    },
    "gemma3": {
        **_SMALL,
        "decode": Bar(ratio=1.55),
        "pick": Bar(ratio=1.9),
        "first": Bar(seconds=0.2),
    },
    "floats": {"decode": Bar(share=0.8), "pp512": Bar(ratio=1.3)},
    "large": {"decode": Bar(ratio=1, share=0.8), "pp512": Bar(ratio=1.8)},
}


def profile(model: model_bytes.ModelBytes) -> str:
    """The key of BARS that holds for a model."""
    if model.floats:
        return "floats"
    if model.weights > LARGE_BYTES:
        return "large"
    return model.arch if model.arch in BARS else "llama"


def rows(model: model_bytes.ModelBytes, threads: int, quick: bool) -> list:
    """The rows of a model's table. quick: the same rows with fewer tokens; the
    ids stay, the titles say what was measured."""
    large = model.weights > LARGE_BYTES
    tokens = 32 if quick or large else 128
    few = 8 if quick else 32
    result = [
        Row("decode", "decode", threads, tokens),
        Row("pick", "decode", threads, tokens, head="pick"),
        Row("pp512", "prefill", threads, 128 if quick else 512),
    ]
    if large:
        return result
    shrink = 8 if quick else 1
    return result + [
        Row("decode-1", "decode", 1, tokens),
        Row("deep-2048", "decode", threads, few, 2048 // shrink),
        Row("deep-6144", "decode", threads, few, 6144 // shrink),
        Row("pp4096", "prefill", threads, 4096 // shrink),
        *(
            Row(
                f"together-{n}",
                "together",
                threads,
                few if quick else 64,
                32 if quick else 128,
                sequences=n,
            )
            for n in (8, 32)
        ),
        Row("first", "first", threads),
        *(Row(f"step-{n}", "step", threads, sequences=n) for n in (1, 2, 4)),
    ]


def limit(row: Row, model: model_bytes.ModelBytes, bandwidth: float) -> float | None:
    """Tokens per second that the memory's bandwidth allows a row; None where
    that does not bind."""
    if row.kind == "decode":
        return bandwidth / (model.weights + model.kv(row.mean_depth))
    if row.kind == "together":
        each = model.kv(row.mean_depth)
        step = model.weights + row.sequences * each
        return row.sequences * bandwidth / step
    return None
