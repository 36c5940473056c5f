// The page: the chosen session and revision, and its views. The address has them behind `#`, so it
// can be kept and shared.

const VIEWS = [
  { id: "sessions", name: "Sessions" },
  { id: "conversation", name: "Conversation" },
  { id: "events", name: "Events" },
  { id: "runs", name: "Runs" },
  { id: "branches", name: "Branches" },
  { id: "state", name: "State" },
  { id: "figures", name: "Figures" },
];

class Page {
  constructor() {
    this.server = new Server((wasRefused) => askToken(wasRefused));
    this.place = { app: null, user: null, session: null };
    this.at = null; // The revision that is shown; null for the newest one.
    this.history = null;
    this.underWay = null; // Ids of runs of this server that go on; null if they are not known.
    this.origins = new Map(); // Places where sessions were forked, by session.
    const root = (id) => document.getElementById(id);
    this.sessions = new SessionsPane(root("sessions"), this);
    this.conversation = new Conversation(root("conversation"), this);
    this.events = new EventList(root("events"), this);
    this.runs = new RunsPane(root("runs"), this);
    this.branches = new BranchesPane(root("branches"), this);
    this.state = new StatePane(root("state"), this);
    this.figures = new FiguresPane(root("figures"), this);
    this.revisions = new Revisions(root("revisions"), this);
    this.tabs = new Map();
    this.addTabs(root("tabs"));
    this.draw = atNextFrame(() => this.drawNow());
    this.refresh = later(60, () => this.readPresent());
    window.addEventListener("hashchange", () => this.readAddress());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  async start() {
    try {
      const names = await this.server.get("/list-apps");
      this.apps = names;
      await this.readAddress();
    } catch (error) {
      notify(`The server does not answer: ${error.message}`, true);
    }
  }

  // -- the place ----

  async readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const app = given.get("app") ?? this.place.app ?? this.apps[0] ?? null;
    const session = given.get("session");
    const at = given.has("at") ? Number(given.get("at")) : null;
    if (app !== this.place.app || (given.get("user") ?? this.place.user) !== this.place.user)
      await this.openUser(app, given.get("user"), session);
    else if (session !== this.place.session)
      await this.openSession(session);
    if (this.history && at !== this.at)
      this.goTo(Number.isSafeInteger(at) && at >= 0 ? at : null);
  }

  writeAddress() {
    const given = new URLSearchParams();
    for (const [name, data] of Object.entries({ ...this.place, at: this.at }))
      if (data !== null)
        given.set(name, data);
    history.replaceState(null, "", `#${given}`);
  }

  // Without a user, the first one that the caller may see is chosen.
  async openUser(app, user, session = null) {
    this.place = { app, user: null, session: null };
    this.origins.clear();
    this.sessions.showApps(this.apps ?? []);
    if (app) {
      const users = await this.sessions.readUsers();
      this.place.user = user ?? users[0] ?? null;
    }
    await Promise.all([this.sessions.open(), this.openSession(session)]);
    if (session === null && this.place.session === null && this.sessions.sessions.length > 0
        && !isNarrow())
      await this.openSession(this.sessions.sessions[0].id);
  }

  async openSession(id) {
    this.history?.close();
    this.history = null;
    this.at = null;
    this.underWay = null;
    this.place = { ...this.place, session: id };
    this.writeAddress();
    for (const each of [this.conversation, this.events, this.runs, this.branches, this.state])
      each.open();
    if (id !== null) {
      const opened = new History(this.server, this.place, () => this.changed(opened));
      this.history = opened;
      if (document.body.dataset.view === "sessions")
        this.show("conversation");
      await this.openHistory(opened);
    } else if (document.body.dataset.view !== "sessions" || !isNarrow()) {
      this.show("conversation");
    }
    this.draw();
  }

  async openHistory(opened) {
    try {
      const session = await opened.open();
      if (opened !== this.history)
        return;
      this.session = session;
      this.state.show(session.state);
      this.conversation.reset();
      this.events.open();
      this.refresh();
    } catch (error) {
      if (opened !== this.history)
        return;
      this.history = null;
      this.conversation.fail(error.message);
    }
  }

  // Creates a session with this name and opens it.
  async create(name) {
    const state = name ? { [METADATA]: { displayName: shortened(name, 60) } } : {};
    const made = await this.server.post(sessionsPath(this.place), { state });
    await this.openSession(made.id);
    this.sessions.read();
  }

  // -- events ----

  changed(history) {
    if (history !== this.history)
      return;
    const newest = this.seen === history ? this.seenRevision : history.revision;
    for (let number = newest + 1; number <= history.revision; ++number) {
      const event = history.at(number);
      if (event)
        this.conversation.arrived(event);
    }
    if (this.seen !== history || history.revision !== newest)
      this.refresh();
    this.seen = history;
    this.seenRevision = history.revision;
    this.noteOrigin(history);
    this.draw();
  }

