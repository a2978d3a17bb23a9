"""The server: on the loopback address only, silent, and gone with the terminal that started it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from dpscreen.studio.guard import HOST, Guard, Keys

REDIRECT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>dpscreen studio</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}"></head>
<body><a href="{address}">Go on to dpscreen studio</a></body></html>
"""


class PortTaken(Exception):
    """Another program listens there, or the port may not be used."""


@dataclass(frozen=True)
class Listener:
    """A socket that listens already, so that the address can be told before the server runs."""

    socket: socket.socket
    keys: Keys

    @classmethod
    def at(cls, port: int = 0) -> Listener:
        """Listen on the loopback address; 0 takes any free port."""
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((HOST, port))
            found.listen(64)
        except OSError:
            found.close()
            raise PortTaken(
                f"Port {port} is taken, or may not be used; give another one."
            ) from None
        return cls(found, Keys())

    @property
    def port(self) -> int:
        """Return the port."""
        number: int = self.socket.getsockname()[1]
        return number

    @property
    def address(self) -> str:
        """Return where to go, with the token that works once."""
        return f"http://{HOST}:{self.port}/enter?token={self.keys.token}"


def serve(app: ASGIApp, listener: Listener, ready: Callable[[], None]) -> None:
    """Answer until the process is told to stop. Nothing is logged: requests hold what is typed.

    `ready` is called when all that a first page needs is loaded.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        Guard(app, listener.keys, listener.port),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        timeout_graceful_shutdown=1,
    )
    config.load()
    asyncio.run(run_in_threadpool(int))
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # so that what is open is closed, whoever ends the studio
            signal.signal(getattr(signal, name), signal.default_int_handler)
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        ready()
        uvicorn.Server(config).run(sockets=[listener.socket])


class BrowserDoor:
    """Opens a browser without showing the token to whoever can list processes.

    The address stands in a file that only this user can read, and that is gone afterwards.
    """

    def __init__(self, address: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dpscreen-studio-"))
        self._file = self._folder / "open.html"
        self._file.write_text(REDIRECT.format(address=address), encoding="utf-8")

    def open(self) -> None:
        """Try to open a browser, without waiting for it."""

        def work() -> None:
            with suppress(Exception):
                webbrowser.open(self._file.as_uri())

        threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        """Take the file away."""
        shutil.rmtree(self._folder, ignore_errors=True)
