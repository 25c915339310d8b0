#!/usr/bin/env python3
"""Makes golden.json and golden/*.f32: what llama.cpp says of the seeded models.

For each case a seed is searched for which the 64 greedy steps from the first
100 ids are clear (best logit at least MIN_GAP above the second) and varied (at
least MIN_DISTINCT different ids). Then the logits of all 300 ids in one pass,
F32 throughout (the weight formats: of an F32 copy of the model), are kept at 12
positions: golden/NAME.f32, little-endian float32 [12, 512]. For the weight
formats golden.json also says how far llama.cpp's own run of the quantized file,
which rounds activations to 8 bits, is from that: the mark to beat. Options that
llama.cpp lacks take both from reference.py.

Needs the peer (tools/bench/build_peer) and the PyPI packages gguf and numpy.

usage: make_seeded_golden.py [NAME...]   (default: all)
"""

import argparse
import contextlib
import hashlib
import json
import pathlib
import sys
import tempfile

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import cases  # noqa: E402
import make_seeded  # noqa: E402
import peer  # noqa: E402
import random_weights  # noqa: E402
import reference  # noqa: E402
import to_f32  # noqa: E402

TOKENS, PROMPT, STEPS = 300, 100, 64
# First and last rows of pages (16) and KV chunks (128), and around the windows.
POSITIONS = [0, 1, 15, 16, 37, 63, 64, 99, 127, 128, 256, 299]
MIN_GAP, MIN_DISTINCT, SEEDS = 0.005, 8, 200


def token_ids() -> list:
    """The 300 ids that every case is run on; no control tokens."""
    words = random_weights.Stream(1, "tokens").words(TOKENS)
    return [int(w % (cases.VOCABULARY - 4)) for w in words]


def nmse(value: numpy.ndarray, reference: numpy.ndarray) -> float:
    """Normalized mean square error, sum (a-b)^2 / sum b^2, in float64."""
    a, b = value.astype(numpy.float64), reference.astype(numpy.float64)
    return float(((a - b) ** 2).sum() / (b**2).sum())


class Reference:
    """reference.py with the interface of peer.Oracle."""

    def __init__(self, case: cases.Case, seed: int):
        self.case, self.weights = case, reference.weights(case, seed)

    def greedy(self, prompt: list, steps: int) -> tuple:
        return reference.greedy(self.case, self.weights, prompt, steps)

    def logits(self, ids: list) -> numpy.ndarray:
        return reference.forward(self.case, self.weights, ids)


def make(case: cases.Case, folder: pathlib.Path) -> dict:
    """Searches the seed, writes golden/NAME.f32, returns the case's entry."""
    ids = token_ids()
    path = folder / "model.gguf"
    plain = path if case.weights == "f32" else folder / "f32.gguf"
    for seed in range(1, SEEDS + 1):
        make_seeded.make(case, seed, path)
        if plain != path:
            to_f32.convert(path, plain)
        with contextlib.ExitStack() as stack:
            if case.by_reference:
                oracle = Reference(case, seed)
            else:
                oracle = stack.enter_context(peer.Oracle(plain))
            greedy, gaps = oracle.greedy(ids[:PROMPT], STEPS)
            if min(gaps) < MIN_GAP or len(set(greedy)) < MIN_DISTINCT:
                continue
            logits = oracle.logits(ids)
        break
    else:
        raise RuntimeError(f"{case.name}: none of {SEEDS} seeds will do")
    if logits.shape != (TOKENS, cases.VOCABULARY) or not numpy.isfinite(logits).all():
        raise RuntimeError(f"{case.name}: unexpected logits")
    entry = {
        "seed": seed,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "greedy": greedy,
        "smallest_gap": round(min(gaps), 5),
    }
    if plain != path:
        with peer.Oracle(path) as oracle:
            entry["peer_nmse"] = float(f"{nmse(oracle.logits(ids), logits):.3g}")
    kept = logits[POSITIONS].astype("<f4")
    (HERE / "golden" / f"{case.name}.f32").write_bytes(kept.tobytes())
    return entry


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: make_seeded_golden.py llama-gqa",
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    known = {case.name: case for case in cases.ALL}
    for name in arguments.names:
        if name not in known:
            parser.error(f"unknown model '{name}'")
    out = HERE / "golden.json"
    (HERE / "golden").mkdir(exist_ok=True)
    found = json.loads(out.read_text())["cases"] if out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names or known:
            found[name] = make(known[name], pathlib.Path(folder))
            print(name, found[name]["seed"], found[name]["smallest_gap"], flush=True)
    head = {
        "about": "llama.cpp's answers for the seeded models, see make_seeded_golden.py",
        "peer": peer.peer_version(),
        "vocabulary": cases.VOCABULARY,
        "tokens": token_ids(),
        "prompt_tokens": PROMPT,
        "logits_positions": POSITIONS,
    }
    # One line per case, so that a change shows as a change of that line.
    lines = [f"  {json.dumps(k)}: {json.dumps(found[k])}" for k in known if k in found]
    start = json.dumps(head, indent=1).removesuffix("\n}")
    body = ",\n".join(lines)
    out.write_text(f'{start},\n "cases": {{\n{body}\n }}\n}}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
