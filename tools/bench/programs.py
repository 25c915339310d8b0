"""Running lathe and the peers, and reading their figures."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
# The features that decide which kernels either side runs.
FEATURES = (
    "avx2 fma f16c avx_vnni avx512f avx512bw avx512vl avx512_vnni avx512_bf16 "
    "avx512_fp16 amx_int8 amx_bf16"
).split()


class BenchError(Exception):
    """A run that gave no figures; the message is for the user."""


def machine() -> dict:
    """Model name, cores this process may use, features and load of the CPU."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)$", info, re.MULTILINE)
    present = set(flags.group(1).split()) if flags else set()
    return {
        "cpu": name.group(1) if name else "unknown",
        "cores": len(os.sched_getaffinity(0)),
        "features": [f for f in FEATURES if f in present],
        "load": os.getloadavg()[0],
    }


def run(command: list, folder=None, stderr=subprocess.PIPE) -> str:
    """What a command prints; BenchError where it fails. folder: where it runs;
    stderr: STDOUT to have both in one."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=folder,
        )
    except OSError as error:
        raise BenchError(f"cannot run {command[0]}: {error.strerror}") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["(no message)"]
        raise BenchError(f"{command[0]} failed: {lines[-1]}")
    return done.stdout


def run_json(command: list):
    """The JSON that a command prints; BenchError where it fails."""
    try:
        return json.loads(run(command))
    except json.JSONDecodeError:
        raise BenchError(f"{command[0]} printed no JSON") from None


def run_seconds(command: list) -> float:
    """Wall time of a command from start to exit."""
    start = time.perf_counter()
    run(command)
    return time.perf_counter() - start


def peer_folder(*options: str) -> pathlib.Path:
    """The folder of the peer's binaries, built now if missing (build_peer)."""
    command = [REPOSITORY / "tools/bench/build_peer", *options]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if out.returncode:
        raise BenchError("the peer is missing and could not be built")
    return pathlib.Path(out.stdout.strip().splitlines()[-1])


