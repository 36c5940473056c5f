#!/usr/bin/env python3
"""Checks HTML reports in headless Chromium at many widths, light and dark.

    check_pages.py [--screenshots DIR] CHROMIUM PAGE...
    check_pages.py --assemble SAMPLE.json OUT.html
    check_pages.py --self-test CHROMIUM

PAGE is an HTML file, or a sample report (.json) that is put into the page first. Findings come one
a line, and the exit code is 1 if there is any: an error in a script or on the console, a request
to anywhere, something that sticks out of the window or out of its chart, text that is cut off,
texts on top of each other, a page without charts and tables.

A page is loaded once in each colour scheme, and the window is resized: from narrow to wide in the
light scheme, from wide to narrow in the dark one. A load costs more than a resize.
"""

import argparse
import base64
import contextlib
import html
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PAGES = HERE.parent.parent / "load" / "pages"
STYLES = ["charts.css", "page.css"]
SCRIPTS = ["charts.js", "timeline.js", "load_report.js", "sweep_report.js", "trace_report.js",
           "fork_tree.js", "run_pair.js", "experiment_report.js", "page.js"]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--remote-debugging-pipe"]
# A small phone, a phone, the widths of page.css at which the layout changes and those beside them,
# a laptop, and a large screen.
WIDTHS = (320, 400, 600, 800, 1000, 1400, 1920)
# The widths of each colour scheme, in their order. Colours do not change the layout, so a scheme
# needs only two of them.
SCHEMES = {"light": WIDTHS, "dark": (1400, 400)}
# Finds a browser that hangs. A page takes a second, but minutes on a machine with many other tasks.
SECONDS_PER_PAGE = 300

# Waits for some frames, so that drawings are complete after a resize.
SETTLE = """
new Promise(done => {
  let left = 4;
  const next = () => left-- > 0 ? requestAnimationFrame(next) : done(true);
  next();
})
"""

# Opens all folded parts; moves over, clicks, zooms and types into the drawings.
EXERCISE = """
(async () => {
  const settled = () => %s;
  for (let round = 0; round < 3; ++round) {
    for (const each of document.querySelectorAll("details:not([open])"))
      each.open = true;
    await settled();
  }
  for (const svg of [...document.querySelectorAll("svg[tabindex]")].slice(0, 12)) {
    const box = svg.getBoundingClientRect();
    const send = (type, x, y) => svg.dispatchEvent(new PointerEvent(type, {
      bubbles: true, pointerType: "touch", clientX: box.left + box.width * x,
      clientY: box.top + box.height * y }));
    for (const [x, y] of [[0, 0], [0.3, 0.5], [0.5, 0.3], [0.6, 0.7], [1, 1]])
      send("pointermove", x, y);
    for (const key of ["Home", "ArrowRight", "ArrowDown", "ArrowUp", "End", "ArrowLeft", "Escape"])
      svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    send("pointerleave", 1, 1);
    svg.blur();
  }
  for (const each of [...document.querySelectorAll("button")].slice(0, 40))
    if (each.isConnected && !each.disabled)
      each.click();
  await settled();
  for (const each of document.querySelectorAll("select")) {
    if (!each.isConnected)
      continue;
    each.selectedIndex = each.options.length - 1;
    each.dispatchEvent(new Event("change", { bubbles: true }));
  }
  await settled();
  document.activeElement?.blur();
  window.scrollTo(0, 0);
  return true;
})()
""" % SETTLE

