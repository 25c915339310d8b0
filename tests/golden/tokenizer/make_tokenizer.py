#!/usr/bin/env python3
"""Makes tokenizer.json.zst: token ids of 2,000 seeded strings for each kind of
tokenizer, as llama.cpp and Hugging Face's tokenizers both give them.

Kinds with a file are real vocabularies: SmolLM2 and Gemma-3 (fetch_models),
and the vocabularies that llama.cpp's sources carry. The synthetic ones are
trained here and stored in the golden file itself, so that their tests run
anywhere. A string on which the two oracles differ for some kind is replaced by
another; --differences prints those. There are two exceptions: llama.cpp's
SentencePiece turns text that spells a control token into that token, which
Lathe must not do (there Hugging Face's ids count), and it cannot run without
byte pieces at all.

Needs the Python packages gguf and tokenizers, zstd, and the peer
(tools/bench/build_peer, LATHE_PEER_DIR).

example: tests/golden/tokenizer/make_tokenizer.py --differences
"""

import argparse
import json
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

import gguf
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]
import peer  # noqa: E402
import strings  # noqa: E402

SEED = 7
COUNT = 2000
SPARE = 600  # Strings to take the place of those on which the oracles differ.
SPECIAL = 300  # So many strings are also encoded with control tokens parsed.

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = (
    CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES
)
QWEN2 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES
QWEN35 = (
    CONTRACTION
    + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
    + LINES
)
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def gpt2():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


# By tokenizer.ggml.pre: the Hugging Face pre-tokenizer (None: only llama.cpp
# has one) and whether merges are skipped for pieces that are tokens.
FAMILIES = {
    "gpt-2": (gpt2, False),
    "smollm": (
        lambda: pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), gpt2()]
        ),
        False,
    ),
    "llama-bpe": (lambda: split(LLAMA3), True),
    "qwen2": (lambda: split(QWEN2), False),
    "qwen35": (lambda: split(QWEN35), False),
    "default": (None, False),
}


