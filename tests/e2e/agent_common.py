"""A running agent, and what it shows."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

import conftest

# the search for leaks at the end needs ptrace
SANITIZED = any(os.path.join("build", kind) in conftest.BINARY for kind in ("asan", "tsan"))
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def parse(text):
    """[(name, {label: value}, number)], in order."""
    samples = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, number = SAMPLE.match(line).groups()
            samples.append((name, dict(LABEL.findall(labels or "")), float(number)))
    return samples


class Missing(ValueError):
    """A page has no such sample, or more than one."""


class Page:
    def __init__(self, text):
        self.text, self.samples = text, parse(text)

    def all(self, name, **labels):
        """A label is as given; of a command its program is enough."""
        def fits(label, has, want):
            return has == want or (label == "command" and (has or "").startswith(want + " "))

        return [(found, value) for key, found, value in self.samples
                if key == name and all(fits(label, found.get(label), want) for label, want in labels.items())]

    def sum(self, name, **labels):
        return sum(value for _, value in self.all(name, **labels))

    def one(self, name, **labels):
        found = self.all(name, **labels)
        if len(found) != 1:
            raise Missing(f"{name} {labels}: {found}")
        return found[0][1]


class Machine:
    """A simulated machine that outlives the agents on it."""

    def __init__(self, hec, spec):
        self.hec = hec
        self.run = hec.popen("run", "-q", "-f", "-o", "machine.hec", "--trace", "off", "--hooks", "off", "--sim", spec, "--",
                             "sleep", "300", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.env = None
        while not self.env:
            assert self.run.poll() is None
            time.sleep(0.01)
            for pid in children(self.run.pid):
                if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8") == "sleep\n":  # before that its environment is hec's own
                    environ = pathlib.Path(f"/proc/{pid}/environ").read_text(encoding="utf-8")
                    self.env = dict(entry.split("=", 1) for entry in environ.split("\0") if "=" in entry)

    def play(self, case, seconds, *arguments):
        return self.hec.popen("sim", case, "--seconds", str(seconds), *arguments, env=self.env,
                              stdout=subprocess.DEVNULL)

    def close(self):
        self.run.terminate()
        self.run.wait(conftest.HANGS_S)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


class Agent:
    def __init__(self, hec, *arguments, env=None, **options):
        self.log = hec.folder / f"agent-{time.monotonic_ns()}.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([hec.path, "agent", "--listen", "127.0.0.1:0", "--interval", "0.2",
                                             *(["--scrape-interval", "0"] if "--scrape-interval" not in arguments else []),
                                             *(["--no-sandbox"] if SANITIZED else []), *map(str, arguments)],
                                            stderr=log, cwd=hec.folder, env=env, **options)
        found = None
        while not found:
            assert self.process.poll() is None, self.said
            time.sleep(0.01)
            found = re.search(r"(https?)://([\d.]+):(\d+)/metrics", self.said)
        self.scheme, self.host, self.port = found[1], found[2], int(found[3])

    @property
    def said(self):
        return self.log.read_text(encoding="utf-8")

    def ask(self, path="/metrics", method="GET", headers=None, context=None):
        """(status, headers, text)"""
        if self.scheme == "https":
            connection = http.client.HTTPSConnection("localhost", self.port, timeout=conftest.HANGS_S, context=context)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=conftest.HANGS_S)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read().decode()
        finally:
            connection.close()

    def page(self):
        status, _, text = self.ask()
        assert status == 200
        return Page(text)

    def live(self):
        """What the page for a browser is made of."""
        status, _, text = self.ask("/live.json")
        assert status == 200
        return json.loads(text)

    def until(self, what):
        """The first page of which `what` is true. One without what it asks for is not: a reading may come late."""
        end = time.monotonic() + conftest.HANGS_S
        while True:
            page = self.page()
            with contextlib.suppress(Missing):
                if what(page):
                    return page
            assert time.monotonic() < end, (self.said, page.text)
            time.sleep(0.05)

    def until_ready(self):
        conftest.until(lambda: self.ask("/readyz")[0] == 200, why=lambda: self.said)

    def stop(self, how=signal.SIGTERM):
        """The exit status."""
        self.process.send_signal(how)
        status = self.process.wait(conftest.HANGS_S)
        assert "Sanitizer" not in self.said and "runtime error" not in self.said, self.said
        return status


NASTY = (b"", b"\0" * 5000, b"GET " + b"/" * 20000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 100, b"GET\r\n\r\n",
         b"GET /metrics HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
         b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 100000 + b"\r\n\r\n",
         b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nxxxx",
         b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
         b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"z" * 1000,
         b"GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
         b"GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         b"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ////\r\n\r\n",
         b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: " + b"application/openmetrics-text;" * 40 + b"\r\n\r\n",
         b"GET /%00%ff%2e%2e/metrics?a=%s%n HTTP/1.1\r\nHost: a\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
         b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x41" * 200, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50)


def hostile(address, count, seed=1):
    """So many connections: the requests above, whole, cut, with bytes changed, some that hang up in the middle of the answer."""
    draw = random.Random(seed)
    for i in range(count):
        request = bytearray(NASTY[i % len(NASTY)])
        if i >= len(NASTY):
            for _ in range(draw.choice((0, 1, 5, 50))):
                if request:
                    request[draw.randrange(len(request))] = draw.randrange(256)
            request = request[:draw.randrange(len(request) + 1)] if draw.random() < 0.3 else request
        with contextlib.suppress(OSError), socket.create_connection(address, timeout=5) as connection:
            connection.sendall(request)
            connection.settimeout(0.01)
            while draw.random() < 0.8 and connection.recv(65536):
                pass
