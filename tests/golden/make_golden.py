#!/usr/bin/env python3
"""Makes golden/MODEL.json: what llama.cpp says of the two real models.

For six prompts: ids by llama.cpp's tokenizer, 64 greedy ids of the model with
F32 weights and activations (tests/golden/oracle) with each step's gap between
the best and the second logit, and the greedy ids of the quantized file as
llama.cpp runs it, for information. For the last prompt: logits at four
positions. Unless --no-perplexity: perplexity of 24 chunks of 512 tokens for both
kinds of weights, and the KL divergence between the two runs.

Needs the models (tests/golden/fetch_models), the peer (tools/bench/build_peer)
and the PyPI packages gguf and numpy. With perplexity: 6 minutes on two cores and
6 GB of temporary disk space.

usage: make_golden.py [--no-perplexity] [smollm2] [gemma3]
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

import make_eval_text
import peer
import to_f32

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 64
CHUNK, CHUNKS = 512, 24
TOP, SAMPLES = 32, 64

LONG = (
    "The lighthouse keeper counted the ships every evening and wrote their names "
    "into a heavy book. One night in November a ship came in that had no name, no "
    "flag and no light, and the keeper"
)


def prompts(chat: str) -> dict:
    """Name -> text of the fixed prompts; chat is the model's chat prompt."""
    return {
        "fact": "The capital of France is",
        "code": "def fibonacci(n):\n    if n < 2:\n        return n\n",
        "numbers": "1, 1, 2, 3, 5, 8, 13, 21, 34,",
        "unicode": "Zürich – 東京 – Москва – naïve café 😀\n\n\tThe",
        "chat": chat,
        "long": LONG,
    }


MODELS = {
    "smollm2": (
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained "
        "by Hugging Face<|im_end|>\n<|im_start|>user\nWhy is the sky blue?"
        "<|im_end|>\n<|im_start|>assistant\n",
    ),
    "gemma3": (
        "gemma-3-270m-Q4_K_M.gguf",
        "<start_of_turn>user\nWhy is the sky blue?<end_of_turn>\n"
        "<start_of_turn>model\n",
    ),
}


def short(values, digits: int = 8) -> list:
    """Numbers as decimals; eight digits round-trip the difference that counts."""
    return [float(f"{float(v):.{digits}g}") for v in values]