# Returns the defects of the page in its current state, as text.
MEASURE = r"""
(() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  const name = node => {
    const of = node.getAttribute("class") || node.id;
    const text = (node.textContent || "").trim().slice(0, 40);
    return node.tagName.toLowerCase() + (of ? "." + of.trim().split(/\s+/).join(".") : "")
      + (text ? ` '${text}'` : "");
  };
  const scrolls = node => {
    for (let at = node.parentElement; at && at !== document.body; at = at.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(at).overflowX))
        return true;
    return false;
  };
  // Text that is scrolled out of sight has a place on the page, too.
  const holderOf = node => {
    for (let at = node.parentElement; at; at = at.parentElement)
      if (getComputedStyle(at).overflowX !== "visible")
        return at;
    return null;
  };
  const scrolledApart = (one, other) => holderOf(one) !== holderOf(other);
  if (document.documentElement.scrollWidth > width)
    found.push(`the page is ${document.documentElement.scrollWidth} px wide in ${width}`);
  for (const node of document.body.querySelectorAll("*:not(script, noscript)")) {
    if (!node.checkVisibility() || node.closest("svg") && node.tagName !== "svg")
      continue;
    const box = node.getBoundingClientRect();
    if (box.width > 0 && (box.right > width + 1 || box.left < -1) && !scrolls(node))
      found.push(`sticks out, ${Math.round(box.left)} to ${Math.round(box.right)}: ${name(node)}`);
  }
  // Boxes that hide the rest of their text. Fields of text shorten it with an ellipsis, and the tip
  // beside the pointer with a number of lines.
  const hides = style => [style.overflowX, style.overflowY].some(
    each => ["hidden", "clip"].includes(each));
  for (const node of document.body.querySelectorAll("*:not(script, noscript, svg, svg *, select)")) {
    const style = getComputedStyle(node);
    if (node.checkVisibility() && node.innerText && hides(style) && !node.closest(".tip")
        && (style.overflowX !== "auto" && node.scrollWidth > node.clientWidth + 1
            || ["hidden", "clip"].includes(style.overflowY)
              && node.scrollHeight > node.clientHeight + 1))
      found.push(`is cut off: ${name(node)}`);
  }
  // Columns that are scrolled out of sight are easily missed.
  for (const node of document.querySelectorAll("#page .scroll, #page .address"))
    if (node.scrollWidth > node.clientWidth + 1)
      found.push(`scrolls sideways: ${name(node)}`);
  // Lines of text on top of each other, by their place on the page.
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && lines.length < 4000) {
    const node = walker.currentNode;
    if (!node.data.trim() || node.parentElement.closest("script, noscript, svg, select, .tip")
        || !node.parentElement.checkVisibility())
      continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects())
      if (box.width > 0)
        lines.push({ node, box });
  }
  lines.sort((one, other) => one.box.top - other.box.top);
  lines.forEach(({ node, box }, index) => {
    for (let other = index + 1; other < lines.length
        && lines[other].box.top < box.bottom - 4; ++other) {
      const next = lines[other];
      if (next.node !== node && next.box.bottom > box.top + 4 && box.left < next.box.right - 1
          && box.right > next.box.left + 1 && !scrolledApart(node, next.node))
        found.push(`'${next.node.data.trim().slice(0, 30)}' lies over `
          + `'${node.data.trim().slice(0, 30)}'`);
    }
  });
  for (const wrong of ["[object ", "NaN", "undefined"])
    if (document.body.innerText.includes(wrong))
      found.push(`shows '${wrong}'`);
  for (const svg of document.querySelectorAll("svg")) {
    const outer = svg.getBoundingClientRect();
    if (outer.width === 0)
      continue;
    const texts = [...svg.querySelectorAll("text")].slice(0, 800);
    const boxes = texts.map(text => text.getBoundingClientRect());
    texts.forEach((text, index) => {
      const box = boxes[index];
      if (box.left < outer.left - 1 || box.right > outer.right + 1
          || box.top < outer.top - 3 || box.bottom > outer.bottom + 3)
        found.push(`sticks out of its chart: ${name(text)}`);
      for (let other = Math.max(0, index - 60); other < index; ++other)
        if (box.width > 0 && box.left < boxes[other].right - 1 && box.right > boxes[other].left + 1
            && box.top < boxes[other].bottom - 4 && box.bottom > boxes[other].top + 4)
          found.push(`lies over ${name(texts[other])}: ${name(text)}`);
    });
    if (/NaN|undefined|Infinity/.test(svg.outerHTML.replace(/>[^<]*</g, "><")))
      found.push(`has a coordinate that is no number: ${svg.getAttribute("aria-label")}`);
  }
  for (const node of document.querySelectorAll("#page, #page *")) {
    const own = [...node.childNodes].filter(child => child.nodeType === Node.TEXT_NODE)
      .map(child => child.data);
    const told = [...own, ...[...node.attributes].map(each => each.value)].join(" ");
    const hidden = told.match(/[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069]/u);
    if (hidden)
      found.push(`has the hidden U+${hidden[0].codePointAt(0).toString(16)}: ${name(node)}`);
  }
  for (const svg of document.querySelectorAll("svg"))
    if (getComputedStyle(svg).filter !== "none" && !svg.closest(".taken-back"))
      found.push(`has lost its colours: ${svg.getAttribute("aria-label")}`);
  // The text that a script makes of a value that is not text.
  const said = document.body.innerText.match(/.*(\[object |\bNaN\b).*/);
  if (said)
    found.push(`says '${said[0].slice(0, 60)}'`);
  return found.slice(0, 20);
})()
"""