  noteOrigin(history) {
    if (this.origins.has(history.key.session) || history.noted === history.version)
      return;
    history.noted = history.version;
    this.noteOriginIn(history.key.session, history.events);
  }

  noteOriginIn(session, events) {
    // A fork of a fork has the origins of both; the newest is its own.
    const event = events.findLast((each) => each?.actions?.agentState?.forkedFrom);
    if (event)
      this.origins.set(session, event.actions.agentState.forkedFrom);
  }

  originOf(session) {
    return this.origins.get(session);
  }

  forksOf(session) {
    return [...this.origins.values()].filter((each) => each.session === session);
  }

  // Reads the parts that no event tells: the whole state, open calls, and runs under way.
  async readPresent() {
    const { history } = this;
    if (!history || history.state === "gone")
      return;
    const path = sessionPath(history.key);
    const { ends } = this.conversation;
    try {
      const [session, { openCalls }, { runs }] = await Promise.all([
        this.at === null ? this.server.get(`${path}?events=0`) : null,
        this.server.get(`${path}/open-calls`),
        this.server.get(`${path}/runs`)]);
      if (history !== this.history)
        return;
      if (session && this.at === null) {
        this.session = session;
        this.state.show(session.state);
      }
      this.conversation.calls = openCalls;
      this.underWay = new Set(runs);
      // A run of this page that has ended meanwhile may still be in the list. Words typed after its
      // end would wait for it.
      const isLate = ends !== this.conversation.ends;
      if (isLate)
        this.refresh();
      else
        this.conversation.others = runs.filter((each) => each !== this.conversation.run?.id);
      // The end of another client's run is not an event.
      if (runs.length > 0 && !isLate)
        setTimeout(() => this.refresh(), 1000);
    } catch (error) {
      if (!(error instanceof Refusal) && !history.isClosed)
        setTimeout(() => this.refresh(), 3000);
    }
    this.draw();
  }

  get activity() {
    if (!this.history)
      return "";
    if (this.conversation.isRunning)
      return "runs";
    return this.conversation.calls.length > 0 ? "waits" : "";
  }

  // -- time travel ----

  async goTo(number) {
    const { history } = this;
    if (!history)
      return;
    const wanted = number === null || number >= history.revision ? null : number;
    this.at = wanted;
    this.writeAddress();
    this.conversation.reset();
    this.draw();
    if (wanted === null)
      return this.refresh();
    await this.readPast(history, wanted);
  }

  // While the slider moves, only the state of its last place is read.
  async readPast(history, wanted) {
    if (this.isReadingPast)
      return;
    this.isReadingPast = true;
    try {
      const past = await this.server.get(`${sessionPath(history.key)}?at=${wanted}&events=0`);
      await history.load(wanted);
      if (history === this.history && this.at === wanted)
        this.state.show(past.state, past.sharedStateIsOfNow);
    } catch (error) {
      notify(error.message, true);
    } finally {
      this.isReadingPast = false;
    }
    this.draw();
    if (history === this.history && this.at !== null && this.at !== wanted)
      await this.readPast(history, this.at);
  }

  async rewind() {
    const { history, at } = this;
    if (!history || at === null)
      return;
    try {
      const done = await this.server.post(`${sessionPath(history.key)}/rewind`, { to: at },
        { headers: { "if-match": `"${history.revision}"` } });
      notify(`The session is back at revision ${at}.${told(done.keptKeys, "Kept as it was")}`);
      this.goTo(null);
    } catch (error) {
      notify(error.status === 412 ? "The session has gone on meanwhile. Try again."
        : error.message, true);
    }
  }

  async fork() {
    const { history, at } = this;
    if (!history)
      return;
    try {
      const made = await this.server.post(`${sessionPath(history.key)}/fork`,
        at === null ? {} : { at });
      this.origins.set(made.id, { session: history.key.session, revision: at ?? history.revision });
      notify(`Forked at revision ${at ?? history.revision}.`);
      await this.openSession(made.id);
      this.sessions.read();
    } catch (error) {
      notify(error.message, true);
    }
  }

  // -- views ----

  addTabs(list) {
    for (const { id, name } of VIEWS) {
      const count = id === "events" ? element("span", { class: "tag" }) : null;
      const tab = element("button", { type: "button", role: "tab", id: `tab-${id}`,
        "aria-controls": id, onclick: () => this.show(id), onkeydown: (event) => this.nextTab(event) },
        name, count && " ", count);
      this.tabs.set(id, { tab, count });
      list.append(tab);
    }
    this.show("conversation");
  }

