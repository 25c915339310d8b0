#!/usr/bin/env python3
"""Writes the text that perplexities are measured on.

It is put together from the licence texts that every Debian carries (package
base-files): the first LIMIT bytes, to the end of a line, of each. That gives
more than 24 chunks of 512 tokens with each tokenizer in use. The sum of the
result is checked, since a perplexity means something for one text only.

usage: make_eval_text.py OUT.txt
"""

import argparse
import hashlib
import pathlib
import sys

FOLDER = pathlib.Path("/usr/share/common-licenses")
NAMES = [
    "Artistic",
    "CC0-1.0",
    "GPL-1",
    "MPL-1.1",
    "GFDL-1.3",
    "Apache-2.0",
    "LGPL-2.1",
    "MPL-2.0",
]
LIMIT = 9000
SHA256 = "0818ff922ddda57168f64bdace994006115c1cd97962446b204f0c81c069a7dd"


def text() -> bytes:
    """The text; raises ValueError where a licence file is not Debian 12's."""
    parts = []
    for name in NAMES:
        start = (FOLDER / name).read_bytes()[:LIMIT]
        parts.append(start[: start.rindex(b"\n") + 1])
    joined = b"\n".join(parts)
    found = hashlib.sha256(joined).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{FOLDER} differs from Debian 12's: expected {SHA256}, found {found}"
        )
    return joined


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: make_eval_text.py eval.txt",
    )
    parser.add_argument("out", type=pathlib.Path)
    try:
        content = text()
    except (OSError, ValueError) as error:
        print(f"make_eval_text.py: {error}", file=sys.stderr)
        return 1
    parser.parse_args().out.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
