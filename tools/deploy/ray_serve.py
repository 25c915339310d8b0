#!/usr/bin/env python3
"""Serves a model with N processes of `lathe serve`, as Ray Serve replicas.

    pip install 'ray[serve]'
    tools/deploy/ray_serve.py model.lathe --replicas 2 --threads 4 --port 8000

Every replica starts one process on a free port of its machine and passes
requests through to it, streams included. All replicas give the same bits, so it
does not matter which one answers, nor whether it is asked again: a request that
a replica could not begin to answer is sent to another one.
"""

import argparse
import ctypes
import os
import re
import signal
import subprocess
import threading
import time

import aiohttp
from ray import serve
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

# Of one connection alone (RFC 9110, section 7.6.1), or set anew.
HOP_BY_HOP = {
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


def end_with_parent():
    """Between fork and exec: the process ends when the replica does, however
    that ends (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class LatheProcess:
    """One `lathe serve` on a free port of 127.0.0.1."""

    def __init__(self, command: list, start_seconds: float = 600):
        self.process = subprocess.Popen(
            command + ["--host", "127.0.0.1", "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,
        )
        self.url = None
        self.is_up = threading.Event()
        threading.Thread(target=self.read_messages, daemon=True).start()
        if not self.is_up.wait(start_seconds) or self.url is None:
            self.process.kill()
            raise RuntimeError("lathe serve does not start; see its messages above")

    def read_messages(self):
        for line in self.process.stderr:
            print(line, end="", flush=True)
            if found := re.search(r"serving on (http://\S+?:\d+)", line):
                self.url = found[1]
                self.is_up.set()
        self.is_up.set()

    def stop(self, seconds: float = 30):
        """Lets answers in progress end."""
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()


@serve.deployment(
    health_check_period_s=1,
    health_check_timeout_s=5,
    graceful_shutdown_timeout_s=60,
)
class Lathe:
    """A replica: a process, and what passes requests to it."""

    def __init__(self, command: list):
        self.command = command
        self.lathe = LatheProcess(command)
        self.client = None

    def check_health(self):
        """Ray starts another replica once this raises."""
        if self.lathe.process.poll() is not None:
            raise RuntimeError("lathe serve has ended")

    def replica_pids(self) -> dict:
        """For tests: who could be killed."""
        return {"replica": os.getpid(), "lathe": self.lathe.process.pid}

    async def __call__(self, request: Request) -> Response:
        if self.client is None:  # It belongs to the loop that calls.
            self.client = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None),
                connector=aiohttp.TCPConnector(limit=0),
            )
        headers = [
            (name, value)
            for name, value in request.headers.items()
            if name.lower() not in HOP_BY_HOP
        ]
        path = request.url.path
        if request.url.query:
            path += "?" + request.url.query
        answer = await self.client.request(
            request.method,
            self.lathe.url + path,
            headers=headers,
            data=await request.body(),
            allow_redirects=False,
        )

        async def parts():
            # Closing the connection ends the generation when the client goes.
            async with answer:
                async for part in answer.content.iter_any():
                    yield part

        return StreamingResponse(
            parts(),
            status_code=answer.status,
            headers={
                name: value
                for name, value in answer.headers.items()
                if name.lower() not in HOP_BY_HOP
            },
        )

    def __del__(self):
        if hasattr(self, "lathe"):
            self.lathe.stop()


def application(command: list, replicas: int, threads: int):
    """The Ray Serve application: `replicas` processes of `command`."""
    return Lathe.options(
        num_replicas=replicas,
        max_ongoing_requests=512,
        ray_actor_options={"num_cpus": threads},
    ).bind(command)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="an engine or model, as lathe serve takes it")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--threads", type=int, default=4, help="of each replica")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--lathe", default="lathe", help="the program")
    parser.add_argument(
        "options", nargs="*", help="further options of lathe serve, behind --"
    )
    options = parser.parse_args()
    command = [options.lathe, "serve", options.model]
    command += ["--threads", str(options.threads), *options.options]
    serve.start(http_options={"host": options.host, "port": options.port})
    serve.run(application(command, options.replicas, options.threads))
    print(f"serving on http://{options.host}:{options.port}", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        serve.shutdown()


if __name__ == "__main__":
    main()
