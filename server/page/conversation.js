// The conversation: messages, calls with their results, questions, and words as they come.

const SHOWN = 120;

class Conversation {
  constructor(root, page) {
    this.page = page;
    this.cache = new Map();
    this.first = 1;
    this.isAtEnd = true;
    this.pieces = new Map(); // Words of answers that are not complete, by author and branch.
    this.failures = [];
    this.run = null;         // The run that this page has started.
    this.others = [];        // Invocation ids of runs under way.
    this.ends = 0;           // Number of runs of this page that have ended.
    this.calls = [];
    this.cards = new Map();
    this.box = element("div", { class: "scroller talk", tabindex: "0", role: "log",
      "aria-label": "Conversation", onscroll: () => this.scrolled() });
    this.field = element("textarea", { rows: 1, "aria-label": "Message", disabled: true,
      oninput: () => this.fitField(), onkeydown: (event) => this.key(event) });
    this.send = element("button", { type: "submit", class: "go", disabled: true }, "Send");
    this.stop = button("Cancel", () => this.cancel(), { hidden: true });
    this.past = element("div", { class: "past", hidden: true });
    root.append(this.box, this.past, element("form", { class: "say",
      onsubmit: (event) => { event.preventDefault(); this.say(); } },
      this.field, this.stop, this.send));
    this.draw = atNextFrame(() => this.drawNow());
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  open() {
    this.cache.clear();
    this.cards.clear();
    this.pieces.clear();
    this.failures = [];
    this.calls = [];
    this.others = [];
    this.run = null;
    this.first = 1;
    this.isAtEnd = true;
    this.reset();
  }

  // Shows the newest events up to the chosen revision.
  reset() {
    const { history } = this.page;
    const last = this.page.at ?? history?.revision ?? 0;
    this.first = Math.max(last - SHOWN + 1, history?.oldest ?? 1);
    this.isAtEnd = true;
    this.draw();
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.box;
    this.isAtEnd = scrollTop + clientHeight >= scrollHeight - 30;
    if (scrollTop < 40 && this.first > (this.page.history?.oldest ?? 1)
        && scrollHeight > clientHeight)
      this.showEarlier();
  }

  async showEarlier() {
    const { history } = this.page;
    if (this.isLoading || !history)
      return;
    this.isLoading = true;
    const first = Math.max(this.first - SHOWN, history.oldest);
    await history.loadRange(first, this.first - 1);
    this.isLoading = false;
    if (history !== this.page.history)
      return;
    const fromEnd = this.box.scrollHeight - this.box.scrollTop;
    this.first = first;
    this.drawNow();
    this.box.scrollTop = this.box.scrollHeight - fromEnd;
  }

  drawNow() {
    const { history, at } = this.page;
    this.drawComposer();
    if (!history) {
      setChildren(this.box, [this.welcome()]);
      return;
    }
    const last = at ?? history.revision;
    // A session that grows for long keeps few elements while its end is in sight.
    if (this.isAtEnd && last - this.first > 3 * SHOWN)
      this.first = last - SHOWN + 1;
    for (const number of [this.first, last])
      history.load(number);
    setChildren(this.box, [...this.head(), ...this.drawnEvents(last), ...this.tail()]);
    if (this.isAtEnd)
      this.box.scrollTop = this.box.scrollHeight;
  }

  welcome() {
    return this.welcomed ??= element("div", { class: "welcome" }, element("h1", {}, "troupe"),
      element("p", {}, "Choose a session, or write a message to start one."));
  }

  head() {
    const { oldest } = this.page.history;
    if (this.first <= oldest)
      return oldest === 1 ? [] : [element("p", { class: "nothing" },
        `Events 1 to ${(oldest - 1).toLocaleString()} were deleted.`)];
    this.earlier ??= button("Show earlier events", () => this.showEarlier(),
      { class: "earlier" });
    return [this.earlier];
  }

  drawnEvents(last) {
    const { history } = this.page;
    const taken = history.takenBack(last);
    const { results, asked } = answersIn(history, this.first, last);
    const drawn = [];
    for (let number = this.first; number <= last; ++number) {
      const event = history.at(number);
      const made = event && this.drawnEvent(number, event, taken.has(number), results, asked);
      if (made)
        drawn.push(made);
    }
    if (history.revision === 0 && !this.run)
      drawn.push(this.empty ??= element("p", { class: "nothing" },
        "This session has no events. Write the first message."));
    return drawn;
  }

  // An event is drawn again only if something about it has changed.
  drawnEvent(number, event, isTaken, results, asked) {
    const mine = callsOf(event).map((each) => (results.has(each.id) ? each.id : ""));
    const isOpen = this.page.at === null
      && this.calls.some((call) => callsOf(event).some((each) => each.id === call.id));
    const stamp = `${isTaken} ${isOpen} ${mine.join(" ")}`;
    const kept = this.cache.get(number);
    if (kept?.stamp === stamp && kept.event === event)
      return kept.node;
    // The card of an open call shows its question.
    const node = isOpen ? null : drawEvent(this.page, number, event, isTaken, results, asked);
    this.cache.set(number, { stamp, event, node });
    return node;
  }

  // Parts behind the stored events: words that come, questions, failures.
  tail() {
    const drawn = [];
    if (this.page.at === null) {
      for (const each of this.pieces.values())
        drawn.push(each.node);
      for (const call of this.calls)
        drawn.push(this.card(call));
      if (this.isRunning && this.pieces.size === 0)
        drawn.push(this.working ??= element("p", { class: "working" }, "works"));
    }
    return [...drawn, ...this.failures];
  }

  card(call) {
    if (!this.cards.has(call.id))
      this.cards.set(call.id, openCallCard(call, (message) => this.start(message)));
    return this.cards.get(call.id);
  }

  get isRunning() {
    return this.run !== null || this.others.length > 0;
  }

  drawComposer() {
    const { history, at, place } = this.page;
    const isPast = at !== null;
    this.past.hidden = !isPast;
    if (isPast && this.past.dataset.at !== String(at)) {
      this.past.dataset.at = at;
      this.past.replaceChildren(element("span", {}, `This is revision ${at}. To go on from here:`),
        button("Rewind", () => this.page.rewind()), button("Fork", () => this.page.fork()),
        button("Back to now", () => this.page.goTo(null)));
    }
    if (!isPast)
      delete this.past.dataset.at;
    this.stop.hidden = !this.isRunning;
    this.send.hidden = this.isRunning;
    this.field.disabled = isPast || !place.app || !place.user || history?.state === "gone";
    this.send.disabled = this.field.disabled;
    this.field.placeholder = place.user ? `Write to ${place.app ?? "an agent"}…`
      : "Name a user first";
  }

  fitField() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, 180)}px`;
  }

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing)
      return;
    event.preventDefault();
    this.say();
  }

  async say() {
    const text = this.field.value.trim();
    if (text === "" || this.isRunning || this.field.disabled)
      return;
    this.field.value = "";
    this.fitField();
    const isSent = await this.start({ role: "user", parts: [{ text }] }, text);
    if (!isSent && this.field.value === "")
      this.field.value = text;
    this.fitField();
  }

  // Starts a run with this message, in a new session if there is none. Returns false if it did not
  // start.
  async start(message, name) {
    if (this.run)
      return false;
    this.failures = [];
    const run = this.run = { closing: new AbortController(), isStarted: false };
    this.isAtEnd = true;
    this.draw();
    try {
      if (!this.page.history) {
        await this.page.create(name);
        this.run = run;
      }
      await this.read(run, message);
    } catch (error) {
      if (this.run === run)
        this.fail(error.message);
    }
    ++this.ends;
    if (this.run === run) {
      this.run = null;
      this.pieces.clear();
      this.page.refresh();
      this.draw();
    }
    return run.isStarted;
  }

  async read(run, message) {
    const { app, user, session } = this.page.place;
    const answer = await this.page.server.fetch("POST", "/run_sse", { body: {
      appName: app, userId: user, sessionId: session, newMessage: message, streaming: true } });
    run.isStarted = true;
    run.id = answer.headers.get("troupe-invocation-id");
    if (run.isUnwanted)
      this.cancel();
    this.draw();
    for await (const { data } of sentEvents(answer)) {
      // Another session is shown now. The run does not need this page.
      if (this.run !== run)
        return;
      if (data.error)
        this.fail(data.error);
      else
        this.take(data);
    }
  }

  take(event) {
    if (event.partial)
      this.addPieces(event);
    else if (this.page.history?.ids.has(event.id))
      this.pieces.delete(pieceKey(event));
    this.draw();
  }

  // Stored events replace their pieces.
  arrived(event) {
    this.pieces.delete(pieceKey(event));
  }

  addPieces(event) {
    const key = pieceKey(event);
    if (!this.pieces.has(key)) {
      const words = element("div", { class: "words typing" });
      this.pieces.set(key, { words, node: element("article", { class: "event" },
        element("span", { class: `who ${colourOf(event.author)}` }, event.author),
        words, element("span", { class: "meta" })) });
    }
    add(this.pieces.get(key).words, [wordsOf(event)]);
  }

  async cancel() {
    // The run has no id yet: it is cancelled as soon as it has one.
    if (this.run && !this.run.id) {
      this.run.isUnwanted = true;
      return;
    }
    const ids = this.run?.id ? [this.run.id] : this.others;
    for (const id of ids)
      try {
        await this.page.server.fetch("POST",
          `${sessionPath(this.page.place)}/runs/${encodeURIComponent(id)}/cancel`);
      } catch (error) {
        if (error.status !== 404)
          this.fail(error.message);
      }
    this.page.refresh();
  }

  fail(text) {
    const made = element("div", { class: "failure", role: "alert" }, element("span", {}, text),
      button("✕", () => {
        this.failures = this.failures.filter((each) => each !== made);
        this.draw();
      }, { "aria-label": "Dismiss" }));
    this.failures.push(made);
    this.isAtEnd = true;
    this.draw();
  }
}

function pieceKey(event) {
  return `${event.author} ${event.branch ?? ""}`;
}

// Returns the results of calls in these events by the ids of the calls, and the ids of all calls.
function answersIn(history, first, last) {
  const results = new Map();
  const asked = new Set();
  for (let number = first; number <= last; ++number) {
    const event = history.at(number);
    if (!event)
      continue;
    callsOf(event).forEach((each) => asked.add(each.id));
    for (const each of responsesOf(event))
      results.set(each.id, { ...each, time: event.timestamp });
  }
  return { results, asked };
}

// Returns the element of an event; null if it has nothing to show.
function drawEvent(page, number, event, isTaken, results, asked) {
  const body = [...drawnParts(event, results, asked), ...drawnMarks(page, event),
    drawnChanges(event)].filter(Boolean);
  if (body.length === 0)
    return null;
  const isMark = takesBack(event) > 0 || event.actions?.agentState?.forkedFrom;
  return element("article", { class: `event${isTaken ? " taken-back" : ""}`
    + `${isMark ? " mark" : ""}${event.author === "user" ? " mine" : ""}`,
    "aria-label": `Event ${number} by ${event.author}${isTaken ? ", taken back" : ""}` },
    element("span", { class: `who ${colourOf(event.author)}`, title: event.branch ?? null },
      event.author === "user" ? "you" : event.author),
    element("div", { class: "words" }, body),
    element("span", { class: "meta" },
      button(String(number), () => page.goTo(number),
        { class: "quiet", title: `Show revision ${number}` }),
      figuresOf(event, page.history.at(number - 1))));
}

// The time of a message, or the time since the former event of the run, and the tokens.
function figuresOf(event, former) {
  const isStep = former?.invocationId === event.invocationId && event.author !== "user";
  const tokens = event.usageMetadata?.totalTokenCount;
  return element("time", { title: new Date(event.timestamp * 1000).toLocaleString() },
    [isStep ? durationOf(event.timestamp - former.timestamp) : timeOf(event.timestamp),
      tokens ? `${tokens} tok` : null].filter(Boolean).join(" · "));
}

function drawnParts(event, results, asked) {
  return partsOf(event).map((part) => {
    if (part.text)
      return drawnText(part, event.author !== "user");
    if (part.functionCall)
      return drawnCall(part.functionCall, results.get(part.functionCall.id));
    if (part.functionResponse)
      return drawnResponse(part.functionResponse, asked);
    if (part.inlineData)
      return drawnFile(part.inlineData);
    if (part.fileData)
      return element("p", { class: "chip" }, `file ${part.fileData.fileUri}`);
    const kind = Object.keys(part)[0];
    return kind ? element("pre", {}, `${kind}: ${shortened(textOf(part[kind]), 2000)}`) : null;
  });
}

function drawnText(part, isMarked) {
  if (part.thought)
    return element("details", { class: "thought" }, element("summary", {}, "Thoughts"),
      element("p", {}, part.text));
  return element("div", { class: "text" }, isMarked ? marked(part.text) : part.text);
}

// Code, bold text and headings of Markdown, as elements; the rest is text.
function marked(text) {
  return text.split(/```[^\n]*\n?([\s\S]*?)(?:```|$)/u).flatMap((piece, index) => (index % 2
    ? [element("pre", {}, piece.replace(/\n$/u, ""))]
    : piece.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/u).filter(Boolean).map((each) => {
      if (each.length > 2 && each.startsWith("`") && each.endsWith("`"))
        return element("code", {}, each.slice(1, -1));
      if (each.length > 4 && each.startsWith("**") && each.endsWith("**"))
        return element("strong", {}, each.slice(2, -2));
      return each;
    })));
}

function drawnCall(call, result) {
  if (call.name === CONFIRMATION)
    return drawnQuestion(call, result);
  return element("details", { class: "called" },
    element("summary", {}, element("code", { class: "call" }, element("b", {}, call.name), "(",
      shortened(argumentsOf(call.args), 160), ")"),
      result ? element("code", { class: "result" },
        ` → ${shortened(textOf(plainResult(result.response)), 160)}`) : null),
    element("pre", {}, JSON.stringify({ args: call.args ?? {}, response: result?.response }, null, 2)));
}

function plainResult(response) {
  const names = Object.keys(response ?? {});
  return names.length === 1 && names[0] === "result" ? response.result : response;
}

function drawnQuestion(call, result) {
  const { toolConfirmation: asked = {}, originalFunctionCall: about = {} } = call.args ?? {};
  const verdict = result ? (result.response?.confirmed ? "allowed" : "denied") : null;
  return element("p", { class: "question" },
    asked.hint || `May ${about.name} be called?`,
    verdict ? element("span", { class: `verdict ${verdict}` }, verdict) : null);
}

// A result is shown with its call, if that is in sight.
function drawnResponse(response, asked) {
  if (asked.has(response.id))
    return null;
  if (response.name === CONFIRMATION)
    return element("p", { class: "muted" }, response.response?.confirmed ? "Allowed" : "Denied");
  return element("p", {}, element("code", { class: "call" }, element("b", {}, response.name),
    element("span", { class: "result" },
      ` → ${shortened(textOf(plainResult(response.response)), 300)}`)));
}

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

function drawnFile({ mimeType, data = "", displayName }) {
  if (PICTURES.includes(mimeType))
    return element("img", { alt: displayName ?? "picture",
      src: `data:${mimeType};base64,${data.replaceAll("-", "+").replaceAll("_", "/")}` });
  return element("p", {}, element("span", { class: "chip" },
    `${displayName ?? "file"}, ${mimeType}, ${Math.round(data.length * 3 / 4)} bytes`));
}

function drawnMarks(page, event) {
  const marks = [];
  const origin = event.actions?.agentState?.forkedFrom;
  if (origin)
    marks.push(element("p", {}, "Forked from ",
      button(shortened(page.nameOf(origin.session), 60), () => page.openSession(origin.session),
        { class: "quiet link", title: origin.session }),
      ` at revision ${origin.revision}`));
  const count = takesBack(event);
  if (count > 0)
    marks.push(element("p", {}, `Rewound: ${count} ${count === 1 ? "event was" : "events were"} `
      + "taken back"));
  if (event.errorCode || event.errorMessage)
    marks.push(element("p", { class: "bad" },
      [event.errorCode, event.errorMessage].filter(Boolean).join(": ")));
  if (event.actions?.transferToAgent)
    marks.push(element("p", { class: "muted" }, `hands over to ${event.actions.transferToAgent}`));
  for (const [name, version] of Object.entries(event.actions?.artifactDelta ?? {}))
    marks.push(element("p", {}, element("span", { class: "chip" },
      `file ${name}, version ${version}`)));
  return marks;
}

function drawnChanges(event) {
  const changes = Object.entries(event.actions?.stateDelta ?? {});
  if (changes.length === 0)
    return null;
  const words = wordsOf(event);
  return element("div", { class: "chips" }, changes.slice(0, 12).map(([key, data]) =>
    element("span", { class: "chip" }, shortened(key, 60), " ",
      element("b", {}, data === null ? "erased" : data !== "" && data === words ? "this text"
        : shortened(textOf(data), 40)))),
    changes.length > 12 ? element("span", { class: "chip" }, `${changes.length - 12} more`) : null);
}
