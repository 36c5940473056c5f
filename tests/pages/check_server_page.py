#!/usr/bin/env python3
"""Drives the page of `troupe serve` in headless Chromium.

    check_server_page.py [--screenshots DIR] PROGRAM CHROMIUM

Each check is a function with a name that begins with `check_`. Findings come one a line, and the
exit code is 1 if there is any. A condition is awaited inside the page; none takes a fixed time.
"""

import argparse
import base64
import contextlib
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from check_pages import SETTLE, Browser, complaints, evaluate, resize

# Finds a page that hangs. A condition holds within a second, but not on a machine with many other
# tasks.
SECONDS = 60
SECONDS_PER_CHECK = 1200
EVENTS = 100_000
TOKEN = "ann-0123456789abcdef"
MARKUP = "<b>bold</b><img src=x onerror=alert(1)><script>alert(2)</script>&amp;"

DESK = """
name: desk
model: scripted:script.json
output_key: answer
tools:
- name: AgentTool
  require_confirmation: true
  args: {agent: {config_path: facts.yaml}}
"""
FACTS = """
name: facts
description: Finds facts.
model: scripted:script.json
output_key: user:facts
"""
DESK_SCRIPT = {
    "desk": [{"text": "The invoice says **240 euros**."},
             {"function_calls": [{"name": "facts", "args": {"request": "the tariff"}}]},
             {"text": "The order was 160 euros."}],
    "facts": [{"text": "Three euros a month."}]}
MARKS_SCRIPT = {"*": [{"text": MARKUP}]}
SLOW_SCRIPT = {"*": [{"text": "too late", "latency_ms": 600_000}]}
WRITER = """
name: writer
model: {{name: "openai:fake", base_url: "http://127.0.0.1:{port}/v1", stream: true}}
"""

SUPPORT = """
name: support
agent_class: Workflow
edges:
- - START
  - {{name: sorter, model: scripted:script.json}}
  - bill:
      name: bills
      model: {{name: "openai:fake", base_url: "http://127.0.0.1:{port}/v1", stream: true}}
    fault: {{name: faults, model: scripted:script.json}}
- [bills, {{name: closer, model: scripted:script.json}}]
"""
SUPPORT_SCRIPT = {"sorter": [{"text": "bill"}], "closer": [{"text": "closed"}]}

# Returns true as soon as the condition holds, and false if it does not within the time.
AWAIT = """
new Promise(done => {
  const end = performance.now() + %d;
  const look = () => {
    if (Boolean(%s))
      done(true);
    else if (performance.now() > end)
      done(false);
    else
      setTimeout(look, 20);
  };
  look();
})
"""

# Holds the next answer to the question for runs under way.
HOLD_RUNS = """
(() => {
  const fetched = window.fetch;
  window.fetch = async (path, ...rest) => {
    const answer = await fetched(path, ...rest);
    if (String(path).endsWith("/runs")) {
      window.fetch = fetched;
      await new Promise(done => window.release = done);
    }
    return answer;
  };
})()
"""

# Returns the parts of the page that stick out of the window. A graph scrolls inside of its place.
OVERFLOW = """
(() => {
  const width = document.documentElement.clientWidth;
  const height = document.documentElement.clientHeight;
  const found = [];
  if (document.documentElement.scrollWidth > width)
    found.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  if (document.documentElement.scrollHeight > height)
    found.push(`the page is ${document.documentElement.scrollHeight} px high in ${height}`);
  for (const node of document.body.querySelectorAll("*:not(svg *, .graph svg)")) {
    const box = node.getBoundingClientRect();
    if (node.checkVisibility() && box.width > 0 && (box.right > width + 1 || box.left < -1))
      found.push(`sticks out, ${Math.round(box.left)} to ${Math.round(box.right)}: `
        + `${node.tagName}.${node.className} '${node.textContent.slice(0, 40)}'`);
  }
  for (const node of document.body.querySelectorAll(".talk, .scroller, #state, .sessions"))
    if (node.checkVisibility() && node.scrollWidth > node.clientWidth + 1)
      found.push(`scrolls sideways: ${node.className || node.id}`);
  for (const node of document.body.querySelectorAll("button"))
    if (node.checkVisibility() && !(node.textContent || node.getAttribute("aria-label")).trim())
      found.push("a button without a name");
  return found.slice(0, 8);
})()
"""


