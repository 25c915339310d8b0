"""What the tests of lathe serve share: a served chain model, the clients, and
plain requests.

To add a test: a method of a ServeTest in the file of its topic; self.server is
a server of the chain model (chain_model.py) that all tests of the file share.
"""

import atexit
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import chain_model

REPOSITORY = chain_model.REPOSITORY
BIN = pathlib.Path(os.environ.get("LATHE_BIN", REPOSITORY / "build/bin"))
CLIENTS = pathlib.Path(os.environ.get("LATHE_CLIENTS", BIN.parent / "tests/clients"))
HERE = pathlib.Path(__file__).resolve().parent


def use_clients():
    """Makes the installed clients importable, or skips."""
    done = subprocess.run([sys.executable, HERE / "install_clients", CLIENTS])
    if done.returncode != 0:
        raise unittest.SkipTest("the clients cannot be installed")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site.addsitedir(str(CLIENTS / "lib" / version / "site-packages"))


def load_cli_support():
    """The support of tests/e2e/cli, which has the name of this file."""
    path = REPOSITORY / "tests/e2e/cli/support.py"
    spec = importlib.util.spec_from_file_location("cli_support", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def make_home() -> pathlib.Path:
    """A folder that is there until the tests end."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="lathe-serve-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


class Server:
    """lathe serve on a port of this machine (0: a free one), with a home of its
    own."""

    def __init__(
        self, model, *options, home: pathlib.Path, port=0, wrapper=(), **process
    ):
        """`wrapper` is a command that runs another one; `process` are further
        arguments of Popen."""
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("LATHE_", "XDG_"))
        }
        environment["HOME"] = str(home)
        self.log = tempfile.NamedTemporaryFile(
            "w+", prefix="server-", suffix=".log", dir=home, delete=False
        )
        self.process = subprocess.Popen(
            [*wrapper, BIN / "lathe", "serve", model, "--port", str(port)]
            + list(map(str, options)),
            env=environment,
            stdout=self.log,
            stderr=self.log,
            **process,
        )
        self.url = self._wait()

    def _wait(self) -> str:
        for _ in range(1200):
            found = re.search(r"http://[0-9.]+:\d+", self.printed())
            if found:
                return found[0]
            try:
                self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError(f"the server does not start: {self.printed()}")

    def printed(self) -> str:
        return pathlib.Path(self.log.name).read_text()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(30)
        self.log.close()
        return status

    def request(self, path: str, body=None, raw=None, timeout=60):
        """Status and body of a plain HTTP request; JSON is parsed."""
        data = raw if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                status, text = reply.status, reply.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode()


class ServeTest(unittest.TestCase):
    """Tests with one server of the chain model."""

    options = ()
    process = {}  # Further arguments of Popen.
    template = chain_model.TEMPLATE

    @classmethod
    def setUpClass(cls):
        cls.home = make_home()
        model = cls.home / "chain.gguf"
        chain_model.write(model, cls.template)
        cls.server = Server(model, *cls.options, home=cls.home, **cls.process)
        cls.addClassCleanup(cls.server.stop)

    def tearDown(self):
        """Whatever was sent, the server is alive and answers as ever."""
        status, reply = self.server.request(
            "/v1/completions", {"prompt": "x", "max_tokens": 5, "temperature": 0}
        )
        self.assertEqual((status, self.server.process.poll()), (200, None))
        self.assertEqual(reply["choices"][0]["text"], "DEFGHIJ!")
