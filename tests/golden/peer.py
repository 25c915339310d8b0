"""What the makers of golden files need of llama.cpp: its tools and the oracle.

The peer is built by tools/bench/build_peer and the oracle by
tests/golden/oracle/build; both honour LATHE_PEER_DIR.
"""

import json
import os
import pathlib
import subprocess
import tempfile

import numpy

GOLDEN = pathlib.Path(__file__).resolve().parent
REPOSITORY = GOLDEN.parent.parent


def _last_line(command: list) -> str:
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return out.stdout.strip().splitlines()[-1]


def binaries() -> pathlib.Path:
    """The folder of llama-bench, llama-perplexity, llama-quantize; builds it."""
    return pathlib.Path(_last_line([str(REPOSITORY / "tools/bench/build_peer")]))


def models_folder() -> pathlib.Path:
    """Where tests/golden/fetch_models puts the real models."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("LATHE_MODELS") or f"{cache}/lathe/models")


def peer_version() -> str:
    """The pinned version of llama-cpp-python that build_peer compiles."""
    text = (REPOSITORY / "tools/bench/build_peer").read_text()
    (line,) = [x for x in text.splitlines() if x.startswith("version=")]
    return "llama-cpp-python " + line.removeprefix("version=")


class Oracle:
    """A running oracle for one model; use as a context manager.

    F32 activations and KV cache, one thread, no flash attention. context bounds
    the number of prompt plus generated ids of one call.
    """

    def __init__(self, model: pathlib.Path, context: int = 512):
        program = _last_line([str(GOLDEN / "oracle/build")])
        self._process = subprocess.Popen(
            [program, str(model), str(context)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        if self._process.wait() != 0:
            raise RuntimeError("the oracle failed")

    def _ask(self, *words) -> dict:
        self._process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the oracle ended early, see its message above")
        return json.loads(answer)

    def tokenize(self, text: str, add_bos: bool, parse_special: bool) -> list:
        """llama.cpp's ids of a text."""
        hexadecimal = text.encode().hex() or "-"
        return self._ask("tokenize", int(add_bos), int(parse_special), hexadecimal)[
            "ids"
        ]

    def greedy(self, ids: list, count: int) -> tuple:
        """(count greedy ids, logit gap best - second of each step)."""
        answer = self._ask("greedy", count, *ids)
        return answer["ids"], answer["gaps"]

    def logits(self, ids: list) -> numpy.ndarray:
        """Logits of every position, float32 [len(ids), vocabulary]."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "logits.npy")
            self._ask("logits", path, *ids)
            return numpy.load(path)
