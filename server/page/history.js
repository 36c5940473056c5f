// The events of one session: pages that were asked for, and new events as they come.

const PAGE_SIZE = 200;

class History {
  // `changed` is called after each change.
  constructor(server, key, changed) {
    this.server = server;
    this.key = key;
    this.changed = changed;
    this.events = []; // Event N is at place N; places of events that were not asked for are empty.
    this.ids = new Set();
    this.revision = 0;
    this.oldest = 1; // Number of the first event; those before it were deleted.
    this.asked = new Map();
    this.closing = new AbortController();
    this.state = "connecting"; // Or "live", "lost", "gone".
    this.version = 0; // Rises with each change of the events.
  }

  async open() {
    const answer = await this.server.fetch("GET", `${sessionPath(this.key)}?events=0`,
      { signal: this.closing.signal });
    this.revision = Number((answer.headers.get("etag") ?? "0").replaceAll('"', ""));
    const session = await answer.json();
    this.oldest = Number(answer.headers.get("troupe-first-revision") ?? 0) + 1;
    await this.load(this.revision);
    this.follow();
    return session;
  }

  close() {
    this.closing.abort();
  }

  get isClosed() {
    return this.closing.signal.aborted;
  }

  // Returns an event that is here.
  at(number) {
    return this.events[number];
  }

  // Returns the number of an event that is here; null for another one.
  numberOf(id) {
    const number = this.events.findLastIndex((each) => each?.id === id);
    return number < 0 ? null : number;
  }

  // Asks for the events around a number, if they are not here.
  load(number) {
    if (number < this.oldest || number > this.revision || this.events[number])
      return Promise.resolve();
    const page = Math.floor((number - 1) / PAGE_SIZE);
    if (!this.asked.has(page))
      this.asked.set(page, this.read(page).catch((error) => {
        if (error.status === 410)
          return this.findOldest();
        throw error;
      }).catch((error) => {
        if (!this.isClosed)
          console.warn(error);
      }).finally(() => this.asked.delete(page)));
    return this.asked.get(page);
  }

  async read(page) {
    const begin = Math.max(page * PAGE_SIZE, this.oldest - 1);
    const { events, after } = await this.server.get(`${sessionPath(this.key)}/events`
      + `?after=${begin}&limit=${PAGE_SIZE}`, { signal: this.closing.signal });
    events.forEach((event, index) => this.put(after + 1 + index, event));
    this.changed();
  }

  // Updates the number of the oldest event after a trim.
  async findOldest() {
    const { firstRevision } = await this.server.get(
      `${sessionPath(this.key)}/events?before=1&limit=0`, { signal: this.closing.signal });
    this.oldest = firstRevision + 1;
    this.revision = Math.max(this.revision, firstRevision);
    this.changed();
  }

  // Loads the events in this range; false if some could not be loaded.
  async loadRange(first, last) {
    for (let number = first; number <= last; ++number)
      if (!this.events[number])
        await this.load(number);
    return !this.isClosed;
  }

  put(number, event) {
    this.events[number] = event;
    this.ids.add(event.id);
    this.revision = Math.max(this.revision, number);
    ++this.version;
  }

  // Follows the session; connects again after a failure, and misses no event.
  async follow() {
    let wait = 250;
    while (!this.isClosed) {
      try {
        const answer = await this.server.fetch("GET", `${sessionPath(this.key)}/events?follow`, {
          headers: { accept: "text/event-stream", "last-event-id": String(this.revision) },
          signal: this.closing.signal });
        this.become("live");
        for await (const { id, data } of sentEvents(answer)) {
          wait = 250;
          if (data.error)
            throw new Error(data.error);
          this.put(Number(id), data);
          this.changed();
        }
      } catch (error) {
        if (this.isClosed)
          return;
        if (error.status === 404)
          return this.become("gone");
        if (error.status === 410)
          await this.findOldest().catch(() => {}); // Tried again below.
      }
      this.become("lost");
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 8000);
    }
  }

  become(state) {
    this.state = state;
    if (!this.isClosed)
      this.changed();
  }

  // Returns the numbers of the events that a rewind up to `last` has taken back. A rewind that was
  // taken back itself has no effect, so the newest is read first.
  takenBack(last = this.revision) {
    if (this.taken?.last === last && this.taken.version === this.version)
      return this.taken.numbers;
    const numbers = new Set();
    let low = Infinity;
    for (let number = last; number >= this.oldest; --number) {
      if (number >= low)
        numbers.add(number);
      else if (this.events[number] && takesBack(this.events[number]) > 0)
        low = number - takesBack(this.events[number]);
    }
    this.taken = { last, version: this.version, numbers };
    return numbers;
  }

  // Returns the changes of a key by the events that are here, newest first.
  changesOf(key, last = this.revision) {
    const found = [];
    for (let number = last; number >= 1; --number) {
      const delta = this.events[number]?.actions?.stateDelta;
      if (delta && Object.hasOwn(delta, key))
        found.push({ number, event: this.events[number], data: delta[key] });
    }
    return found;
  }

  // Returns the newest change of each key by the events that are here.
  lastChanges(last = this.revision) {
    const found = new Map();
    for (let number = last; number >= 1; --number)
      for (const key of Object.keys(this.events[number]?.actions?.stateDelta ?? {}))
        if (!found.has(key))
          found.set(key, { number, event: this.events[number],
            data: this.events[number].actions.stateDelta[key] });
    return found;
  }

  // Returns the number of the oldest event behind which none is missing.
  get firstOfTail() {
    let number = this.revision;
    while (number >= this.oldest && this.events[number])
      --number;
    return number + 1;
  }
}

function takesBack(event) {
  return Number(event.actions?.agentState?.takesBack ?? 0);
}

function partsOf(event) {
  return event.content?.parts ?? [];
}

function callsOf(event) {
  return partsOf(event).filter((each) => each.functionCall).map((each) => each.functionCall);
}

function responsesOf(event) {
  return partsOf(event).filter((each) => each.functionResponse)
    .map((each) => each.functionResponse);
}

function wordsOf(event) {
  return partsOf(event).filter((each) => each.text && !each.thought)
    .map((each) => each.text).join("");
}

// Returns one line about an event.
function summaryOf(event) {
  const origin = event.actions?.agentState?.forkedFrom;
  if (origin)
    return `forked from ${origin.session} at ${origin.revision}`;
  if (takesBack(event))
    return `takes back ${takesBack(event)} events`;
  if (event.errorMessage || event.errorCode)
    return `${event.errorCode ?? "error"}: ${event.errorMessage ?? ""}`;
  const told = [wordsOf(event),
    ...callsOf(event).map((each) => `${each.name}(${shortened(textOf(each.args ?? {}), 60)})`),
    ...responsesOf(event).map((each) => `${each.name} → ${shortened(textOf(each.response), 60)}`),
    ...partsOf(event).filter((each) => each.inlineData)
      .map((each) => `file ${each.inlineData.mimeType}`)].filter(Boolean);
  if (told.length > 0)
    return told.join(" · ");
  const keys = Object.keys(event.actions?.stateDelta ?? {});
  if (keys.length > 0)
    return `sets ${keys.join(", ")}`;
  const state = event.actions?.agentState;
  if (state?.waitsFor)
    return "waits for an answer";
  return state ? `notes ${Object.keys(state).join(", ")}` : "no content";
}
