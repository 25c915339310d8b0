"""The files of tools/deploy agree with the program, its packages and each
other."""

import ast
import http.server
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import unittest

import yaml
from support import BIN, REPOSITORY

DEPLOY = REPOSITORY / "tools/deploy"


def packages(name: str) -> set:
    """A list of tools/setup.sh."""
    shown = subprocess.run(
        ["bash", "-c", f'. tools/setup.sh && printf "%s\\n" "${{{name}[@]}}"'],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(shown.stdout.split())


class DockerfileTest(unittest.TestCase):
    text = (DEPLOY / "Dockerfile").read_text()

    def instructions(self, name: str) -> list:
        joined = self.text.replace("\\\n", " ")
        return re.findall(rf"^{name} (.*)$", joined, re.M)

    def test_what_is_copied_exists(self):
        for copied in self.instructions("COPY"):
            words = copied.split()
            if not words[0].startswith("--from"):
                for source in words[:-1]:
                    self.assertTrue((REPOSITORY / source).exists(), source)
            else:
                self.assertEqual(words[1], "/src/build-runtime/bin/lathe")

    def test_packages_are_those_of_setup(self):
        used = re.findall(r"\$\{(\w+_PACKAGES)\[@\]\}", self.text)
        self.assertEqual(used, ["SERVER_BUILD_PACKAGES", "SERVER_PACKAGES"])
        self.assertNotIn("apt-get", self.text)
        self.assertLess(packages("SERVER_BUILD_PACKAGES"), packages("BUILD_PACKAGES"))

    def test_the_program_finds_its_libraries(self):
        """SERVER_PACKAGES are the packages whose libraries it is linked with,
        but for those that every Debian has."""
        linked = subprocess.run(
            ["ldd", BIN / "lathe"], capture_output=True, text=True, check=True
        ).stdout
        paths = [
            pathlib.Path(path).resolve()
            for path in re.findall(r"=> (/\S+)", linked)
            if "/build" not in path
        ]
        # Packages name some files by a link, /lib for /usr/lib.
        names = [*paths, *(str(path).removeprefix("/usr") for path in paths)]
        owners = subprocess.run(
            ["dpkg", "-S", *names], capture_output=True, text=True
        ).stdout
        needed = set(re.findall(r"^([^:]+):", owners, re.M))
        self.assertEqual(len(re.findall("^.+$", owners, re.M)), len(paths), owners)
        self.assertEqual(needed - {"libc6", "libgcc-s1"}, packages("SERVER_PACKAGES"))

    def test_the_preset_needs_no_compiler(self):
        presets = json.loads((REPOSITORY / "CMakePresets.json").read_text())
        preset = next(p for p in presets["configurePresets"] if p["name"] == "runtime")
        self.assertIn("cmake --preset runtime", self.text)
        self.assertEqual(preset["binaryDir"], "${sourceDir}/build-runtime")
        self.assertEqual(preset["cacheVariables"]["LATHE_BUILD_COMPILER"], "OFF")

    def test_it_runs_as_nobody_special_and_its_options_exist(self):
        self.assertEqual(self.instructions("USER"), ["10001"])
        command = ast.literal_eval(self.instructions("CMD")[-1])
        check_options(self, command)


def check_options(test: unittest.TestCase, arguments: list):
    """`lathe serve` has all options of a command line."""
    shown = subprocess.run(
        [BIN / "lathe", "serve", "--help"], capture_output=True, text=True, check=True
    ).stdout
    test.assertEqual(arguments[0], "serve")
    for argument in arguments:
        if argument.startswith("--"):
            test.assertRegex(shown, rf"{argument.split('=')[0]}\b")


class KubernetesTest(unittest.TestCase):
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))

    def setUp(self):
        self.deployment = self.documents[0]["spec"]
        self.pod = self.deployment["template"]["spec"]
        (self.container,) = self.pod["containers"]

    def test_names_fit_together(self):
        self.assertEqual(
            [document["kind"] for document in self.documents],
            ["Deployment", "Service", "PodDisruptionBudget"],
        )
        labels = self.deployment["template"]["metadata"]["labels"]
        self.assertEqual(self.deployment["selector"]["matchLabels"], labels)
        self.assertEqual(self.documents[1]["spec"]["selector"], labels)
        self.assertEqual(self.documents[2]["spec"]["selector"]["matchLabels"], labels)
        volumes = {volume["name"] for volume in self.pod["volumes"]}
        mounts = {mount["name"] for mount in self.container["volumeMounts"]}
        self.assertEqual(volumes, mounts)

    def test_options_exist(self):
        check_options(self, self.container["args"])

    def test_draining_fits_into_the_grace_period(self):
        drain = next(a for a in self.container["args"] if a.startswith("--drain="))
        sleep = self.container["lifecycle"]["preStop"]["exec"]["command"]
        self.assertEqual(sleep[0], "sleep")
        needed = int(drain.split("=")[1]) + int(sleep[1])
        self.assertGreater(self.pod["terminationGracePeriodSeconds"], needed + 5)

    def test_probes_ask_what_there_is(self):
        live = self.container["livenessProbe"]["httpGet"]
        self.assertEqual(live["path"], "/livez")
        ready = self.container["readinessProbe"]["exec"]["command"]
        self.assertEqual(ready, ["healthcheck", "/readyz"])

    def test_requests_are_limits(self):
        resources = self.container["resources"]
        self.assertEqual(resources["requests"], resources["limits"])
        self.assertTrue(resources["limits"]["cpu"].isdigit())


class HealthcheckTest(unittest.TestCase):
    """The script, against a server that wants a key for all but /livez."""

    @classmethod
    def setUpClass(cls):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                key = self.headers.get("Authorization")
                is_let_in = self.path == "/livez" or key == "Bearer first"
                self.send_response(200 if is_let_in else 401)
                self.end_headers()

            def log_message(self, *_):
                pass

        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)

    def check(self, *arguments, **environment) -> int:
        port = str(self.server.server_address[1])
        return subprocess.run(
            [DEPLOY / "healthcheck", *arguments],
            env={"PATH": "/usr/bin:/bin", "LATHE_PORT": port, **environment},
            stderr=subprocess.DEVNULL,
            timeout=10,
        ).returncode

    def test_asks_with_the_first_key(self):
        self.assertEqual(self.check(), 0)
        self.assertNotEqual(self.check("/readyz"), 0)
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("# keys\n\nfirst\nsecond\n")
            keys.flush()
            self.assertEqual(self.check("/readyz", LATHE_API_KEY_FILE=keys.name), 0)

    def test_no_server_is_no_health(self):
        self.assertNotEqual(self.check(LATHE_PORT="1"), 0)
