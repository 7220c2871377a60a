"""A chat endpoint on loopback that misbehaves as told."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def chat_endpoint(*behaviours):
    """Serves the behaviours in order, the last one for ever; yields (url, list of request bodies).

    A behaviour is a status code, (status code, body), "slow", "no_choice", "html" or a message dict.
    """
    requests, queue = [], list(behaviours)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            behaviour = queue.pop(0) if len(queue) > 1 else queue[0]
            if behaviour == "slow":
                time.sleep(1.5)
            status, body = _answer(behaviour)
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                return  # the client gave up, which is the point of "slow"

        def log_message(self, *args):
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()


def _answer(behaviour):
    if isinstance(behaviour, int):
        return behaviour, json.dumps({"error": {"message": f"status {behaviour}"}}).encode()
    if isinstance(behaviour, tuple):
        return behaviour[0], json.dumps(behaviour[1]).encode()
    if behaviour == "html":
        return 200, b"<html>not an api</html>"
    message = behaviour if isinstance(behaviour, dict) else {"content": "Goodbye."}
    choices = (
        []
        if behaviour == "no_choice"
        else [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}]
    )
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    return 200, json.dumps(body).encode()
