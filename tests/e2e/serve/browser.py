"""A headless Chromium, driven over a pipe by its DevTools protocol."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_browser():
    """The path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One page of a browser of its own, which close() ends. `errors` gathers
    what the page writes to its console as errors, `prompts` the addresses for
    which it asked for a password after answer_prompts()."""

    def __init__(self, width=1280, height=800, dark=False):
        self.profile = tempfile.TemporaryDirectory(
            prefix="lathe-browser-", ignore_cleanup_errors=True
        )
        self.printed = tempfile.TemporaryFile()
        # Chromium reads commands from descriptor 3 and writes to 4. Its ends
        # are moved away from these first: whatever the shell below puts there
        # must not replace an end that it has yet to copy.
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        ends = [
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
            for end in (read_commands, write_answers)
        ]
        arguments = [
            find_browser(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.profile.name}",
        ]

        command = 'exec 3<&{0} 4>&{1} {0}<&- {1}>&-; exec "$@"'.format(*ends)
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", *arguments],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=self.printed,
        )
        for end in (read_commands, write_answers, *ends):
            os.close(end)
        self.received = b""
        self.number = 0
        self.errors = []
        self.loads = 0
        self.prompts = []
        self.passwords = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call(
            "Target.attachToTarget", targetId=target, flatten=True
        )["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.resize(width, height)
        self.set_dark(dark)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.printed.close()
        self.profile.cleanup()

    def has_ended(self) -> EOFError:
        """Why there is nobody to talk to."""
        try:
            status = f"ended with status {self.process.wait(5)}"
        except subprocess.TimeoutExpired:
            status = "closed its pipe"
        self.printed.seek(0)
        tail = self.printed.read().decode(errors="replace").splitlines()[-20:]
        return EOFError("\n".join([f"the browser has {status}; it said:", *tail]))

    def receive(self, seconds):
        """The next message of the browser."""
        end = time.monotonic() + seconds
        while b"\0" not in self.received:
            wait = end - time.monotonic()
            if wait <= 0 or not select.select([self.answers], [], [], wait)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.answers, 1 << 20)
            if not part:
                raise self.has_ended()
            self.received += part
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters) -> int:
        """Gives a command; the number that its answer will have."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        try:
            os.write(self.commands, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise self.has_ended() from None
        return self.number

    def call(self, method, seconds=60, **parameters):
        """The result of one command."""
        number = self.send(method, **parameters)
        while True:
            answer = self.receive(seconds)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.on_event(answer["method"], answer["params"])

    def on_event(self, name, about):
        if name == "Log.entryAdded":
            entry = about["entry"]
            if entry["level"] == "error":
                self.errors.append(entry["text"] + " " + entry.get("url", ""))
        elif name == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"]))
        elif name == "Page.loadEventFired":
            self.loads += 1
        elif name == "Fetch.requestPaused":
            self.send("Fetch.continueRequest", requestId=about["requestId"])
        elif name == "Fetch.authRequired":
            self.prompts.append(about["request"]["url"])
            answer = {"response": "CancelAuth"}
            if self.passwords:
                answer = {
                    "response": "ProvideCredentials",
                    "username": "",
                    "password": self.passwords.pop(0),
                }
            self.send(
                "Fetch.continueWithAuth",
                requestId=about["requestId"],
                authChallengeResponse=answer,
            )

    def answer_prompts(self, *passwords):
        """From now on, whenever the browser would ask its user for a password,
        it gets the next of these; then its dialog is cancelled."""
        self.passwords = list(passwords)
        self.call("Fetch.enable", handleAuthRequests=True)

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def set_dark(self, dark):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            ],
        )

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def wait_for_load(self, leave):
        """Calls what makes the page give way to another, and waits for that:
        until then expressions are still the old one's."""
        before = self.loads
        leave()
        while self.loads == before:
            message = self.receive(60)
            if "method" in message:
                self.on_event(message["method"], message["params"])

    def evaluate(self, expression):
        """The value of a JavaScript expression."""
        result = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_for(self, expression, seconds=60):
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.05)

    def type(self, text):
        """Types into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}),
            )

    def click(self, selector):
        """Clicks on the middle of an element, as a mouse does."""
        x, y = self.evaluate(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )

    def screenshot(self) -> bytes:
        """A PNG of what is visible."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])
