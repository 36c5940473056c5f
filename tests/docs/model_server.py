"""A server on loopback that answers like a model, in the formats of OpenAI, Gemini and Anthropic.

It has no memory: the answer depends on the conversation in the request alone, as that of a real
model does. It calls the tools of the tutorial's support desk, and otherwise repeats what the
instruction says about the customer.
"""

import http.server
import json
import re
import threading


def call_for(words):
    """Returns the tool and the arguments that the words of a customer ask for, or None."""
    order = re.search(r"order (\d+)", words)
    if order and re.search(r"broken|money", words):
        return "refund", {"order": int(order[1]), "euros": 80}
    if order:
        return "order_status", {"order": int(order[1])}
    if re.search(r"\bI (am|have|live|like)\b", words):
        return "remember", {"text": words}
    return None


def answer_to(instruction, words, tool_result):
    """Returns a text, or the tool to call with its arguments. `tool_result` is text or an object
    with the field `result`, or None."""
    if tool_result is not None:
        if isinstance(tool_result, str) and tool_result.startswith("{"):
            tool_result = json.loads(tool_result)
        if isinstance(tool_result, dict):
            tool_result = tool_result.get("result", tool_result)
        return f"I looked: {tool_result}."
    call = call_for(words)
    if call is not None:
        return call
    known = instruction.rsplit("Known about this customer:", 1)
    if len(known) != 2:
        return f"You said: {words}"
    # The part of the instruction that names the agent follows behind an empty line.
    return "I know this about you:" + known[1].split("\n\n")[0]


def openai(request):
    messages = request["messages"]
    instruction = "".join(m["content"] for m in messages if m["role"] == "system")
    words = [m["content"] for m in messages if m["role"] == "user"][-1]
    result = messages[-1]["content"] if messages[-1]["role"] == "tool" else None
    made = answer_to(instruction, words, result)
    message = {"role": "assistant", "content": made}
    if isinstance(made, tuple):
        message = {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": made[0], "arguments": json.dumps(made[1])}}]}
    return {"id": "answer", "object": "chat.completion", "model": "local", "choices": [
        {"index": 0, "message": message, "finish_reason": "stop"}]}


def gemini(request):
    parts = [part for turn in request["contents"] if turn["role"] == "user"
             for part in turn["parts"]]
    instruction = "".join(part["text"] for part in request["systemInstruction"]["parts"])
    words = [part["text"] for part in parts if "text" in part][-1]
    last = parts[-1].get("functionResponse")
    made = answer_to(instruction, words, last["response"] if last else None)
    part = {"text": made}
    if isinstance(made, tuple):
        part = {"functionCall": {"name": made[0], "args": made[1]}}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0,
                            "finishReason": "STOP"}]}


def anthropic(request):
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part
             for turn in request["messages"] if turn["role"] == "user"
             for part in ([turn["content"]] if isinstance(turn["content"], str)
                          else turn["content"])]
    system = request.get("system", "")
    if not isinstance(system, str):
        system = "".join(part["text"] for part in system)
    words = [part["text"] for part in parts if part["type"] == "text"][-1]
    last = parts[-1] if parts[-1]["type"] == "tool_result" else None
    made = answer_to(system, words, last["content"] if last else None)
    block, reason = {"type": "text", "text": made}, "end_turn"
    if isinstance(made, tuple):
        block = {"type": "tool_use", "id": "toolu_1", "name": made[0], "input": made[1]}
        reason = "tool_use"
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "local",
            "content": [block], "stop_reason": reason,
            "usage": {"input_tokens": 1, "output_tokens": 1}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        forms = (("/chat/completions", openai), (":generateContent", gemini),
                 ("/messages", anthropic))
        form = next((form for end, form in forms if self.path.endswith(end)), None)
        if form is None:
            self.send_error(404, f"no form of answer for {self.path}")
            return
        self.server.forms.append(form.__name__)
        body = json.dumps(form(request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class ModelServer:
    """Serves while the `with` block runs. `forms` lists the format of each request."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.forms = []
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def port(self):
        return self.server.server_address[1]

    @property
    def forms(self):
        return self.server.forms