class Vocabulary:
    """What a GGUF says about its tokenizer."""

    def __init__(self, fields: dict):
        self.model = fields["model"]
        self.pre = fields.get("pre", "default")
        self.tokens = fields["tokens"]
        self.types = fields.get("token_type") or [NORMAL] * len(self.tokens)
        self.scores = fields.get("scores")
        self.merges = fields.get("merges")
        self.charsmap = fields.get("precompiled_charsmap")
        self.unknown = fields.get("unknown_token_id")
        self.space_prefix = fields.get("add_space_prefix", self.model != "gpt2")
        self.fields = fields

    @staticmethod
    def read(path: pathlib.Path):
        prefix = "tokenizer.ggml."
        reader = gguf.GGUFReader(path)
        return Vocabulary(
            {
                key.removeprefix(prefix): field.contents()
                for key, field in reader.fields.items()
                if key.startswith(prefix)
            }
        )

    def write(self, path: pathlib.Path):
        """A GGUF that holds only the vocabulary."""
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model(self.model)
        writer.add_tokenizer_pre(self.pre)
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.types)
        if self.scores:
            writer.add_token_scores(self.scores)
        if self.merges:
            writer.add_token_merges(self.merges)
        for key in ("bos", "eos", "unknown"):
            if (id_ := self.fields.get(f"{key}_token_id")) is not None:
                writer.add_uint32(f"tokenizer.ggml.{key}_token_id", id_)
        for key in ("add_bos_token", "add_space_prefix", "remove_extra_whitespaces"):
            if key in self.fields:
                writer.add_bool(f"tokenizer.ggml.{key}", self.fields[key])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()

    def huggingface(self):
        """The same tokenizer as a Hugging Face one, which knows no control
        tokens, or None."""
        make = {"gpt2": self._byte_level, "llama": self._pieces, "t5": self._unigram}
        tokenizer = make[self.model]()
        if tokenizer:
            tokenizer.add_tokens(
                [
                    tokenizers.AddedToken(t, normalized=False, special=False)
                    for t, kind in zip(self.tokens, self.types)
                    if kind == USER
                ]
            )
        return tokenizer

    def _byte_level(self):
        make, ignore_merges = FAMILIES[self.pre]
        if not make:
            return None
        merges = [tuple(m.split(" ")) for m in self.merges]
        model = models.BPE(
            {t: i for i, t in enumerate(self.tokens)}, merges, ignore_merges=ignore_merges
        )
        tokenizer = tokenizers.Tokenizer(model)
        tokenizer.pre_tokenizer = make()
        return tokenizer

    def _pieces(self):
        """SentencePiece's BPE by ranks: a merge for every cut of every piece."""
        text = {
            t: i
            for i, (t, kind) in enumerate(zip(self.tokens, self.types))
            if kind in (NORMAL, USER, UNUSED)
        }
        merges = []
        for piece, id_ in text.items():
            local = []
            for i in range(1, len(piece)):
                left, right = piece[:i], piece[i:]
                if left in text and right in text:
                    local.append((text[left], text[right], left, right))
            merges += [(-self.scores[id_], *m) for m in sorted(local)]
        merges.sort(key=lambda m: m[0])
        unknown = self.tokens[self.unknown]
        model = models.BPE(
            {t: i for i, t in enumerate(self.tokens)},
            [(m[3], m[4]) for m in merges],
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
        tokenizer = tokenizers.Tokenizer(model)
        steps = [normalizers.Replace(" ", "▁")]
        if self.space_prefix:
            steps.insert(0, normalizers.Prepend("▁"))
        tokenizer.normalizer = normalizers.Sequence(steps)
        return tokenizer

    def _unigram(self):
        # Control pieces keep their place but can match nothing.
        pieces = [
            (t if kind in (NORMAL, USER, UNUSED) else f"\0{i}\0", s)
            for i, (t, s, kind) in enumerate(zip(self.tokens, self.scores, self.types))
        ]
        tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, self.unknown, False))
        space = pre_tokenizers.Metaspace("▁", "always")
        merge = normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
        if self.charsmap:  # It makes spaces of tabs and line ends.
            steps = [normalizers.Precompiled(bytes(self.charsmap)), merge]
            space = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
        else:
            steps = [normalizers.Replace(tokenizers.Regex(r"\A +| +\z"), ""), merge]
        tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = space
        return tokenizer


def spells_marker(text: str, ids: list, vocabulary: Vocabulary) -> bool:
    """True if some id is a token that the text names but must not yield."""
    return vocabulary.model == "llama" and any(
        vocabulary.types[i] in (CONTROL, UNKNOWN, BYTE) and vocabulary.tokens[i] in text
        for i in ids
    )


def peer_ids(program, vocabulary, texts, add=False, parse=False) -> list:
    lines = "".join(
        f"{int(add)} {int(parse)} {t.encode().hex() or '-'}\n" for t in texts
    )
    out = subprocess.run(
        [program, vocabulary], input=lines, stdout=subprocess.PIPE, text=True, check=True
    )
    return [[int(i) for i in line.split()] for line in out.stdout.splitlines()]


def build_program(folder: pathlib.Path) -> pathlib.Path:
    bin_ = peer.binaries()
    source = peer_source(bin_)
    program = folder / "vocab_ids"
    subprocess.run(
        ["c++", "-std=c++17", "-O2", "-I", source / "include", "-I", source / "ggml/include"]
        + [HERE / "vocab_ids.cpp", "-o", program, bin_ / "libllama.so", "-Wl,-rpath," + str(bin_)]
        + ["-Wl,--allow-shlib-undefined"],
        check=True,
    )
    return program


def peer_source(bin_: pathlib.Path) -> pathlib.Path:
    cache = (bin_.parent / "CMakeCache.txt").read_text()
    (line,) = [x for x in cache.splitlines() if x.startswith("CMAKE_HOME_DIRECTORY")]
    return pathlib.Path(line.split("=", 1)[1])


