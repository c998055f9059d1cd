# SPDX-License-Identifier: MIT
"""server.py - completions of the lines of a file, by servers: one for each GPU or CPU slot.

    python3 server.py prompts.txt      # the toy server below, on two CPU slots; with a real one:
    export DEVICES=all
    SERVER="llama-server -m model.gguf --port {port} --parallel 8" python3 server.py prompts.txt
    SERVER="vllm serve Qwen/Qwen3-8B --port {port}" python3 server.py prompts.txt

Each worker starts its server on a port of its own and sends it 8 requests at a time.
"""

import json
import os
import pathlib
import shlex
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gpudispatch import Executor
from gpudispatch.servers import ServerWorker

TOY = f"{shlex.quote(sys.executable)} {shlex.quote(__file__)} --toy {{port}}"


class Toy(BaseHTTPRequestHandler):
    """Completes a prompt with its words in reverse order."""

    def do_GET(self) -> None:
        self.reply({"status": "ok"})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply({"choices": [{"text": " ".join(reversed(request["prompt"].split()))}]})

    def reply(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(source: str) -> int:
    prompts = pathlib.Path(source).read_text().splitlines()
    requests = [{"prompt": prompt, "max_tokens": 100} for prompt in prompts]
    llm = ServerWorker(shlex.split(os.environ.get("SERVER", TOY)), concurrency=8, timeout=300)
    failed = 0
    with Executor(devices=os.environ.get("DEVICES", "cpu:2"), worker=llm, max_attempts=2) as ex:
        for r in ex.outcomes(requests, ordered=True, progress=True):
            failed += not r.ok
            print(r.value["choices"][0]["text"].strip() if r.ok else f"failed: {r.text}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--toy":
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Toy).serve_forever()
    sys.exit(main(sys.argv[1]))
