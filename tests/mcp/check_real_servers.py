"""Lets agents of `troupe run` call the tools of MCP servers that others have written, and clients
that others have written call the agent of `troupe mcp`.

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

# Calls the agent of `troupe mcp` with the SDK for Python, in the mode of its last argument.
PYTHON_CLIENT = """
import asyncio
import sys

from mcp import Client, MCPError, StdioServerParameters

EXPECTED = {"auto": "2026-07-28", "legacy": "2025-11-25"}


async def main(troupe, agent, mode):
    told = []

    async def hear(progress, total, message):
        told.append((progress, message))

    command = StdioServerParameters(command=troupe, args=["mcp", agent])
    async with Client(command, mode=mode) as client:
        assert client.protocol_version == EXPECTED[mode], client.protocol_version
        (tool,) = (await client.list_tools()).tools
        assert (tool.name, tool.description) == ("guide", "Knows cities."), tool
        assert tool.output_schema["type"] == "object", tool
        done = await client.call_tool("guide", {"request": "Where?"}, progress_callback=hear)
        assert not done.is_error, done
        assert done.structured_content == {"city": "Köln"}, done
        assert done.content[0].text == '{"city": "Köln"}', done
        assert told == [(1, "guide answers")], told
        both = await asyncio.gather(*(client.call_tool("guide", {"request": each, "session": each})
                                      for each in ("a", "b")))
        assert all(each.structured_content["city"] == "Köln" for each in both), both
        wrong = await client.call_tool("guide", {"town": 7})
        assert wrong.is_error and "request" in wrong.content[0].text, wrong
        try:
            await client.call_tool("nope", {})
            raise AssertionError("an unknown tool was called")
        except MCPError as failure:
            assert "unknown tool" in str(failure), failure


asyncio.run(main(*sys.argv[1:]))
"""

# The same with the SDK for TypeScript, which also cancels a call.
NODE_CLIENT = """
import assert from "node:assert";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [troupe, agent, slow] = process.argv.slice(2);
const connect = async (file) => {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StdioClientTransport({ command: troupe, args: ["mcp", file] }));
  return client;
};

const client = await connect(agent);
assert.equal(client.getServerVersion().name, "guide");
await client.ping();
const { tools } = await client.listTools();
assert.equal(tools[0].name, "guide");
const told = [];
const done = await client.callTool({ name: "guide", arguments: { request: "Where?" } }, undefined,
  { onprogress: (progress) => told.push(progress) });
assert.deepEqual(done.structuredContent, { city: "Köln" });
assert.deepEqual(told, [{ progress: 1, message: "guide answers" }]);
await client.close();

const waiting = await connect(slow);
const stop = new AbortController();
const called = waiting.callTool({ name: "guide", arguments: { request: "Where?" } }, undefined,
  { signal: stop.signal });
stop.abort("enough");
await assert.rejects(called, /enough/);
await waiting.ping();
await waiting.close();
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


def check_clients(troupe, folder):
    """Clients of others call the agent of `troupe mcp`."""
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        agent = ("name: guide\ndescription: Knows cities.\nmodel: scripted:{}.json\n"
                 "output_schema: {{type: object, properties: {{city: {{type: string}}}}}}\n")
        for name, reply in (("quick", '{"city": "Köln"}'),
                            ("slow", {"text": "{}", "latency_ms": 3600000})):
            (made / f"{name}.yaml").write_text(agent.format(name))
            (made / f"{name}.json").write_text(json.dumps({"guide": [reply]}))
        for mode in ("auto", "legacy"):
            run_client([folder / "python/bin/python", "-c", PYTHON_CLIENT, troupe,
                        made / "quick.yaml", mode])
        # Modules are found from the folder of the file.
        client = folder / "client.mjs"
        client.write_text(NODE_CLIENT)
        run_client(["node", client, troupe, made / "quick.yaml", made / "slow.yaml"])


def run_client(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


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
    check_clients(troupe, folder)
    print("all servers and clients were used")


main()