# Checks the page of an experiment on forks: its tree has each run, the keyboard chooses one, and two
# chosen runs show the keys with different values at their ends.
FORKS = r"""
(async () => {
  const report = JSON.parse(document.getElementById("report")?.textContent ?? "null");
  if (report?.kind !== "experiment" || !report.from || report.runs.length < 2)
    return [];
  const found = [];
  const panelOf = title => [...document.querySelectorAll(".panel")]
    .find(each => each.querySelector("h2")?.textContent === title);
  const svg = panelOf("Branches")?.querySelector("svg");
  if (!svg)
    return ["has no tree of branches"];
  const revision = report.from.revision.toLocaleString("en-US");
  if (!svg.getAttribute("aria-label").includes(`revision ${revision}`))
    found.push("the tree does not name the revision");
  const drawn = svg.querySelectorAll(".dot.run, .cross").length;
  if (drawn !== report.runs.length)
    found.push(`the tree has ${drawn} of ${report.runs.length} runs`);
  const fold = [...panelOf("Branches").querySelectorAll("details")];
  if (fold.length !== (report.from.past.length > 0 ? 1 : 0))
    found.push("the messages before the branches are missing");
  const last = report.runs[report.runs.length - 1];
  for (const key of ["Home", "End", "Enter"])
    svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  // Places of a run in the three lists that choose it: variant, input and repeat.
  const placesOf = run => {
    const near = report.runs.filter(each => each.variant === run.variant);
    const place = (runs, key) => [...new Set(runs.map(each => each[key]))].indexOf(run[key]);
    return [place(report.runs, "variant"), place(near, "input"),
      place(near.filter(each => each.input === run.input), "repeat")];
  };
  const shown = [...panelOf("One run").querySelectorAll("select")].map(each => each.selectedIndex);
  if (String(shown) !== String(placesOf(last)))
    found.push("Enter on the last run of the tree does not show that run");
  svg.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  const pair = panelOf("Two runs side by side");
  const choose = (side, run) => placesOf(run).forEach((place, index) => {
    const select = pair.querySelectorAll("[role=group]")[side].querySelectorAll("select")[index];
    select.selectedIndex = place;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  const first = report.runs[0];
  choose(0, first);
  choose(1, last);
  const answers = [...pair.querySelectorAll("pre.text:not(.error)")].map(each => each.textContent);
  if (last.output && !answers.includes(last.output))
    found.push("the answer of the right run is missing");
  const own = (run, key) => Object.hasOwn(run.changes, key);
  const end = (run, other, key) => JSON.stringify(own(run, key) ? run.changes[key].after
    : other.changes[key].before);
  const apart = Object.keys({ ...first.changes, ...last.changes })
    .filter(key => end(first, last, key) !== end(last, first, key)).length;
  const told = pair.querySelectorAll("[aria-label='Keys with different values'] tbody tr").length;
  if (told !== apart)
    found.push(`shows ${told} keys with different values, but there are ${apart}`);
  return found;
})()
"""

FACTS = """
({ width: window.innerWidth,
   dark: matchMedia("(prefers-color-scheme: dark)").matches,
   light: matchMedia("(prefers-color-scheme: light)").matches,
   drawn: document.querySelectorAll("#page svg, #page table, #page .nothing").length,
   height: document.documentElement.scrollHeight })
"""


class TooSlow(Exception):
    """A page or the browser did not answer in time."""


