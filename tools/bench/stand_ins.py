"""What the tests of against_llama share: a folder of stand-ins for programs."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "against_llama"

# llama-quantize: the last word but one is where the copy goes.
QUANTIZE = """#!/bin/sh
for last; do before=$out; out=$last; done
cp "$2" "$before"
"""


class StandIns(unittest.TestCase):
    """Has a folder `root`, removed at the end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "peer/bin").mkdir(parents=True)
        self.write("peer/bin/llama-quantize", QUANTIZE)
        self.write("peer/bin/libllama.so", "")

    def write(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)

    def against_llama(self, *words):
        """Runs the script on the folder's stand-ins."""
        environment = dict(os.environ)
        environment["LATHE_PEER_DIR"] = str(self.root / "peer")
        environment["XDG_CACHE_HOME"] = str(self.root / "cache")
        command = [SCRIPT, *words, "--lathe", self.root / "lathe"]
        return subprocess.run(command, capture_output=True, text=True, env=environment)
