"""Seeded random strings that try a tokenizer: text, code, numbers, spaces of
every kind, scripts, emoji, marks, odd characters, look-alikes of markers."""

import random
import sys
import unicodedata

# The libraries that are compared carry different versions of Unicode: only
# characters that were assigned in version 14 are used.
_ASSIGNED = [
    c
    for c in map(chr, range(0x80, sys.maxunicode + 1))
    if unicodedata.category(c) not in ("Cn", "Cs", "Co")
]
_RARE = [c for c in _ASSIGNED if ord(c) > 0xFFFF]

_WORDS = """the of and to in is that for it as was with be by on not he his but
at are this have from or had an they which one you were her all their she there
would my we him been has when who will more no if out so said what up its about
into than them can only other new some could time these two may then do first
any like now such over tokenizer perplexity quantization straightforwardly
internationalization Zürich naïve façade Größe señor Ærøskøbing""".split()
_CODE = """for (int i = 0; i < n; ++i) {\n|    return a[i] * b->c;\n|}\n|
def f(x: int) -> str:\n\treturn f"{x!r}"\n|#include <vector>|std::map<K, V>|
x += 1; y -= 0xFF;|if a != b && c || !d:|/* comment */ // note|
<div class="a">&nbsp;</div>|SELECT * FROM t WHERE id = 42;|$HOME/.config|
https://example.org/a?b=c&d=%20#e|name@example.com|{"key": [1, 2.5e-3, null]}|
\\\\frac{a}{b}^2_i|@property|->|=>|::|...|/**/|___init___|CamelCaseName|
snake_case_name|kebab-case-name|0b1010|1_000_000|a.b.c.d""".split("|")
_CONTRACTIONS = """I'm you're he'll she'd it's we've don't can't I'LL DON'T
YOU'RE It'S 'tis o'clock rock'n'roll ' 's 't 'RE 'Ve x'm 'D '' 'l 'ls""".split()
MARKERS = """<|im_start|> <|im_end|> <|endoftext|> <|eot_id|> <|begin_of_text|>
<|start_header_id|> <s> </s> <unk> <bos> <eos> <pad> <start_of_turn>
<end_of_turn> <0x41> <0x0A> <0x00> ▁ ▁▁ <unused7> <mask> [PAD151646] <h1>
</table> [INST] [/INST] <|im_start <im_end|> <| |> <<s>> Ġ Ċ Ā""".split()
_SPACES = [
    " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r", " \n", "\n ",
    "\t\t", " \t ", "\u00a0", "\u3000", "\u2028", "\u2003", "\u0085", "\u200b",
    "\u180e", "\x0b", "\x0c", "\x1c", "\ufeff", "\u202f", "\u1680",
]
_BLOCKS = [  # First and last character.
    (0x4E00, 0x9FFF), (0x3041, 0x3096), (0x30A1, 0x30FA), (0xAC00, 0xD7A3),
    (0x0400, 0x04FF), (0x0391, 0x03C9), (0x05D0, 0x05EA), (0x0621, 0x064A),
    (0x0905, 0x0939), (0x0E01, 0x0E2E), (0x1200, 0x1248), (0x10D0, 0x10FA),
    (0x0531, 0x0556), (0xFF01, 0xFF5E), (0x2100, 0x214F), (0x2190, 0x22FF),
    (0x1F300, 0x1F64F), (0x1D400, 0x1D454), (0x0660, 0x0669), (0x2460, 0x24FF),
    (0x2150, 0x218B), (0x00C0, 0x024F),
]
_EMOJI = ["🦙", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇨🇭", "😀", "❤️", "1️⃣", "☃", "🧑‍🚀"]
_MARKS = [chr(c) for c in range(0x300, 0x350)] + list("\u064b\u0651\u093c\u094d\u0e34\u05b8\u3099")


def _digits(rng):
    return "".join(rng.choices("0123456789", k=rng.choice([1, 2, 3, 4, 5, 7, 12])))


def _block(rng):
    first, last = rng.choice(_BLOCKS)
    count = rng.randint(1, 6)
    chars = [chr(rng.randint(first, last)) for _ in range(count)]
    return "".join(c for c in chars if unicodedata.category(c) != "Cn")


def _marked(rng):
    base = rng.choice("aeiounAEO한कกابא")
    return base + "".join(rng.choices(_MARKS, k=rng.randint(1, 3)))


def _odd(rng):
    pool = rng.choice([_ASSIGNED, _ASSIGNED, _RARE])
    return "".join(rng.choices(pool, k=rng.randint(1, 3)))


_SEGMENTS = [
    (5, lambda r: rng_join(r, _WORDS)),
    (2, lambda r: r.choice(_CODE)),
    (2, _digits),
    (2, lambda r: r.choice(_CONTRACTIONS)),
    (4, lambda r: "".join(r.choices(_SPACES, k=r.choice([1, 1, 1, 2, 3])))),
    (1, lambda r: r.choice([" ", "\n", "\t", "\r\n"]) * r.randint(2, 40)),
    (3, _block),
    (1, lambda r: r.choice(_EMOJI)),
    (1, _marked),
    (1, _odd),
    (1, lambda r: r.choice(MARKERS)),
    (1, lambda r: "".join(r.choices("!?.,;:-_()[]{}<>/\\|@#$%^&*+=~`\"'", k=r.randint(1, 5)))),
    (1, lambda r: chr(r.randrange(0, 0x20))),
    (1, lambda r: r.choice("aZé好😀") * r.randint(2, 20)),
]


def rng_join(rng, words):
    parts = rng.choices(words, k=rng.randint(1, 4))
    if rng.random() < 0.2:
        parts = [p.capitalize() if rng.random() < 0.5 else p.upper() for p in parts]
    return rng.choice(["", " "]) + " ".join(parts)


def random_strings(seed: int, count: int) -> list:
    """count different non-empty strings; the same for the same arguments."""
    rng = random.Random(seed)
    weights = [w for w, _ in _SEGMENTS]
    makers = [m for _, m in _SEGMENTS]
    out = {}
    while len(out) < count:
        segments = rng.choices(makers, weights, k=rng.choice([1, 2, 2, 3, 4, 6]))
        text = "".join(make(rng) for make in segments)
        if text:
            out[text] = None
    return list(out)
