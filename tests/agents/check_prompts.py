"""Compares the requests to models of `troupe` with those of ADK Python itself.

`check_prompts.py TROUPE ENVIRONMENT`: installs the pinned ADK from PyPI into the virtual
environment ENVIRONMENT unless it is there, and runs itself in it. Ends with 77 if PyPI cannot be
reached.

The same agents get the same messages, and a model that answers by a list. Compared is the structure
of each request: the order of the blocks, markers, headings and names, and the tools. The sentences
differ on purpose (docs/prompts.md).
"""

import asyncio
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "cli" / "adk"))

# Words with an `@` are looked for in the requests. A reply is a text, or a tool with its arguments.
CASES = {
    "instruction and identity": {
        "agents": {"name": "root", "description": "the first", "instruction": "Say @OWN.",
                   "global_instruction": "Always @GLOBAL."},
        "messages": ["@HELLO", "@AGAIN"],
        "replies": ["@ONE", "@TWO"]},
    "static instruction": {
        "agents": {"name": "root", "instruction": "Say @OWN.", "static_instruction": "Be @STATIC."},
        "messages": ["@HELLO", "@AGAIN"],
        "replies": ["@ONE", "@TWO"]},
    "hand-over": {
        "agents": {"name": "root", "instruction": "Say @OWN.", "sub_agents": [
            {"name": "second", "description": "does @SECOND", "instruction": "Say @MINE."},
            {"name": "first", "description": "does @FIRST", "instruction": "Say @YOURS."}]},
        "messages": ["@HELLO"],
        "replies": [("transfer_to_agent", {"agent_name": "second"}), "@DONE"]},
    "words of other agents": {
        "agents": {"name": "root", "sub_agents": [{"name": "a"}, {"name": "b"}]},
        "messages": ["@HELLO"],
        "replies": [("transfer_to_agent", {"agent_name": "a"}),
                    ("transfer_to_agent", {"agent_name": "b"}),
                    ("transfer_to_agent", {"agent_name": "root"}), "@DONE"]},
    "task": {
        "agents": {"name": "root", "instruction": "Say @OWN.", "sub_agents": [
            {"name": "helper", "description": "does @HELP", "mode": "task",
             "instruction": "Say @INNER."},
            {"name": "other", "description": "does @OTHER"}]},
        "messages": ["@HELLO", "@DETAIL"],
        "replies": [("helper", {"request": "@WISH"}), "@QUESTION",
                    ("finish_task", {"result": "@RESULT"}), "@DONE"]},
    "single turn": {
        "agents": {"name": "root", "instruction": "Say @OWN.", "sub_agents": [
            {"name": "helper", "description": "does @HELP", "mode": "single_turn",
             "instruction": "Say @INNER."}]},
        "messages": ["@HELLO"],
        "replies": [("helper", {"request": "@WISH"}), "@ANSWER", "@DONE"]},
}

# -- structure ----

IN_INSTRUCTION = re.compile(
    r'@[A-Z]+\.?\n\n|@[A-Z]+|"\w+"|<<<\w+>>>|Agent name: \w+\n|Agent description:|'
    r"`\w+`|parent agent \w+")
IN_TEXT = re.compile(
    r"<<<\w+>>>|\[\w+\] said:|\[\w+\] called tool `\w+` with parameters:|"
    r"\[\w+\] `\w+` tool returned result:|@[A-Z]+")


def without_repeats(found):
    return [each for index, each in enumerate(found) if index == 0 or found[index - 1] != each]


def structure_of(instruction, contents, tools):
    """`contents` and `tools` are in the wire form of Gemini."""
    shown = []
    for content in contents:
        parts = []
        for part in content.get("parts", []):
            if "text" in part:
                found = without_repeats(IN_TEXT.findall(part["text"]))
                if found:
                    parts.append(found)
            elif "functionCall" in part:
                parts.append("call of " + part["functionCall"]["name"])
            elif "functionResponse" in part:
                parts.append("response of " + part["functionResponse"]["name"])
        shown.append((content.get("role"), parts))
    declared = []
    for tool in tools:
        schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
        properties = schema.get("properties", {})
        declared.append((tool["name"], sorted(properties),
                         properties.get("agent_name", {}).get("enum")))
    return {"instruction": without_repeats(IN_INSTRUCTION.findall(instruction)),
            "contents": shown, "tools": declared}