def logits_rows(logits: numpy.ndarray) -> list:
    """Four positions of [tokens, vocabulary]: the top, an even sample, and the
    logarithm of the sum of exponentials."""
    tokens, vocabulary = logits.shape
    rows = []
    for position in (0, tokens // 3, 2 * tokens // 3, tokens - 1):
        row = logits[position]
        # stable, so that of equal logits the lowest id comes first
        top = numpy.argsort(-row, kind="stable")[:TOP]
        step = vocabulary // SAMPLES
        sample = numpy.arange(SAMPLES) * step
        wide = row.astype(numpy.float64)
        total = wide.max() + numpy.log(numpy.exp(wide - wide.max()).sum())
        rows.append(
            {
                "position": position,
                "log_sum_exp": float(f"{total:.9g}"),
                "top_ids": top.tolist(),
                "top_logits": short(row[top]),
                "sample_step": step,
                "sample_logits": short(row[sample]),
            }
        )
    return rows


def greedy_section(model: pathlib.Path, plain: pathlib.Path, chat: str) -> dict:
    """Prompts, greedy ids and logits of a model and its F32 copy."""
    entries, logits = [], None
    with peer.Oracle(plain) as exact, peer.Oracle(model) as own:
        for name, text in prompts(chat).items():
            ids = exact.tokenize(text, add_bos=True, parse_special=True)
            greedy, gaps = exact.greedy(ids, STEPS)
            quantized, _ = own.greedy(ids, STEPS)
            same = [a == b for a, b in zip(greedy, quantized)]
            entries.append(
                {
                    "name": name,
                    "text": text,
                    "ids": ids,
                    "greedy": greedy,
                    "gaps": short(gaps, 4),
                    "peer_quantized_greedy": quantized,
                    "peer_quantized_equal": same.index(False) if not all(same) else STEPS,
                }
            )
            if name == "long":
                logits = logits_rows(exact.logits(ids))
    return {"prompts": entries, "logits_of": "long", "logits": logits}


def perplexity_section(model: pathlib.Path, plain: pathlib.Path) -> dict:
    """Runs llama-perplexity twice; plain is the F32 copy of model."""
    folder = plain.parent
    text, base = folder / "eval.txt", folder / "base.kld"
    text.write_bytes(make_eval_text.text())
    common = f"-f {text} -c {CHUNK} -b {CHUNK} --chunks {CHUNKS} -t 2"
    exact = f"-m {plain} {common} -fa off -ctk f32 -ctv f32"
    commands = [
        f"llama-perplexity {exact} --kl-divergence-base {base}",
        f"llama-perplexity -m {model} {common}",
        f"llama-perplexity -m {model} {common} --kl-divergence-base {base} "
        "--kl-divergence",
    ]
    outputs = []
    for command in commands:
        print("  " + command, file=sys.stderr, flush=True)
        program, *rest = command.split()
        run = subprocess.run(
            [peer.binaries() / program, *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if run.returncode:
            raise RuntimeError(f"llama-perplexity failed:\n{run.stdout[-2000:]}")
        outputs.append(run.stdout)

    def number(output: str, pattern: str) -> float:
        return float(re.search(pattern + r"\s*(-?[0-9.]+)", output).group(1))

    if f"over {CHUNKS} chunks" not in outputs[0]:
        raise RuntimeError("the text has fewer chunks than expected")
    return {
        "text": "make_eval_text.py",
        "text_sha256": make_eval_text.SHA256,
        "chunk": CHUNK,
        "chunks": CHUNKS,
        "f32_weights_perplexity": number(outputs[0], r"Final estimate: PPL ="),
        "peer_quantized_perplexity": number(outputs[1], r"Final estimate: PPL ="),
        "peer_quantized_kl": {
            "mean": number(outputs[2], r"Mean +KLD:"),
            "p99": number(outputs[2], r"\n99.0% +KLD:"),
            "max": number(outputs[2], r"Maximum KLD:"),
            "top1_agreement_percent": number(outputs[2], r"Same top p:"),
        },
        "commands": [c.replace(f"{folder}/", "").replace(f"{model.parent}/", "")
                     for c in commands],
    }


def dump(value: dict) -> str:
    """JSON with lists of numbers on one line."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return re.sub(
        r"\[\s+(-?[\d.e+-]+(?:,\s+-?[\d.e+-]+)*)\s+\]",
        lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]",
        text,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: make_golden.py --no-perplexity smollm2",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="smollm2, gemma3")
    parser.add_argument(
        "--no-perplexity",
        action="store_true",
        help="keep the perplexities that the golden file has",
    )
    arguments = parser.parse_intermixed_args()
    for name in arguments.models:
        if name not in MODELS:
            parser.error(f"unknown model '{name}'")
    (HERE / "golden").mkdir(exist_ok=True)
    for name in arguments.models or MODELS:
        file_name, chat = MODELS[name]
        model = peer.models_folder() / file_name
        out = HERE / "golden" / f"{name}.json"
        old = json.loads(out.read_text()) if out.exists() else {}
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
            plain = pathlib.Path(folder) / f"{name}.F32.gguf"
            print(f"{name}: F32 copy", file=sys.stderr, flush=True)
            to_f32.convert(model, plain)
            print(f"{name}: greedy ids and logits", file=sys.stderr, flush=True)
            result = {
                "about": f"llama.cpp's answers for {file_name}, see make_golden.py",
                "model": file_name,
                "peer": peer.peer_version(),
                **greedy_section(model, plain, chat),
            }
            if arguments.no_perplexity:
                result["perplexity"] = old.get("perplexity")
            else:
                result["perplexity"] = perplexity_section(model, plain)
        out.write_text(dump(result) + "\n")
        print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