  nextTab(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step)
      return;
    const shown = VIEWS.filter((each) => this.tabs.get(each.id).tab.checkVisibility());
    const place = shown.findIndex((each) => each.id === document.body.dataset.view);
    const next = shown[(place + step + shown.length) % shown.length];
    this.show(next.id);
    this.tabs.get(next.id).tab.focus();
  }

  show(view) {
    document.body.dataset.view = view;
    for (const [id, { tab }] of this.tabs) {
      tab.setAttribute("aria-selected", String(id === view));
      tab.tabIndex = id === view ? 0 : -1;
    }
    this.draw?.();
  }

  showEvent(number) {
    this.show("events");
    this.events.show(number);
  }

  drawNow() {
    for (const each of [this.conversation, this.events, this.runs, this.branches, this.state,
      this.revisions, this.sessions, this.figures])
      each.draw();
    this.drawCrumb();
    const { count } = this.tabs.get("events");
    count.textContent = this.history ? this.history.revision.toLocaleString() : "";
    count.hidden = !this.history;
    const link = document.getElementById("link");
    link.className = this.history?.state ?? "";
    link.textContent = { live: "live", lost: "connects again…", gone: "removed",
      connecting: "connects…" }[this.history?.state] ?? "";
  }

  // The name of a session, or its id if the page does not know it.
  nameOf(id) {
    const known = this.sessions.find(id) ?? (this.session?.id === id ? this.session : null);
    return known ? nameOf(known) : id;
  }

  drawCrumb() {
    const { app, user, session } = this.place;
    const name = session && this.nameOf(session);
    document.getElementById("crumb").replaceChildren(
      ...[app, user].filter(Boolean).flatMap((each) => [visible(shortened(each, 40)), " / "]),
      element("strong", {}, session ? shortened(name, 80) : "new session"));
    document.title = session ? `${visible(shortened(name, 60))} · troupe` : "troupe";
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey
        || event.target.closest?.("input:not([type=range]), textarea, select, dialog"))
      return;
    const press = { ",": () => this.revisions.step(-1), ".": () => this.revisions.step(1),
      Escape: () => this.at !== null && this.goTo(null),
      "/": () => { this.show("conversation"); this.conversation.field.focus(); } }[event.key];
    if (!press)
      return;
    event.preventDefault();
    press();
  }
}

function told(names, about) {
  return names?.length > 0 ? ` ${about}: ${names.join(", ")}.` : "";
}

function isNarrow() {
  return matchMedia("(max-width: 900px)").matches;
}

// Calls `act` this time after the first of several calls, and never twice at the same time.
function later(wait, act) {
  let timer = null;
  let isActing = false;
  let isDue = false;
  const plan = () => {
    isDue = true;
    if (timer !== null || isActing)
      return;
    timer = setTimeout(async () => {
      timer = null;
      isActing = true;
      isDue = false;
      await act();
      isActing = false;
      if (isDue)
        plan();
    }, wait);
  };
  return plan;
}

function notify(text, isBad = false) {
  const made = element("div", { class: isBad ? "notice bad" : "notice" }, text,
    button("✕", () => made.remove(), { "aria-label": "Dismiss" }));
  document.getElementById("notices").append(made);
  setTimeout(() => made.remove(), isBad ? 12000 : 6000);
}

// Asks for a token until one is given.
function askToken(wasRefused) {
  const dialog = document.getElementById("login");
  return new Promise((done) => {
    const field = element("input", { type: "password", required: true, autocomplete: "off",
      spellcheck: "false", id: "token" });
    dialog.oncancel = (event) => event.preventDefault();
    dialog.replaceChildren(element("form", { onsubmit: (event) => {
      event.preventDefault();
      dialog.close();
      done(field.value.trim());
    } }, element("h2", { id: "login-title" }, "Log in"),
      wasRefused ? element("p", { class: "bad", role: "alert" }, "This token is not valid.")
        : element("p", { class: "muted" }, "The server asks for a token. It is kept until this "
          + "tab is closed."),
      element("label", { for: "token" }, "Token"), field,
      element("div", { class: "row" }, element("button", { type: "submit", class: "go" },
        "Log in"))));
    dialog.showModal();
    field.focus();
  });
}

// The answer to the newest question. There is one question at a time.
let lastQuestion = Promise.resolve();

// Asks before an action. Returns a promise, of true if the reader agrees.
function askConsent(title, text, action) {
  lastQuestion = lastQuestion.then(() => showQuestion(title, text, action));
  return lastQuestion;
}

function showQuestion(title, text, action) {
  const dialog = document.getElementById("question");
  return new Promise((done) => {
    dialog.returnValue = "";
    dialog.onclose = () => done(dialog.returnValue === "yes");
    dialog.replaceChildren(element("form", { onsubmit: (event) => {
      event.preventDefault();
      dialog.close("yes");
    } }, element("h2", { id: "question-title" }, title),
      element("p", { id: "question-text" }, text),
      element("div", { class: "row" }, element("button", { type: "submit", class: "go" }, action),
        button("Back", () => dialog.close()))));
    dialog.showModal();
  });
}

new Page().start();