def corpus() -> list:
    """Text to train on: Python's own library and strings of another seed."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    names = "argparse.py ast.py csv.py difflib.py random.py statistics.py tarfile.py"
    text = [(library / name).read_text() for name in names.split()]
    # llama.cpp reads tokens as C strings: none may hold a NUL.
    return text + [
        t.replace("\0", "") for t in strings.random_strings(SEED + 1, 20000)
    ]


def train_bytes() -> dict:
    """A byte-level BPE vocabulary; markers at the end."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split(LLAMA3)
    trainer = trainers.BpeTrainer(
        vocab_size=4000,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    state = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(state["vocab"], key=state["vocab"].get)
    types = [NORMAL] * len(tokens)
    markers = {
        "<|endoftext|>": CONTROL,
        "<|im_start|>": CONTROL,
        "<|im_end|>": CONTROL,
        "<h1>": USER,
        "</table>": USER,
    }
    return {
        "model": "gpt2",
        "tokens": tokens + list(markers),
        "token_type": types + list(markers.values()),
        "merges": [m if isinstance(m, str) else " ".join(m) for m in state["merges"]],
        "bos_token_id": len(tokens) + 1,
        "eos_token_id": len(tokens),
    }


def train_pieces(byte_pieces: bool) -> dict:
    """A SentencePiece BPE vocabulary, with byte pieces or without."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        tokenizers.Regex(r"▁*[^▁\n]*|\n+"), "isolated"
    )
    trainer = trainers.BpeTrainer(
        vocab_size=3000, limit_alphabet=400, show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    vocabulary = tokenizer.get_vocab()
    learnt = sorted(vocabulary, key=vocabulary.get)
    # SentencePiece orders merged pieces first, characters last.
    learnt = [t for t in learnt if len(t) > 1] + [t for t in learnt if len(t) == 1]
    head = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL}
    if byte_pieces:
        head |= {f"<0x{b:02X}>": BYTE for b in range(256)}
    head |= {"<h1>": USER, "</table>": USER}
    # The corpus has markers in it; as ordinary pieces they would be odd.
    odd = {t for t in strings.MARKERS if t.strip("▁")} | set(head)
    learnt = [t for t in learnt if t not in odd]
    return {
        "model": "llama",
        "tokens": list(head) + learnt,
        "token_type": list(head.values()) + [NORMAL] * len(learnt),
        "scores": [0.0] * len(head) + [float(-i) for i in range(len(learnt))],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        "add_bos_token": True,
        "add_space_prefix": byte_pieces,
    }


def train_unigram() -> dict:
    """A SentencePiece unigram vocabulary."""
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    trainer = trainers.UnigramTrainer(
        vocab_size=2500, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    # It keeps every character of the corpus, so that must not have too many.
    plain = ["".join(c for c in text if ord(c) < 0x500) for text in corpus()]
    tokenizer.train_from_iterator(plain, trainer)
    odd = {t for t in strings.MARKERS if t.strip("▁")}
    learnt = [
        (t, s)
        for t, s in json.loads(tokenizer.to_str())["model"]["vocab"]
        if t not in odd and len(t) <= 16
    ]
    head = {"<pad>": CONTROL, "</s>": CONTROL, "<unk>": UNKNOWN, "<h1>": USER}
    return {
        "model": "t5",
        "tokens": list(head) + [t for t, _ in learnt],
        "token_type": list(head.values()) + [NORMAL] * len(learnt),
        "scores": [0.0] * len(head) + [s for _, s in learnt],
        "eos_token_id": 1,
        "unknown_token_id": 2,
        "add_space_prefix": True,
        "remove_extra_whitespaces": True,
    }


def kinds(folder: pathlib.Path):
    """Yields (entry of the golden file, vocabulary, its GGUF)."""
    tables = {
        "bytes": train_bytes(),
        "pieces": train_pieces(byte_pieces=True),
        "characters": train_pieces(byte_pieces=False),
        "unigram": train_unigram(),
    }
    synthetic = [
        ("bytes", pre)
        for pre in ("gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "default")
    ] + [(name, "default") for name in ("pieces", "characters", "unigram")]
    for table, pre in synthetic:
        path = folder / f"{table}-{pre}.gguf"
        Vocabulary(tables[table] | {"pre": pre}).write(path)
        name = f"{table}, {pre}" if table == "bytes" else table
        yield {"name": name, "vocabulary": table, "pre": pre}, Vocabulary.read(path), path
    real = [
        peer.models_folder() / "SmolLM2-135M-Instruct.Q4_1.gguf",
        peer.models_folder() / "gemma-3-270m-Q4_K_M.gguf",
    ]
    carried = peer_source(peer.binaries()) / "models"
    for name in "gpt-2 llama-bpe qwen2 llama-spm nomic-bert-moe".split():
        real.append(carried / f"ggml-vocab-{name}.gguf")
    for path in real:
        yield {"name": path.stem, "file": path.name}, Vocabulary.read(path), path
    kinds.tables = tables


def main():
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--out", default=HERE / "tokenizer.json.zst", type=pathlib.Path)
    arguments.add_argument(
        "--differences", action="store_true", help="print where the oracles differ"
    )
    options = arguments.parse_args()

    texts = strings.random_strings(SEED, COUNT + SPARE)
    differs = [False] * len(texts)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        program = build_program(folder)
        entries = []
        for entry, vocabulary, path in kinds(folder):
            second = vocabulary.huggingface()
            others = None
            if second:
                encoded = second.encode_batch(texts, add_special_tokens=False)
                others = [e.ids for e in encoded]
            if entry.get("vocabulary") == "characters":
                entry["ids"], entry["special_ids"] = others, []
            else:
                entry["ids"] = peer_ids(program, path, texts)
                entry["special_ids"] = peer_ids(program, path, texts, add=True, parse=True)
                if vocabulary.model == "llama":
                    # llama.cpp turns the text "<0x41>" into that byte token.
                    entry["special_ids"] = [
                        None if "<0x" in t else ids
                        for t, ids in zip(texts, entry["special_ids"])
                    ]
            count = 0
            for i, ids in enumerate(others or []):
                if ids == entry["ids"][i]:
                    continue
                if spells_marker(texts[i], entry["ids"][i], vocabulary):
                    entry["ids"][i] = ids
                    continue
                count += 1
                differs[i] = True
                if options.differences:
                    tokens = vocabulary.tokens
                    print(entry["name"], repr(texts[i]))
                    print("   llama.cpp   ", [tokens[t] for t in entry["ids"][i]])
                    print("   Hugging Face", [tokens[t] for t in ids])
            print(f"{entry['name']}: {count} of {len(texts)} strings differ", file=sys.stderr)
            entries.append(entry)

    kept = [i for i, d in enumerate(differs) if not d][:COUNT]
    if len(kept) < COUNT:
        sys.exit(f"only {len(kept)} strings on which the oracles agree")
    for entry in entries:
        entry["ids"] = [entry["ids"][i] for i in kept]
        entry["special_ids"] = [
            entry["special_ids"][i] for i in kept[:SPECIAL] if entry["special_ids"]
        ]
    golden = {
        "source": f"{peer.peer_version()}, tokenizers {tokenizers.__version__}",
        "strings": [texts[i] for i in kept],
        "vocabularies": kinds.tables,
        "kinds": entries,
    }
    text = json.dumps(golden, ensure_ascii=False, separators=(",", ":")).encode()
    # The size lets readers unpack it in one piece.
    command = ["zstd", "-q", "-19", "-f", f"--stream-size={len(text)}", "-o", options.out]
    subprocess.run(command, input=text, check=True)
    print(f"{options.out}: {options.out.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