def declarations(tools):
    return [each for tool in tools or [] for each in tool.get("functionDeclarations", [])]


# -- troupe ----


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        instruction = "".join(
            part["text"] for part in request.get("systemInstruction", {}).get("parts", []))
        self.server.heard.append(structure_of(
            instruction, request["contents"], declarations(request.get("tools"))))
        reply = self.server.replies.pop(0)
        part = {"text": reply} if isinstance(reply, str) else {
            "functionCall": {"name": reply[0], "args": reply[1]}}
        body = json.dumps({"candidates": [{
            "content": {"role": "model", "parts": [part]}, "index": 0,
            "finishReason": "STOP"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def heard_by_troupe(troupe, case):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.heard, server.replies = [], list(case["replies"])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "root.json"
            file.write_text(json.dumps({**case["agents"], "model": "gemini-test"}))
            for message in case["messages"]:
                done = subprocess.run(
                    [troupe, "run", file, "--store", "sqlite:" + folder + "/s.db",
                     "--session", "s", "--input", message],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                    env={**os.environ, "HOME": folder, "GOOGLE_API_KEY": "none",
                         "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}"})
                if done.returncode != 0:
                    sys.exit("troupe run: " + done.stdout)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    return server.heard


# -- ADK ----


async def heard_by_adk(case):
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    heard, replies = [], list(case["replies"])

    class Recorder(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            config = llm_request.config.model_dump(by_alias=True, exclude_none=True, mode="json",
                                                   include={"system_instruction", "tools"})
            heard.append(structure_of(
                config.get("systemInstruction", ""),
                [each.model_dump(by_alias=True, exclude_none=True, mode="json")
                 for each in llm_request.contents],
                declarations(config.get("tools"))))
            reply = replies.pop(0)
            part = types.Part(text=reply) if isinstance(reply, str) else types.Part(
                function_call=types.FunctionCall(name=reply[0], args=reply[1]))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    model = Recorder(model="recorder")

    def agent(fields):
        below = [agent(each) for each in fields.get("sub_agents", [])]
        return LlmAgent(**{**fields, "sub_agents": below, "model": model})

    runner = InMemoryRunner(agent=agent(case["agents"]), app_name="desk")
    session = await runner.session_service.create_session(app_name="desk", user_id="ann")
    for message in case["messages"]:
        content = types.Content(role="user", parts=[types.Part(text=message)])
        async for _ in runner.run_async(user_id="ann", session_id=session.id, new_message=content):
            pass
    return heard


def compare(troupe):
    import logging
    import warnings
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    failed = False
    for name, case in CASES.items():
        wanted = asyncio.run(heard_by_adk(case))
        found = heard_by_troupe(troupe, case)
        if len(found) != len(wanted):
            failed = True
            print(f"{name}: {len(found)} requests; ADK makes {len(wanted)}")
        for number, (ours, theirs) in enumerate(zip(found, wanted), 1):
            # Agents that are called hand over to no agent in troupe.
            if not any(each.startswith("Agent name") for each in theirs["instruction"]):
                theirs["tools"] = [
                    each for each in theirs["tools"] if each[0] != "transfer_to_agent"]
            for part in theirs:
                if ours[part] != theirs[part]:
                    failed = True
                    print(f"{name}, request {number}, {part}:\n  troupe {ours[part]}\n"
                          f"  ADK    {theirs[part]}")
    if failed:
        sys.exit(1)
    print(f"{len(CASES)} conversations have requests of the same structure")


def main():
    troupe, environment = sys.argv[1], pathlib.Path(sys.argv[2])
    if "--inside" in sys.argv:
        return compare(troupe)
    from check_with_adk import install
    python = install(environment)
    sys.exit(subprocess.run([python, __file__, troupe, environment, "--inside"]).returncode)


if __name__ == "__main__":
    main()