def q4_0_copy(program: pathlib.Path, model: pathlib.Path) -> pathlib.Path:
    """The model in llama-quantize's Q4_0, from the cache or made now."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(cache) / "lathe/peer/models"
    folder.mkdir(parents=True, exist_ok=True)
    state = model.stat()
    target = folder / f"{model.stem}.{state.st_size}-{state.st_mtime_ns}.mixed-Q4_0.gguf"
    if target.exists():
        return target
    part = target.with_suffix(".part")
    print("against_llama: making a Q4_0 copy for llama.cpp", file=sys.stderr)
    command = [program, "--allow-requantize", model, part, "Q4_0"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        part.unlink(missing_ok=True)
        raise BenchError(f"llama-quantize failed: {done.stderr.strip()[-300:]}")
    os.replace(part, target)
    return target


class Lathe:
    """lathe on one model. Methods return (speed, limits): tokens per second or,
    of first(), seconds; limits has what the same run measured of the machine."""

    name = "Lathe"

    def __init__(self, program, model):
        self._program, self._model = program, model

    def _bench(self, threads: int, *options) -> tuple:
        command = [self._program, "bench", self._model, *options]
        result = run_json([*command, "-t", threads, "-r", 1, "--json"])
        try:
            (row,) = result["results"]
            limits = {
                "bandwidth": result["limits"]["bandwidth_bytes_per_second"],
                "compute_share": row.get("compute_share"),
                "arithmetic": row.get("arithmetic"),
            }
            return row["tokens_per_second"]["median"], limits
        except (KeyError, ValueError):
            raise BenchError("lathe bench gave no figure") from None

    def decode(self, tokens: int, depth: int, threads: int, head: str) -> tuple:
        options = ["-p", 0, "-n", tokens, "-d", depth]
        # Left out where it is the default, which older engines know only.
        options += ["--head", head] if head != "full" else []
        return self._bench(threads, *options)

    def prefill(self, tokens: int, threads: int) -> tuple:
        return self._bench(threads, "-p", tokens, "-n", 0)

    def together(
        self, sequences: int, depth: int, steps: int, threads: int
    ) -> tuple:
        """Whole steps of so many sequences, each `depth` tokens deep, with the
        logits of all."""
        # A page of 16 tokens that begins would begin in every step measured.
        depth += depth % 16 == 0
        command = [self._program, "explain", self._model, "--batch", sequences]
        command += ["--context", depth, "-r", steps, "-t", threads, "--json"]
        result = run_json(command)
        try:
            bandwidth = result["limits"]["bandwidth_bytes_per_second"]
            return sequences / result["step"]["seconds"], {"bandwidth": bandwidth}
        except (KeyError, TypeError):
            raise BenchError("lathe explain gave no figure") from None

    def first(self, threads: int) -> tuple:
        """From the start of the process to its end with one token made."""
        command = [self._program, "run", self._model, "--raw", "--ignore-end"]
        command += ["-p", "The capital of France is", "-n", 1, "-t", threads]
        return run_seconds(command), {}


class Peer:
    """llama.cpp or ik_llama.cpp with one file and one way of attention."""

    def __init__(self, name: str, folder, model, flash: bool, ik: bool):
        self.name = f"{name} -fa {int(flash)}"
        self.family = "ik_llama.cpp" if ik else "llama.cpp"
        # Absolute: together() runs elsewhere.
        self._folder = pathlib.Path(folder).absolute()
        self._model = pathlib.Path(model).absolute()
        self._ik = ik
        self._flash = flash

    def _bench_command(self, threads: int) -> list:
        command = [self._folder / "llama-bench", "-m", self._model]
        command += ["-t", threads, "-r", 1, "-fa", int(self._flash), "-o", "json"]
        return command + (["-rtr", 1] if self._ik else [])

    def _no_warmup(self) -> list:
        return ["-w", 0] if self._ik else ["--no-warmup"]

    def _speed(self, command: list) -> float:
        text = run(command)
        try:
            # ik_llama.cpp may print remarks around the list.
            (row,), _ = json.JSONDecoder().raw_decode(text[text.index("[") :])
            return row["avg_ts"]
        except (ValueError, KeyError):
            raise BenchError(f"{self.name}: llama-bench gave no figure") from None

    def decode(self, tokens: int, depth: int, threads: int) -> float:
        command = self._bench_command(threads)
        if self._ik and depth:
            return self._speed([*command, "-p", 0, "-n", 0, "-gp", f"{depth},{tokens}"])
        command += ["-p", 0, "-n", tokens]
        return self._speed(command + (["-d", depth] if depth else []))

    def prefill(self, tokens: int, threads: int) -> float:
        command = [*self._bench_command(threads), "-p", tokens, "-n", 0]
        # A long prompt warms up by itself: the part that is cold is short.
        return self._speed(command + (self._no_warmup() if tokens > 1024 else []))

    def together(
        self, sequences: int, prompt: int, tokens: int, threads: int
    ) -> float:
        """`tokens` steps of so many sequences behind a prompt each."""
        command = [self._folder / "llama-batched-bench", "-m", self._model]
        command += ["-t", threads, "-tb", threads]
        command += ["-c", sequences * (prompt + tokens)]
        command += ["-npp", prompt, "-ntg", tokens, "-npl", sequences]
        if self._ik:
            command += ["-rtr"] + ([] if self._flash else ["-no-fa"])
        else:
            command += ["-fa", "on" if self._flash else "off"]
        # ik_llama.cpp prints to stderr and leaves a log file where it runs.
        with tempfile.TemporaryDirectory() as folder:
            text = run(command, folder, subprocess.STDOUT)
        # | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | ...
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[:3] == [str(prompt), str(tokens), str(sequences)]:
                return float(cells[7])
        raise BenchError(f"{self.name}: llama-batched-bench gave no figure")

    def first(self, threads: int) -> float:
        """From the start of the process to its end with five tokens evaluated;
        it tokenizes nothing, unlike lathe."""
        command = [*self._bench_command(threads), "-p", 5, "-n", 0]
        return run_seconds([*command, *self._no_warmup()])


def peers(model: pathlib.Path, folder: pathlib.Path, ik, with_q4_0: bool) -> list:
    """All peers of a model; ik is the folder of ik_llama.cpp's binaries, or
    None."""
    files = {"": model}
    if with_q4_0:
        files[" Q4_0"] = q4_0_copy(folder / "llama-quantize", model)
    return [
        Peer(name + suffix, where, file, flash, name != "llama.cpp")
        for name, where in (("llama.cpp", folder), ("ik_llama.cpp", ik))
        if where is not None
        for suffix, file in files.items()
        for flash in (True, False)
    ]