class Browser:
    """Chromium, spoken to over the pipe of its developer tools."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="check_pages_")
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()

        def wire():
            # Chromium reads from 3 and writes to 4; copies far above keep those two from being
            # overwritten before they are used.
            reads, writes = os.dup2(to_browser, 100), os.dup2(from_browser, 101)
            os.dup2(reads, 3)
            os.dup2(writes, 4)
            os.close(reads)
            os.close(writes)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=wire, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.unread = b""
        self.last = 0
        self.events = []
        self.deadline = time.monotonic() + SECONDS_PER_PAGE

    def close(self):
        with contextlib.suppress(OSError, TooSlow):
            self.deadline = time.monotonic() + 5
            self.send("Browser.close")
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, 9)
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def read_message(self):
        while b"\0" not in self.unread:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise TooSlow(f"not done within {SECONDS_PER_PAGE} s")
            more = os.read(self.answers, 1 << 20)
            if not more:
                raise TooSlow("the browser is gone")
            self.unread += more
        text, self.unread = self.unread.split(b"\0", 1)
        return json.loads(text)

    def send(self, method, session=None, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read_message()
            if answer.get("id") == self.last:
                break
            if "method" in answer:
                self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def await_event(self, method, session):
        while True:
            for event in self.events:
                if event["method"] == method and event.get("sessionId") == session:
                    return
            answer = self.read_message()
            if "method" in answer:
                self.events.append(answer)


def evaluate(browser, session, script):
    answer = browser.send("Runtime.evaluate", session, expression=script, awaitPromise=True,
                          returnByValue=True)
    if "exceptionDetails" in answer:
        raise RuntimeError(told_exception(answer["exceptionDetails"]))
    return answer["result"].get("value")


def told_exception(details):
    thrown = details.get("exception", {})
    return (thrown.get("description") or thrown.get("value") or details["text"]).split("\n")[0]


def complaints(events, page):
    for event in events:
        about = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            yield "script error: " + told_exception(about["exceptionDetails"])
        elif event["method"] == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            said = " ".join(str(each.get("description") or each.get("value"))
                            for each in about["args"])
            yield "console error: " + said.split("\n")[0]
        elif event["method"] == "Log.entryAdded" and about["entry"]["level"] == "error":
            yield "browser error: " + about["entry"]["text"].split("\n")[0]
        elif event["method"] == "Network.requestWillBeSent":
            url = about["request"]["url"]
            if url != page and not url.startswith(("data:", "blob:")):
                yield "asks for " + url[:120]


def screenshot(browser, session, path):
    size = evaluate(browser, session, FACTS)
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 9000), "scale": 1}
    shot = browser.send("Page.captureScreenshot", session, format="png", clip=clip,
                        captureBeyondViewport=True)
    path.write_bytes(base64.b64decode(shot["data"]))


def resize(browser, session, width):
    browser.send("Emulation.setDeviceMetricsOverride", session, width=width, height=900,
                 deviceScaleFactor=1, mobile=False)


def load(browser, session, page, width, scheme):
    """Loads the page into a window of this width; findings that concern the whole page."""
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.send(f"{domain}.enable", session)
    resize(browser, session, width)
    browser.send("Emulation.setEmulatedMedia", session,
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    browser.send("Page.navigate", session, url=page)
    browser.await_event("Page.loadEventFired", session)
    evaluate(browser, session, SETTLE)
    facts = evaluate(browser, session, FACTS)
    if not facts[scheme]:
        yield f"the colour scheme is not {scheme}"
    if facts["drawn"] == 0:
        yield "nothing was drawn"


def measure(browser, session, width):
    """Findings about the page at this width."""
    resize(browser, session, width)
    evaluate(browser, session, SETTLE)
    shown = evaluate(browser, session, "window.innerWidth")
    if shown != width:
        yield f"the window is {shown} px wide"
    yield from evaluate(browser, session, MEASURE)


def look(browser, path, scheme, shots):
    """Findings about one page in one scheme, each with its width."""
    browser.deadline = time.monotonic() + SECONDS_PER_PAGE
    browser.events.clear()
    target = browser.send("Target.createTarget", url="about:blank")["targetId"]
    session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    page = path.resolve().as_uri()
    widths = SCHEMES[scheme]
    found = []
    try:
        found += [(widths[0], each) for each in load(browser, session, page, widths[0], scheme)]
        found += [(widths[0], each) for each in evaluate(browser, session, FORKS)]
        for width in widths:
            found += [(width, each) for each in measure(browser, session, width)]
            if shots:
                screenshot(browser, session, shots / f"{path.stem}_{width}_{scheme}.png")
        evaluate(browser, session, EXERCISE)
        for width in reversed(widths):
            found += [(width, f"after use: {each}") for each in measure(browser, session, width)
                      if (width, each) not in found]
            if shots:
                screenshot(browser, session, shots / f"{path.stem}_{width}_{scheme}_used.png")
        found += [(widths[0], each) for each in dict.fromkeys(complaints(browser.events, page))]
    except RuntimeError as error:
        found.append((widths[0], f"the check itself failed: {error}"))
    browser.send("Target.closeTarget", targetId=target)
    return found


def check(program, paths, shots=None):
    """All findings, as lines."""
    lines = []
    browser = Browser(program)
    try:
        for path in paths:
            for scheme, widths in SCHEMES.items():
                try:
                    found = look(browser, path, scheme, shots)
                except TooSlow as error:
                    found = [(widths[0], str(error))]
                    browser.close()
                    browser = Browser(program)
                lines += [f"{path.name} at {width} px, {scheme}: {each}" for width, each in found]
    finally:
        browser.close()
    return lines


def assembled(sample):
    """The page for a report, as troupe writes it."""
    report = json.loads(sample.read_text(encoding="utf-8"))
    parts = {
        "title": html.escape(f"troupe {report.get('kind')}: {sample.stem}"),
        "style": "\n".join((PAGES / name).read_text(encoding="utf-8") for name in STYLES),
        "script": "\n".join((PAGES / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "summary": html.escape(f"A {report.get('kind')} report."),
        "report": json.dumps(report, ensure_ascii=False).replace("<", "\\u003c"),
    }
    page = (PAGES / "page.html").read_text(encoding="utf-8")
    pieces = []
    while page:
        before, opened, rest = page.partition("{{")
        pieces.append(before)
        if opened:
            name, _, rest = rest.partition("}}")
            pieces.append(parts.pop(name))
        page = rest
    if parts:
        raise ValueError(f"page.html has no place for {', '.join(parts)}")
    return "".join(pieces)


def as_pages(paths, into):
    """HTML files as they are, samples put into pages."""
    for path in paths:
        if path.suffix == ".json":
            made = into / f"{path.stem}.html"
            made.write_text(assembled(path), encoding="utf-8")
            yield made
        else:
            yield path


def self_test(program):
    """Shows that defects are found, and that correct pages have no findings."""
    of_a_load = ["script error", "console error", "nothing was drawn"]
    of_a_width = ["sticks out,", "the page is", "sticks out of its chart", "says '[object",
                  "is cut off", "lies over 'one'", "scrolls sideways", "has lost its colours"]
    expected = {
        "broken_throws.html": (of_a_load, [widths[0] for widths in SCHEMES.values()]),
        "broken_overflows.html": (of_a_width, WIDTHS),
    }
    wrong = []
    for name, (words, widths) in expected.items():
        lines = check(program, [HERE / name])
        for width in widths:
            for word in words:
                if not any(f"at {width} px" in line and word in line for line in lines):
                    wrong.append(f"{name}: '{word}' was not found at {width} px")
    with tempfile.TemporaryDirectory(prefix="check_pages_") as made:
        page = pathlib.Path(made) / "sound.html"
        page.write_text(assembled(HERE / "sample_load_closed.json"), encoding="utf-8")
        wrong += [f"sound page: {line}" for line in check(program, [page])]
    return wrong


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--assemble", nargs=2, type=pathlib.Path, metavar=("SAMPLE", "OUT"))
    parser.add_argument("--self-test", metavar="CHROMIUM")
    parser.add_argument("chromium", nargs="?")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    chosen = parser.parse_args(arguments)
    if not (chosen.assemble or chosen.self_test or (chosen.chromium and chosen.pages)):
        parser.error("CHROMIUM and at least one PAGE are needed")
    return chosen


def main(arguments):
    chosen = parse(arguments)
    if chosen.assemble:
        chosen.assemble[1].write_text(assembled(chosen.assemble[0]), encoding="utf-8")
        return 0
    if chosen.self_test:
        lines = self_test(chosen.self_test)
    else:
        if chosen.screenshots:
            chosen.screenshots.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="check_pages_") as made:
            pages = list(as_pages(chosen.pages, pathlib.Path(made)))
            lines = check(chosen.chromium, pages, chosen.screenshots)
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
