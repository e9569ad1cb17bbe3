"""A real geniemq for tests: $GENIEMQ_BINARY, or geniemq on the path, with an embedded server on a free port."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

SCHEMA = """
name: people
kind: rows
key: id
columns:
  - {name: id, type: skip}
  - {name: age, type: number, edges: exact}
  - {name: sex, type: category}
  - {name: state, type: category}
  - {name: note, type: payload}
"""
ROWS = [("ann", 30, "Female", "WA"), ("bob", 35, "Male", "OR"), ("cyd", 35, "Female", "OR"), ("dan", 52, "Male", "WA")]


def people() -> str:
    """Four people, and a crowd in no state."""
    lines = ["id,age,sex,state,note"] + [f"{i},{a},{s},{p},note of {i}" for i, a, s, p in ROWS]
    lines += [f"p{i},{60 + i % 37},{'Male' if i % 3 else 'Female'},S{i % 11},{'x' * 4000}" for i in range(3000)]
    return "\n".join(lines) + "\n"


def build(folder: Path) -> None:
    """Build the index that workers serve."""
    (folder / "people.yaml").write_text(SCHEMA)
    (folder / "people.csv").write_text(people())
    built = subprocess.run([_binary(), "build", "--schema", "people.yaml", "--input", "people.csv", "--output", "people.gmq"], cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr


class Worker:
    """Serves the index of a folder, with an embedded server or at another one, with more arguments."""

    def __init__(self, folder: Path, at: str = "", *more: str) -> None:
        self._at, self._more = at, more
        self.dir = Path(tempfile.mkdtemp(prefix="geniemq-client-"))
        self.index = folder / "people.gmq"
        self.url = ""
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._log: list[str] = []

    async def start(self) -> None:
        """Start, on the port of last time. One that was killed may leave the port busy for a moment."""
        for _ in range(60):
            if await self._try():
                return
            await asyncio.sleep(0.5)
        raise AssertionError("geniemq does not start:\n" + "".join(self._log[-50:]))

    async def _try(self) -> bool:
        listen = self.url.removeprefix("nats://") or "127.0.0.1:0"
        server = ["--nats", self._at] if self._at else ["--nats-listen", listen, "--data-dir", "data"]
        p = await asyncio.create_subprocess_exec(_binary(), "serve", "--index", f"people={self.index}", *server, "--admin", "off", "--engine", "cpu", *self._more, cwd=self.dir, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL)
        assert p.stderr
        while line := (await p.stderr.readline()).decode():
            self._log.append(line)
            if found := re.match(r"NATS\s+(nats://\S+)", line):
                self.url = found[1]
                self._process, self._reader = p, asyncio.ensure_future(self._read(p.stderr))
                return True
        await p.wait()
        return False

    async def _read(self, stderr: asyncio.StreamReader) -> None:
        while line := await stderr.readline():
            self._log.append(line.decode())

    async def kill(self) -> None:
        if self._process:
            self._process.kill()
            await self._process.wait()
            if self._reader:
                await self._reader
            self._process = None

    async def close(self) -> None:
        await self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


class Server:
    """A nats-server of its own, $GENIEMQ_NATS_SERVER, whose messages are small; more is added to its configuration."""

    def __init__(self, max_payload: int, more: str = "") -> None:
        self.dir = Path(tempfile.mkdtemp(prefix="geniemq-client-"))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.url = f"nats://127.0.0.1:{s.getsockname()[1]}"
        self._conf = self.dir / "nats.conf"
        self._conf.write_text(f'listen: {self.url.removeprefix("nats://")}\nmax_payload: {max_payload}\njetstream {{ store_dir: "{self.dir}" }}\n{more}')
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(os.environ["GENIEMQ_NATS_SERVER"], "-c", str(self._conf), stderr=asyncio.subprocess.PIPE)
        assert self._process.stderr
        log = b""
        while b"Server is ready" not in log:
            line = await self._process.stderr.readline()
            assert line, log.decode()
            log += line
        self._reader = asyncio.ensure_future(self._process.stderr.read())

    async def close(self) -> None:
        if self._process:
            self._process.kill()
            await self._process.wait()
            await self._reader
        shutil.rmtree(self.dir, ignore_errors=True)


def _binary() -> str:
    path = os.environ.get("GENIEMQ_BINARY") or shutil.which("geniemq")
    if not path:
        raise RuntimeError("no geniemq: build it (go build -o build/geniemq ./cmd/geniemq) and set GENIEMQ_BINARY to its path")
    return path