class Failed(Exception):
    """A condition that did not hold."""


class Model(http.server.BaseHTTPRequestHandler):
    """A model that says one word, and the second one when the test allows it."""

    goes_on = threading.Event()

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.say({"content": "Words "})
        self.goes_on.wait(SECONDS)
        # The process that has asked may be killed meanwhile.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.say({"content": "come."})
            self.say({}, "stop")
            self.wfile.write(b"data: [DONE]\n\n")

    def say(self, delta, reason=None):
        piece = {"id": "1", "object": "chat.completion.chunk", "model": "fake",
                 "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Server:
    """`troupe serve` on a folder."""

    def __init__(self, program, folder, *options):
        self.process = subprocess.Popen(
            [program, "serve", folder / "agents", "--store", f"sqlite:{folder / 'page.db'}",
             "--port", "0", "--durability", "none", *options],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if " on " not in line:
            raise Failed(f"the server does not start: {line}")
        self.address = line.split(" on ")[1].strip()

    def close(self):
        self.process.terminate()
        self.process.wait(SECONDS)

    def kill(self):
        self.process.kill()
        self.process.wait(SECONDS)

    def start_run(self, app, user):
        """Starts a run on a new session, and returns its stream."""
        self.ask("POST", f"/apps/{app}/users/{user}/sessions", {"sessionId": "s1"})
        sent = urllib.request.Request(self.address + "/run_sse", method="POST", data=json.dumps({
            "appName": app, "userId": user, "sessionId": "s1", "streaming": True,
            "newMessage": {"role": "user", "parts": [{"text": "Go."}]}}).encode())
        return urllib.request.urlopen(sent, timeout=SECONDS)

    def ask(self, method, path, body=None):
        sent = urllib.request.Request(self.address + path, method=method,
                                      data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(sent, timeout=SECONDS) as answer:
            return json.load(answer)


class Tab:
    """One tab of the browser, with the page."""

    def __init__(self, browser, url, width=1600, scheme="light"):
        self.browser = browser
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target,
                                    flatten=True)["sessionId"]
        browser.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.send(f"{domain}.enable", self.session)
        resize(browser, self.session, width)
        browser.send("Emulation.setEmulatedMedia", self.session,
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.send("Page.navigate", self.session, url=url)
        browser.await_event("Page.loadEventFired", self.session)

    def js(self, script):
        return evaluate(self.browser, self.session, script)

    def until(self, condition, seconds=SECONDS):
        if not self.js(AWAIT % (seconds * 1000, condition)):
            raise Failed(f"does not come: {condition}\n{self.js('document.body.innerText')}")

    def until_text(self, text):
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def until_no_text(self, text):
        self.until(f"!document.body.innerText.includes({json.dumps(text)})")

    def reload(self):
        self.browser.events = [each for each in self.browser.events
                               if each["method"] != "Page.loadEventFired"]
        self.browser.send("Page.reload", self.session)
        self.browser.await_event("Page.loadEventFired", self.session)

    def press(self, name, place="document"):
        found = (f"[...{place}.querySelectorAll('button')].find(each => each.checkVisibility() "
                 f"&& !each.disabled && !each.closest('[aria-busy]') "
                 f"&& (each.textContent.trim().startsWith({json.dumps(name)}) "
                 f"|| each.ariaLabel === {json.dumps(name)}))")
        self.until(found)
        self.js(f"({found}).click()")

    def say(self, text):
        self.until("!document.querySelector('.say .go').disabled "
                   "&& document.querySelector('.say .go').checkVisibility()")
        self.js("document.querySelector('.say textarea').focus()")
        self.browser.send("Input.insertText", self.session, text=text)
        self.key("Enter")

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.browser.send("Input.dispatchKeyEvent", self.session, type=kind, key=name,
                              code=name, windowsVirtualKeyCode=KEYS[name],
                              **({"text": "\r"} if name == "Enter" and kind == "keyDown" else {}))

    def screenshot(self, path):
        self.js(SETTLE)
        shot = self.browser.send("Page.captureScreenshot", self.session, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self.target)


KEYS = {"Enter": 13, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        "PageUp": 33, "Escape": 27}


def graph_node(name, state):
    """Returns the expression of a node in a graph with this state."""
    return f"document.querySelector('.graph [data-node={name}].{state}')"


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Checks:
    """The checks, in their order."""

    def __init__(self, program, chromium, folder, shots):
        self.program = program
        self.browser = Browser(chromium)
        self.folder = folder
        self.shots = shots
        self.found = []
        self.session = None

    @contextlib.contextmanager
    def tab(self, name, place, width=1600, scheme="light", allowed=(), server=None):
        base = (server or self.server).address
        tab = Tab(self.browser, f"{base}/#{urllib.parse.urlencode(place)}", width, scheme)
        try:
            yield tab
        except (Failed, RuntimeError) as failure:
            self.found.append(f"{name}: {failure}")
        finally:
            if self.shots:
                tab.screenshot(self.shots / f"{name}.png")
            told = [each for each in dict.fromkeys(complaints(self.browser.events, base))
                    if not each.startswith(f"asks for {base}/"[:120])
                    and not any(one in each for one in allowed)]
            self.found += [f"{name}: {each}" for each in told]
            tab.close()

    def run(self):
        with contextlib.closing(Server(self.program, self.folder)) as self.server:
            for check in (self.check_conversation, self.check_runs, self.check_workflow,
                          self.check_unfinished, self.check_branches, self.check_figures, self.check_words,
                          self.check_cancel, self.check_markup, self.check_live,
                          self.check_many_events, self.check_widths):
                self.browser.deadline = time.monotonic() + SECONDS_PER_CHECK
                check()
        tokens = self.folder / "tokens"
        tokens.write_text(f"{TOKEN} ann user\n", encoding="utf-8")
        with contextlib.closing(Server(self.program, self.folder, "--token-file",
                                       tokens)) as self.server:
            self.browser.deadline = time.monotonic() + SECONDS_PER_CHECK
            self.check_login()
        return self.found

    # -- checks ----

    def check_conversation(self):
        """A message starts a session; a question is allowed; the session goes back and forks."""
        with self.tab("conversation", {"app": "desk", "user": "ann"}) as tab:
            tab.say("It is too high.")
            tab.until_text("The invoice says 240 euros.")
            tab.say("Yes.")
            tab.press("Allow")
            tab.until_text("The order was 160 euros.")
            tab.until("document.querySelector('.verdict.allowed')?.textContent === 'allowed'")
            tab.until("document.querySelector('[data-key=\"user:facts\"]')")
            self.session = tab.js("new URLSearchParams(location.hash.slice(1)).get('session')")
            newest = self.revision()
            tab.js("document.querySelector('[data-key=\"answer\"]').click()")
            tab.until("document.querySelectorAll('.past-values li').length === 2")
            # The slider, by keyboard.
            tab.js("document.querySelector('input[type=range]').focus()")
            tab.key("Home")
            tab.until_text(f"Revision 0 of {newest}")
            tab.key("ArrowRight")
            tab.key("ArrowRight")
            tab.until("document.querySelector('[data-key=\"answer\"] .data')?.textContent"
                      ".includes('240')")
            expect(tab.js("document.querySelectorAll('article').length") == 2,
                   "a past revision shows later events")
            tab.press("Fork from here")
            tab.until_text("Forked from It is too high.")
            tab.until(f"!location.hash.includes({json.dumps(self.session)})")
            tab.until("document.querySelector('.session.on.depth-1')")
            tab.press("It is too high.", "document.querySelector('.talk')")
            tab.until(f"location.hash.includes({json.dumps(self.session)})")
            tab.until("document.querySelectorAll('article').length > 4")
            tab.press("2", "document.querySelector('.talk')")
            tab.press("Rewind to here")
            tab.until_text("events were taken back")
            tab.until("document.querySelectorAll('article.taken-back').length >= 4")
            tab.until("document.querySelector('[data-key=\"answer\"] .data').textContent"
                      ".includes('240')")
            expect(self.revision() == newest + 1, "a rewind is not one event")

    def revision(self):
        path = f"/apps/desk/users/ann/sessions/{self.session}/events?limit=0"
        return self.server.ask("GET", path)["revision"]

    def check_runs(self):
        """Each run is a timeline, with the lanes of its agents and a step for each call."""
        place = {"app": "desk", "user": "ann", "session": self.session}
        with self.tab("runs", place) as tab:
            tab.press("Runs", "document.querySelector('.tabs')")
            tab.until("document.querySelectorAll('.run').length === 3")
            newest = "document.querySelector('.run[open]')"
            tab.until(f"{newest}.querySelector('.step.tool')")
            told = tab.js(f"{newest}.querySelector('summary').innerText")
            expect("1 tool call" in told, f"a run does not tell its calls: {told}")
            asking = tab.js("document.querySelectorAll('.run')[1].querySelector('summary').innerText")
            expect("1 model call" in asking, f"a question counts as a call: {asking}")
            kinds = tab.js(f"[...{newest}.querySelectorAll('.legend li')].map(each => "
                           "each.textContent).join()")
            expect(kinds.startswith("model,tool"), f"the kinds of steps are {kinds}")
            # A step leads to its event, by keyboard.
            tab.js(f"{newest}.querySelector('svg[tabindex]').focus()")
            tab.key("Home")
            tab.until("!document.querySelector('.tip').hidden")
            tab.key("Enter")
            tab.until("document.querySelector('.line.on')?.checkVisibility()")

    def check_workflow(self):
        """The graph of a workflow changes while it runs; names in it are text."""
        with self.tab("workflow", {"app": "support", "user": "ann"}) as tab:
            Model.goes_on.clear()
            tab.say("It is too high.")
            tab.until_text("Words")
            tab.press("Runs", "document.querySelector('.tabs')")
            for name, wanted in (("sorter", "done"), ("bills", "running"), ("faults", "skipped"),
                                 ("closer", "unreached")):
                tab.until(graph_node(name, wanted))
            tab.until("document.querySelector('.workflow').dataset.state === 'running'")
            expect(tab.js("document.querySelectorAll('.graph .edge.taken').length") == 2,
                   "the edges that were followed are others")
            Model.goes_on.set()
            tab.until(graph_node("closer", "done"))
            tab.until("document.querySelector('.workflow').dataset.state === 'done'")
            expect(tab.js("[...document.querySelectorAll('.graph rect')].every((each, index, all) =>"
                          " index === 0 || each.getAttribute('x') !== all[index - 1].getAttribute("
                          "'x') || each.getAttribute('y') !== all[index - 1].getAttribute('y'))"),
                   "nodes of a graph are drawn over each other")
            for width in (1600, 400):
                resize(self.browser, tab.session, width)
                tab.js(SETTLE)
                self.found += [f"workflow at {width}: {each}" for each in tab.js(OVERFLOW)]
        name = "<img src=x onerror=alert(1)>"
        told = [{"run": "r", "begins": {"nodes": []}}, {"run": "r", "attempt": 1}]
        path = "/apps/support/users/marks/sessions"
        self.server.ask("POST", path, {"sessionId": "s1"})
        for number, (place, record) in enumerate(zip(("support@1", f"support@1/{name}@1"), told)):
            self.server.ask("POST", f"{path}/s1/events", {
                "id": f"e{number}", "invocationId": "r", "author": "support",
                "nodeInfo": {"path": place}, "errorCode": "tool_failed", "errorMessage": MARKUP,
                "customMetadata": {"troupe": {"workflow": record}}})
        with self.tab("workflow_marks", {"app": "support", "user": "marks",
                                         "session": "s1"}) as tab:
            tab.press("Runs", "document.querySelector('.tabs')")
            tab.until("document.querySelector('.graph .failed text')?.textContent"
                      ".startsWith('<img src=x')")
            tab.until("document.querySelector('.workflow .bad')?.textContent"
                      ".includes('is not the one')")
            tab.until("[...document.querySelectorAll('.workflow .bad')].some(each => "
                      "each.textContent.includes('alert(2)'))")
            self.expect_no_markup(tab)

    def check_unfinished(self):
        """Runs of a process that was killed are shown, given up, and recovered."""
        row = "document.querySelector('.unfinished li')"
        buttons = ("[...document.querySelectorAll('.unfinished button')].filter(each => "
                   "each.checkVisibility()).length")
        Model.goes_on.clear()
        killed = Server(self.program, self.folder)
        try:
            with self.tab("unfinished", {"app": "slow", "user": "killed"}) as tab:
                killed.start_run("slow", "killed")
                tab.press("Runs", "document.querySelector('.tabs')")
                tab.until_text("1 unfinished run")
                tab.until_text("its process was heard of")
                expect(tab.js(buttons) == 0, "a run of a living process can be given up")
                for line in killed.start_run("support", "killed"):
                    if b"Words" in line:
                        break
                killed.kill()
                # The end of a process on this machine is seen at once.
                tab.until(f"{buttons} === 2")
                for width in (400, 1600):
                    resize(self.browser, tab.session, width)
                    tab.js(SETTLE)
                    self.found += [f"unfinished at {width}: {each}" for each in tab.js(OVERFLOW)]
                tab.press("Give up", row)
                tab.until("document.querySelector('#question[open]')")
                tab.key("Escape")
                tab.until("!document.querySelector('#question[open]')")
                expect(tab.js(buttons) == 2, "a run is given up without consent")
                tab.press("Give up", row)
                tab.press("Give up", "document.querySelector('#question')")
                tab.until_text("The run of slow is given up.")
                tab.until("document.querySelector('.unfinished').hidden")
                expect(not self.server.ask("GET", "/apps/slow/unfinished-runs")["runs"],
                       "a run that was given up is still open")
        finally:
            killed.kill()
        with self.tab("recovered", {"app": "support", "user": "ann"}) as tab:
            # The page opens the newest session, and then shows its conversation.
            tab.until("document.querySelector('#link').textContent === 'live'")
            tab.press("Runs", "document.querySelector('.tabs')")
            tab.until(f"{row}?.querySelector('a')?.textContent === 'killed / s1'")
            tab.js(f"{row}.querySelector('a').click()")
            tab.until("location.hash.includes('user=killed')")
            tab.until(graph_node("bills", "running"))
            tab.until_text("This server does not run this workflow")
            tab.press("Recover", row)
            tab.until_text("The run of support goes on.")
            tab.until_no_text("This server does not run this workflow")
            Model.goes_on.set()
            tab.until(graph_node("closer", "done"))
            tab.until("document.querySelector('.unfinished').hidden")

    def check_branches(self):
        """A fork stands beside its parent: the past once, two futures, the keys that differ."""
        path = "/apps/marks/users/forks/sessions"
        self.server.ask("POST", path, {"sessionId": "s1"})
        for number in (1, 2):
            self.append(path, f"past {number}", {"count": number})
        fork = self.server.ask("POST", f"{path}/s1/fork", {})["id"]
        self.append(path, "left", {"count": 3, "same": 1})
        self.append(path, "right", {"count": 4, "same": 1, "extra": True}, fork)
        with self.tab("branches", {"app": "marks", "user": "forks", "session": "s1"}) as tab:
            tab.until("document.querySelector('#link').textContent === 'live'")
            tab.press("Branches", "document.querySelector('.tabs')")
            # The page has not seen the fork before.
            tab.until_text("2 events in common, then 1 more here and 2 more there")
            tab.until("document.querySelectorAll('.shared-past li').length === 2")
            sides = "[...document.querySelectorAll('.future')].map(each => each.innerText)"
            tab.until(f"{sides}[0].includes('left') && {sides}[1].includes('right')")
            expect(not tab.js(f"{sides}.some(each => each.includes('past'))"),
                   "the shared past is shown in a future")
            differ = ("[...document.querySelectorAll('[data-differs]')].map(each => "
                      "each.innerText.split(/\\s+/).join(' ')).join()")
            tab.until(f"{differ} === 'count 3 4,extra not set true'")
            # Both futures go on.
            self.append(path, "far right", {"count": 5}, fork)
            tab.until(f"{sides}[1].includes('far right')")
            tab.until(f"{differ}.startsWith('count 3 5')")

    def check_figures(self):
        """The figures of runs and store change while they are looked at."""
        path = "/apps/marks/users/figures/sessions"
        self.server.ask("POST", path, {"sessionId": "s1"})
        with self.tab("figures", {"app": "marks", "user": "figures", "session": "s1"}) as tab:
            tab.press("Figures", "document.querySelector('.tabs')")
            figure = ("Number([...document.querySelectorAll('.figures dt')].find(each => "
                      "each.textContent === 'commits').nextSibling.textContent.replace(/,/g, ''))")
            tab.until("document.querySelector('.figures dt')")
            before = tab.js(figure)
            self.append(path, "one", {"count": 1})
            tab.until(f"{figure} > {before}")
            tab.until("document.querySelectorAll('.charts svg .line').length === 4")

    def check_words(self):
        """The words of an answer are shown before it is complete."""
        with self.tab("words", {"app": "writer", "user": "ann"}) as tab:
            Model.goes_on.clear()
            tab.say("Write.")
            tab.until("document.querySelector('.typing')?.textContent === 'Words '")
            Model.goes_on.set()
            tab.until("document.querySelector('.text:last-child')?.textContent")
            tab.until_text("Words come.")
            tab.until("!document.querySelector('.typing')")
            expect(tab.js("document.body.innerText.split('Words').length") == 2,
                   "an answer is shown twice")

    def check_cancel(self):
        """A run is ended, also by a page that has not started it."""
        # A run that is cancelled before its first event is answered with status 503.
        with self.tab("cancel", {"app": "slow", "user": "ann"}, allowed=("503",)) as tab:
            tab.say("Wait.")
            tab.until_text("works")
            # The list of runs comes after the end of the run that it names.
            tab.js(HOLD_RUNS)
            tab.until("window.release")
            tab.press("Cancel")
            tab.until("document.querySelector('.failure')")
            tab.until("document.querySelector('.say .go').checkVisibility()")
            tab.js("window.release()")
            tab.js(SETTLE)
            expect(tab.js("document.querySelector('.say .go').checkVisibility()"),
                   "a run that has ended is shown as under way")
            tab.say("Again.")
            tab.until("document.querySelectorAll('article').length === 2")
            tab.reload()
            tab.until_text("works")
            tab.press("Cancel")
            tab.until_no_text("works")

    def check_markup(self):
        """Markup in names and texts is text."""
        self.server.ask("POST", f"/apps/marks/users/{urllib.parse.quote(MARKUP, safe='')}/sessions",
                        {"sessionId": "<i>s1</i>", "state": {
                            f"user:{MARKUP}": MARKUP, MARKUP: {MARKUP: "\u202egnp"},
                            "__session_metadata__": {"displayName": MARKUP}}})
        # The check itself tries to make markup, and is refused.
        with self.tab("markup", {"app": "marks", "user": MARKUP},
                      allowed=("TrustedHTML",)) as tab:
            tab.until_text("This session has no events.")
            tab.say(MARKUP)
            tab.until(f"[...document.querySelectorAll('.text')].filter(each => "
                      f"each.textContent === {json.dumps(MARKUP)}).length === 2")
            tab.js("document.querySelectorAll('.key').forEach(each => each.click())")
            tab.press("Events")
            tab.until("document.querySelector('.line')")
            tab.js("document.querySelector('.line').click()")
            tab.until("document.querySelector('.details pre')")
            self.expect_no_markup(tab)
            expect("\u202e" not in tab.js("document.body.textContent"),
                   "a character that turns the text around is shown")
            refused = tab.js("""(() => { try { document.body.innerHTML = "<i>x</i>"; return false }
                catch { return true } })()""")
            expect(refused, "the page may make markup from text")

    def expect_no_markup(self, tab):
        found = tab.js("[...document.querySelectorAll('b, i, img, script')]"
                       ".filter(each => /bold|alert|s1/.test(each.outerHTML)"
                       " && !each.closest('.chip')).length")
        expect(found == 0, "a text has become markup")

    def check_live(self):
        """Events and sessions of other clients come by themselves, also after a failure."""
        path = "/apps/marks/users/live/sessions"
        self.server.ask("POST", path, {"sessionId": "s1"})
        with self.tab("live", {"app": "marks", "user": "live", "session": "s1"},
                      allowed=("net::ERR_INTERNET_DISCONNECTED", "net::ERR_NETWORK_CHANGED")) as tab:
            tab.until("document.querySelector('#link').textContent === 'live'")
            self.append(path, "one", {"count": 1})
            tab.until_text("one")
            tab.until("document.querySelector('[data-key=count] .data')?.textContent === '1'")
            self.append(path, "two", {"count": 2})
            tab.until("document.querySelector('[data-key=count] .data')?.textContent === '2'")
            self.server.ask("POST", path, {"sessionId": "s2"})
            tab.until("document.querySelector('[data-session=s2]')")

    def append(self, path, text, state, session="s1"):
        self.server.ask("POST", f"{path}/{session}/events", {
            "author": "user", "content": {"role": "user", "parts": [{"text": text}]},
            "actions": {"stateDelta": state}})

    def check_many_events(self):
        """A session of many events is as quick as one of ten."""
        with self.tab("many", {"app": "marks", "user": "many", "session": "long"}) as tab:
            tab.until_text(f"message {EVENTS}")
            tab.press("Events")
            tab.until("document.querySelectorAll('.line .summary').length > 10", 10)
            tab.js("document.querySelector('#events .scroller').focus()")
            tab.key("Home")
            tab.until("document.querySelector('#event-1.on .summary')?.textContent"
                      ".includes('message 1')", 10)
            tab.js("document.querySelector('#events .scroller').scrollTop = 32 * 50000")
            tab.until("document.querySelector('#event-50010 .summary')?.textContent"
                      ".includes('message 50010')", 10)
            expect(tab.js("document.querySelectorAll('*').length") < 3000,
                   "the page has too many elements")
            slowest = tab.js("""new Promise(done => {
                const list = document.querySelector('#events .scroller');
                let left = 60, before = performance.now(), slowest = 0;
                const next = now => {
                  slowest = Math.max(slowest, now - before);
                  before = now;
                  list.scrollTop += 700;
                  if (left-- > 0) requestAnimationFrame(next); else done(slowest);
                };
                requestAnimationFrame(now => { before = now; next(now); });
              })""")
            # A frame takes a few milliseconds; the machine may have other work.
            expect(slowest < 1000, f"scrolling stops for {slowest:.0f} ms")
            tab.press("Conversation")
            tab.js("document.querySelector('input[type=range]').focus()")
            tab.key("Home")
            tab.until_text("Revision 0 of")
            tab.key("Escape")
            tab.until_text(f"message {EVENTS}")

    def check_widths(self):
        """Nothing sticks out, in each view, at each width, light and dark."""
        place = {"app": "desk", "user": "ann", "session": self.session}
        for width, scheme in ((400, "light"), (1600, "dark"), (400, "dark"), (1600, "light"),
                              (320, "light"), (901, "light")):
            with self.tab(f"width_{width}_{scheme}", place, width, scheme) as tab:
                for view in ("sessions", "events", "runs", "branches", "state",
                             "figures", "conversation"):
                    tab.until("document.querySelectorAll('article').length > 4")
                    if not tab.js(f"document.querySelector('#tab-{view}').checkVisibility()"):
                        continue
                    tab.js(f"document.querySelector('#tab-{view}').click()")
                    tab.until(f"document.querySelector('#{view}').checkVisibility()")
                    tab.js(SETTLE)
                    if self.shots:
                        tab.screenshot(self.shots / f"width_{width}_{scheme}_{view}.png")
                    self.found += [f"{view} at {width}, {scheme}: {each}"
                                   for each in tab.js(OVERFLOW)]
                backdrop = tab.js("getComputedStyle(document.body).backgroundColor")
                expect((int(backdrop[4:].split(",")[0]) < 128) == (scheme == "dark"),
                       f"the ground is {backdrop} in the {scheme} scheme")

    def check_login(self):
        """The page asks for a token, again after a wrong one, and then shows the user's data."""
        with self.tab("login", {}, allowed=("401",)) as tab:
            for token in ("wrong", TOKEN):
                tab.until("document.querySelector('dialog[open] input')")
                tab.js("document.activeElement.id === 'token'")
                self.browser.send("Input.insertText", tab.session, text=token)
                tab.key("Enter")
                if token == "wrong":
                    tab.until_text("This token is not valid.")
            tab.until("!document.querySelector('dialog[open]')")
            tab.until("document.querySelector('[aria-label=User]').value === 'ann'")
            tab.until_text("It is too high.")
            expect(TOKEN not in tab.js("document.documentElement.outerHTML + location.href"),
                   "the page shows the token")
            tab.reload()
            tab.until("document.querySelector('.session')")


def write_agents(folder, model_port):
    agents = folder / "agents"
    for name, files in {
            "desk": {"root_agent.yaml": DESK, "facts.yaml": FACTS, "script.json": DESK_SCRIPT},
            "marks": {"root_agent.yaml": "name: marks\nmodel: scripted:script.json\n",
                      "script.json": MARKS_SCRIPT},
            "slow": {"root_agent.yaml": "name: slow\nmodel: scripted:script.json\n",
                     "script.json": SLOW_SCRIPT},
            "support": {"root_agent.yaml": SUPPORT.format(port=model_port),
                        "script.json": SUPPORT_SCRIPT},
            "writer": {"root_agent.yaml": WRITER.format(port=model_port)}}.items():
        (agents / name).mkdir(parents=True)
        for file, text in files.items():
            told = text if isinstance(text, str) else json.dumps(text)
            (agents / name / file).write_text(told, encoding="utf-8")


def import_long_session(program, folder):
    events = [{"id": f"e{number}", "author": "user" if number % 2 else "marks",
               "invocationId": f"i{number // 2}", "timestamp": 1700000000 + number,
               "content": {"parts": [{"text": f"message {number}"}]},
               "actions": {"stateDelta": {"count": number}}} for number in range(1, EVENTS + 1)]
    session = {"id": "long", "appName": "marks", "userId": "many", "state": {"count": EVENTS},
               "events": events}
    subprocess.run([program, "sessions", "import", "-", "--store",
                    f"sqlite:{folder / 'page.db'}", "--durability", "none"],
                   input=json.dumps(session), text=True, check=True, stdout=subprocess.DEVNULL)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=pathlib.Path, metavar="DIR")
    parser.add_argument("program")
    parser.add_argument("chromium")
    chosen = parser.parse_args(arguments)
    if chosen.screenshots:
        chosen.screenshots.mkdir(parents=True, exist_ok=True)
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="check_server_page_") as made:
        folder = pathlib.Path(made)
        write_agents(folder, model.server_port)
        import_long_session(chosen.program, folder)
        checks = Checks(chosen.program, chosen.chromium, folder, chosen.screenshots)
        with contextlib.closing(checks.browser):
            lines = checks.run()
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
