"""Lets agents of `troupe run` call the tools of MCP servers that others have written.

`check_real_servers.py TROUPE FOLDER`: installs the pinned servers from npm and PyPI into FOLDER
unless they are there. Ends with 77 if there is no Node or Python's venv, or if npm or PyPI cannot be
reached.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

NPM = {"@modelcontextprotocol/server-everything": "2026.8.31",
       "@modelcontextprotocol/server-filesystem": "2026.8.31"}
PYPI = ["mcp==2.3.0", "mcp-server-time==2026.10.19"]
SKIPPED = 77
UNREACHABLE = ("enotfound", "econn", "etimedout", "eai_again", "network", "proxy",
               "failed to establish", "connection", "no matching distribution")

STATELESS_SERVER = """
import sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("cities")


@server.tool()
def greet(name: str) -> str:
    "Greets a city."
    return f"Hello, {name}!"


@server.tool()
def fail() -> str:
    "Always fails."
    raise ValueError("no such city")


server.run("streamable-http", port=int(sys.argv[1]))
"""


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def run_installer(command, folder, what):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode == 0:
        return
    print(done.stdout)
    if any(word in done.stdout.lower() for word in UNREACHABLE):
        skip(f"{what} cannot be reached")
    sys.exit(" ".join(map(str, command)) + " fails")


def install(folder):
    done = folder / "installed"
    wanted = json.dumps([NPM, PYPI])
    if done.exists() and done.read_text() == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": NPM}))
    run_installer(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel",
                   "error"], folder, "npm")
    run_installer([sys.executable, "-m", "venv", "python"], folder, "venv")
    run_installer([folder / "python/bin/pip", "install", "--quiet", *PYPI], folder, "PyPI")
    done.write_text(wanted)


def npm_server(folder, name):
    return str(folder / "node_modules/@modelcontextprotocol" / name / "dist/index.js")


class Caller:
    """Calls tools of one server by `troupe run`, with a scripted model."""

    def __init__(self, troupe, lines, *options):
        self.troupe = troupe
        self.lines = lines
        self.options = options

    def run(self, calls, *more):
        with tempfile.TemporaryDirectory() as made:
            made = pathlib.Path(made)
            (made / "agent.yaml").write_text(
                "name: a\nmodel: scripted:replies.json\ntools:\n  - name: McpToolset\n    args:\n"
                + self.lines)
            (made / "replies.json").write_text(json.dumps({"a": [
                {"function_calls": [{"name": name, "args": args} for name, args in calls]},
                "done"]}))
            return subprocess.run(
                [self.troupe, "run", made / "agent.yaml", "--store", "memory:", "--input", "go",
                 "--output", "json", *self.options, *more], capture_output=True, text=True, timeout=120)

    def call(self, *calls):
        """The responses in the order of the calls."""
        done = self.run(calls)
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            parts = json.loads(line).get("content", {}).get("parts", [])
            found = [part["functionResponse"] for part in parts if "functionResponse" in part]
            if found:
                return found
        raise AssertionError(done.stdout + done.stderr)


def text_of(response):
    return response["response"]["content"][0]["text"]


def program(command, *args):
    return ("      stdio_connection_params:\n        server_params:\n"
            f"          command: {command}\n          args: {json.dumps(args)}\n")


def address(url):
    return f"      streamable_http_connection_params:\n        url: {url}\n"


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class Listening:
    """A server program behind an address."""

    def __init__(self, command, port, **variables):
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.process = subprocess.Popen(command, env={**os.environ, **variables},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                urllib.request.urlopen(self.url, timeout=5)
            except urllib.error.HTTPError:
                return
            except OSError:
                assert self.process.poll() is None, "the server has ended"
                time.sleep(0.1)
        raise AssertionError("the server does not listen")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


def check_everything(caller):
    """The server of the protocol's authors, over any transport."""
    echo, total = caller.call(("echo", {"message": "héllo"}), ("get-sum", {"a": 2, "b": 3}))
    assert text_of(echo) == "Echo: héllo", echo
    assert "5" in text_of(total), total
    (image,) = caller.call(("get-tiny-image", {}))
    blocks = image["response"]["content"]
    assert any(block["type"] == "image" and "artifact" in block for block in blocks), blocks
    assert image["parts"][0]["inlineData"]["mimeType"] == "image/png", image["parts"][0].keys()
    (weather,) = caller.call(("get-structured-content", {"location": "New York"}))
    assert "temperature" in weather["response"]["structuredContent"], weather
    slow, quick = caller.call(
        ("trigger-long-running-operation", {"duration": 1, "steps": 2}),
        ("echo", {"message": "meanwhile"}))
    assert "completed" in text_of(slow).lower(), slow
    assert text_of(quick) == "Echo: meanwhile", quick


def check_files(troupe, folder):
    with tempfile.TemporaryDirectory() as made:
        made = str(pathlib.Path(made).resolve())
        lines = program("node", npm_server(folder, "server-filesystem"), made)
        caller = Caller(troupe, lines, "--allow-command", "node")
        caller.call(("write_file", {"path": made + "/a.txt", "content": "words"}))
        assert pathlib.Path(made, "a.txt").read_text() == "words"
        (read,) = caller.call(("read_text_file", {"path": made + "/a.txt"}))
        assert text_of(read) == "words", read
        (outside,) = caller.call(("read_text_file", {"path": "/etc/hostname"}))
        assert "error" in outside["response"], outside
        refused = Caller(troupe, lines).run([])
        assert refused.returncode != 0 and "--allow-command node" in refused.stderr, refused.stderr


def check_time(troupe, folder):
    server = str(folder / "python/bin/mcp-server-time")
    caller = Caller(troupe, program(server), "--allow-command", server)
    (now,) = caller.call(("get_current_time", {"timezone": "Europe/Berlin"}))
    assert "Europe/Berlin" in json.dumps(now["response"]), now
    (wrong,) = caller.call(("get_current_time", {"timezone": "Nowhere/Land"}))
    assert "error" in wrong["response"], wrong


def check_stateless(troupe, folder):
    port = free_port()
    with Listening([folder / "python/bin/python", "-c", STATELESS_SERVER, str(port)],
                   port) as server:
        caller = Caller(troupe, address(server.url))
        (greeting,) = caller.call(("greet", {"name": "Köln"}))
        assert text_of(greeting) == "Hello, Köln!", greeting
        (failed,) = caller.call(("fail", {}))
        assert "error" in failed["response"], failed


def main():
    troupe, folder = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
    for needed in ("node", "npm"):
        if shutil.which(needed) is None:
            skip(f"there is no {needed}")
    install(folder)
    everything = npm_server(folder, "server-everything")
    check_everything(Caller(troupe, program("node", everything, "stdio"), "--allow-command",
                            "node"))
    port = free_port()
    with Listening(["node", everything, "streamableHttp"], port, PORT=str(port)) as server:
        check_everything(Caller(troupe, address(server.url)))
    check_files(troupe, folder)
    check_time(troupe, folder)
    check_stateless(troupe, folder)
    print("all servers were used")


main()
