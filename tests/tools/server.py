"""An HTTP server on this machine that can misbehave."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What the server answers: bodies by path, and how many bytes to hold back."""

    base_url: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    held_back: int = 0
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Site]:
    """Serve what the site holds, on this machine, and answer 404 to anything else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            body = served.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - served.held_back])

        def log_message(self, *_: object) -> None:
            """Keep the test output quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        server.shutdown()
        thread.join()
