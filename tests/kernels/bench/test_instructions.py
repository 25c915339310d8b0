"""How many instructions a call of each benchmarked kernel takes, against a
committed table: layer avx2, one thread, counted exactly by callgrind.

A wanted change: run
    LATHE_UPDATE_INSTRUCTIONS=1 ctest --test-dir build -R kernels-instructions
and read the diff of instructions.txt. Another case: BenchCases.cpp.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("LATHE_BIN", REPOSITORY / "build/bin"))
PROGRAM = BIN / "kernels-instructions"
TABLE = pathlib.Path(__file__).with_name("instructions.txt")
HEAD = "Made and checked by test_instructions.py, which says how and what it means."
FUNCTION = "lathe_counted_call"
TOLERANCE = 0.03
UPDATE = "LATHE_UPDATE_INSTRUCTIONS=1 ctest --test-dir build -R kernels-instructions"


def read_table():
    """The compiler and the counts by name."""
    lines = TABLE.read_text().splitlines()[1:]
    compiler = next(line for line in lines if line.startswith("compiler: "))
    rows = (line.split() for line in lines if line.startswith("avx2/"))
    return compiler.removeprefix("compiler: "), {name: int(n) for name, n in rows}


def write_table(compiler: str, counts: dict[str, int]):
    lines = [HEAD, "", f"compiler: {compiler}", "Instructions of a call:"]
    kernel = None
    for name, instructions in counts.items():
        before, kernel = kernel, re.split("/(?:M|rows):", name)[0]
        if kernel != before:
            lines.append("")
        lines.append(f"{name:36}{instructions:10}")
    TABLE.write_text("\n".join(lines) + "\n")


def compiler_version() -> str:
    return subprocess.run(
        [PROGRAM, "--compiler"], capture_output=True, text=True, check=True
    ).stdout.strip()


def count() -> dict[str, int]:
    """Instructions by name: the n-th dump is of the n-th name printed."""
    with tempfile.TemporaryDirectory() as folder:
        dumps = pathlib.Path(folder) / "dumps"
        environment = {**os.environ, "HOME": folder}
        environment.pop("VALGRIND_OPTS", None)
        done = subprocess.run(
            [
                *("valgrind", "--quiet", "--tool=callgrind"),
                *(f"--toggle-collect={FUNCTION}", f"--dump-after={FUNCTION}"),
                *("--combine-dumps=yes", f"--callgrind-out-file={dumps}"),
                PROGRAM,
            ],
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
        )
        if done.returncode != 0:
            raise RuntimeError(f"valgrind: status {done.returncode}\n{done.stderr}")
        names = done.stdout.split()
        parts = dumps.read_text().split("\npart: ")[1:]
    totals = [
        int(line.removeprefix("totals: "))
        for part in parts
        if f"\ndesc: Trigger: --dump-after={FUNCTION}\n" in part
        for line in part.splitlines()
        if line.startswith("totals: ")
    ]
    if len(totals) != len(names) or len(set(names)) != len(names):
        raise RuntimeError(f"{len(names)} names, {len(totals)} counts")
    return dict(zip(names, totals))


class Instructions(unittest.TestCase):
    def skip(self, reason: str):
        # ctest looks for these words.
        print(f"SKIPPED, NOT TESTED: {reason}", file=sys.stderr)
        self.skipTest(reason)

    def test_counts(self):
        with open("/proc/cpuinfo", encoding="ascii", errors="ignore") as info:
            words = info.read().split()
        if not {"avx2", "fma", "f16c"} <= set(words):
            self.skip("this CPU has no AVX2, FMA and F16C")
        if not shutil.which("valgrind"):
            self.skip("valgrind is missing (apt-get install valgrind)")
        compiler = compiler_version()
        if os.environ.get("LATHE_UPDATE_INSTRUCTIONS"):
            write_table(compiler, count())
        expected_compiler, expected = read_table()
        if compiler != expected_compiler:
            self.skip(
                f"the table is of '{expected_compiler}', this build of '{compiler}'"
            )
        counts = count()
        self.assertEqual(
            list(counts), list(expected), f"other cases than in the table: {UPDATE}"
        )
        for name, now in counts.items():
            before = expected[name]
            change = f"{name}: {now} instructions, {before} in the table"
            change += f" ({now / before - 1:+.1%})"
            with self.subTest(case=name):
                if now > before * (1 + TOLERANCE):
                    self.fail(
                        f"{change}: find out why; if it is worth it, {UPDATE} and "
                        "say so in the commit"
                    )
                if now < before * (1 - TOLERANCE):
                    self.fail(f"{change}: keep the gain, {UPDATE}")


if __name__ == "__main__":
    unittest.main()
