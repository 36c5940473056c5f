#!/usr/bin/env python3
"""Drives the page of ADK, unchanged, on `troupe serve --ui` in headless Chromium.

    check_adk_page.py [--screenshots DIR] PROGRAM CHROMIUM ENVIRONMENT

The page comes with the pinned ADK of PyPI, which is installed into the virtual environment
ENVIRONMENT unless it is there. Ends with 77 if PyPI cannot be reached. Findings come one a line,
and the exit code is 1 if there is any.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli" / "adk"))

from check_pages import Browser
from check_server_page import Failed, SECONDS_PER_CHECK, Server, Tab, expect, write_agents
from check_with_adk import install

FIELD = "[...document.querySelectorAll('textarea')].find(each => each.checkVisibility())"


class AdkTab(Tab):
    """A tab with the page of ADK."""

    def say(self, text):
        self.until(f"({FIELD}) && !({FIELD}).disabled")
        self.js(f"({FIELD}).focus()")
        self.browser.send("Input.insertText", self.session, text=text)
        self.key("Enter")

    def choose(self, name):
        """Presses a tab, a toggle or a button with this text."""
        found = ("[...document.querySelectorAll('button, [role=tab], mat-button-toggle button')]"
                 f".find(each => each.checkVisibility() && each.innerText.trim() === "
                 f"{json.dumps(name)})")
        self.until(found)
        self.js(f"({found}).click()")


class Checks:
    """The steps of one visit, in their order."""

    def __init__(self, tab, server):
        self.tab = tab
        self.server = server

    def run(self):
        for check in (self.check_chat, self.check_confirmation, self.check_state,
                      self.check_events, self.check_traces, self.check_artifacts,
                      self.check_graph):
            check()

    def session(self):
        listed = self.server.ask("GET", "/apps/desk/users/user/sessions")
        return self.server.ask("GET", f"/apps/desk/users/user/sessions/{listed[-1]['id']}")

    def check_chat(self):
        self.tab.say("It is too high.")
        self.tab.until_text("240 euros")

    def check_confirmation(self):
        """A tool is shown, and works after it was allowed."""
        self.tab.say("Yes.")
        self.tab.until("document.querySelector('input[id^=confirmed-checkbox]')")
        self.tab.until_text("facts")
        self.tab.js("document.querySelector('input[id^=confirmed-checkbox]').click()")
        self.tab.choose("Submit")
        self.tab.until_text("The order was 160 euros.")
        answers = [part["functionResponse"]["response"] for event in self.session()["events"]
                   for part in event.get("content", {}).get("parts", [])
                   if part.get("functionResponse", {}).get("name") == "adk_request_confirmation"]
        expect(answers and answers[-1]["confirmed"], f"the page has answered {answers}")

    def check_state(self):
        self.tab.choose("State")
        self.tab.until_text("user:facts")
        self.tab.until_text("Three euros a month.")

    def check_events(self):
        self.tab.choose("Events")
        self.tab.until_text("adk_request_confirmation")

    def check_traces(self):
        """The spans of the runs, their agents and their calls."""
        self.tab.choose("Traces")
        self.tab.until_text("desk")
        self.tab.until_text("call_llm")
        self.tab.until_text("facts")

    def check_artifacts(self):
        """A file that a client has saved is in the list."""
        session = self.session()
        path = f"/apps/desk/users/user/sessions/{session['id']}"
        self.server.ask("POST", path + "/artifacts",
                        {"filename": "note.txt", "artifact": {"text": "Some words."}})
        self.server.ask("POST", path + "/events", {
            "author": "desk", "content": {"role": "model", "parts": [{"text": "A note."}]},
            "actions": {"artifactDelta": {"note.txt": 0}}})
        self.tab.reload()
        self.tab.choose("Events")
        self.tab.until_text("A note.")
        self.tab.choose("Artifacts")
        self.tab.until_text("note.txt")

    def check_graph(self):
        """The agents of the app are drawn, in a dialog that stays open."""
        self.tab.choose("account_tree")
        shown = "document.querySelectorAll('.svg-container svg g.node title, " \
                ".svg-container svg g.edge title')"
        self.tab.until(f"{shown}.length")
        drawn = self.tab.js(f"[...{shown}].map(each => each.textContent).join(' ')")
        expect(drawn == "desk facts desk->facts", f"the page draws {drawn}")


def page_of(environment):
    python = install(environment)
    found = list((python.parent.parent / "lib").glob("*/site-packages/google/adk/cli/browser"))
    if len(found) != 1:
        sys.exit(f"{environment} has no page of ADK")
    return found[0]


def visit(chosen, folder, page):
    found = []
    write_agents(folder, model_port=1)
    with contextlib.closing(Server(chosen.program, folder, "--ui", page, "--artifacts",
                                   "memory:")) as server, \
            contextlib.closing(Browser(chosen.chromium)) as browser:
        browser.deadline = time.monotonic() + SECONDS_PER_CHECK
        tab = AdkTab(browser, f"{server.address}/dev-ui/?app=desk")
        try:
            Checks(tab, server).run()
        except (Failed, RuntimeError) as failure:
            found.append(str(failure))
        if chosen.screenshots:
            tab.screenshot(chosen.screenshots / "adk_page.png")
    return found


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=pathlib.Path, metavar="DIR")
    parser.add_argument("program")
    parser.add_argument("chromium")
    parser.add_argument("environment", type=pathlib.Path)
    chosen = parser.parse_args(arguments)
    if chosen.screenshots:
        chosen.screenshots.mkdir(parents=True, exist_ok=True)
    page = page_of(chosen.environment.resolve())
    with tempfile.TemporaryDirectory(prefix="check_adk_page_") as made:
        lines = visit(chosen, pathlib.Path(made), page)
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
