// The sessions of a user, newest update first.

const METADATA = "__session_metadata__";
const LIST_SIZE = 50;

function nameOf(session) {
  const name = session.state?.[METADATA]?.displayName;
  return typeof name === "string" && name.trim() !== "" ? name : session.id;
}

class SessionsPane {
  constructor(root, page) {
    this.page = page;
    this.sessions = [];
    this.next = null;
    this.isRead = false;
    this.apps = element("select", { "aria-label": "App",
      onchange: () => page.openUser(this.apps.value, page.place.user) });
    this.names = element("datalist", { id: "users" });
    this.user = element("input", { list: "users", "aria-label": "User", placeholder: "User",
      autocomplete: "off", spellcheck: "false", onchange: () => this.named() });
    this.filter = element("input", { type: "search", "aria-label": "Find a session",
      placeholder: "Find a session", oninput: () => this.draw() });
    this.list = element("ul", { class: "sessions" });
    this.more = button("More", () => this.readMore(), { hidden: true });
    root.append(element("div", { class: "choice" }, element("label", {}, "App", this.apps),
      element("label", {}, "User", this.user), this.names),
      element("div", { class: "row" }, this.filter,
        button("New", () => page.openSession(null), { title: "Start a session" })),
      this.list, this.more);
    this.draw = atNextFrame(() => this.drawNow());
    setInterval(() => document.hidden || this.read(), 4000);
  }

  named() {
    const name = this.user.value.trim();
    if (name !== "" && name !== this.page.place.user)
      this.page.openUser(this.page.place.app, name);
  }

  showApps(names) {
    const { app } = this.page.place;
    const all = app && !names.includes(app) ? [...names, app] : names;
    this.apps.replaceChildren(...all.map((name) => element("option", { value: name }, name)));
    this.apps.value = app ?? "";
  }

  async readUsers() {
    const { app } = this.page.place;
    try {
      const { list } = await this.page.server.page(usersPath(app), 1000);
      this.names.replaceChildren(...list.map((name) => element("option", { value: name })));
      return list;
    } catch (error) {
      if (!(error instanceof Refusal))
        throw error;
      return [];
    }
  }

  open() {
    this.sessions = [];
    this.next = null;
    this.isRead = false;
    this.size = LIST_SIZE;
    this.user.value = this.page.place.user ?? "";
    this.apps.value = this.page.place.app ?? "";
    this.draw();
    return this.read();
  }

  async read() {
    const { app, user } = this.page.place;
    if (!app || !user || this.isReading)
      return;
    this.isReading = true;
    try {
      const { list, next } = await this.page.server.page(sessionsPath({ app, user }), this.size);
      if (app === this.page.place.app && user === this.page.place.user) {
        this.sessions = list;
        this.next = next;
        this.isRead = true;
        this.failure = null;
      }
    } catch (error) {
      this.failure = error.message;
    } finally {
      this.isReading = false;
    }
    this.draw();
    this.page.drawCrumb();
  }

  readMore() {
    this.size *= 2;
    return this.read();
  }

  find(id) {
    return this.sessions.find((each) => each.id === id);
  }

  // Forks come behind their parents, if the page knows both.
  inOrder() {
    const wanted = this.filter.value.trim().toLowerCase();
    const fits = (each) => wanted === "" || nameOf(each).toLowerCase().includes(wanted)
      || each.id.toLowerCase().includes(wanted);
    const left = new Set(this.sessions.filter(fits));
    const ordered = [];
    const place = (session, depth) => {
      if (!left.delete(session))
        return;
      ordered.push({ session, depth });
      for (const each of [...left])
        if (this.page.originOf(each.id)?.session === session.id)
          place(each, depth + 1);
    };
    const isChild = (each) => [...left].some(
      (other) => other.id === this.page.originOf(each.id)?.session);
    for (const each of [...left])
      if (!isChild(each))
        place(each, 0);
    for (const each of [...left])
      place(each, 0);
    return ordered;
  }

  drawNow() {
    const focused = document.activeElement?.dataset?.session;
    this.list.replaceChildren(...this.inOrder().map((each) => this.entry(each)));
    if (this.failure)
      this.list.replaceChildren(element("li", { class: "nothing bad" }, this.failure));
    else if (this.isRead && this.list.children.length === 0)
      this.list.replaceChildren(element("li", { class: "nothing" },
        this.sessions.length === 0 ? "No sessions yet." : "No session has this name."));
    else if (!this.page.place.user)
      this.list.replaceChildren(element("li", { class: "nothing" },
        "Name a user to see sessions."));
    this.more.hidden = !this.next;
    if (focused !== undefined)
      [...this.list.querySelectorAll("button")]
        .find((each) => each.dataset.session === focused)?.focus();
  }

  entry({ session, depth }) {
    const isOn = session.id === this.page.place.session;
    const origin = this.page.originOf(session.id);
    return element("li", {}, element("button", { type: "button",
      class: `session${isOn ? " on" : ""} depth-${Math.min(depth, 3)}`, "data-session": session.id,
      "aria-current": isOn ? "true" : null, title: session.id,
      onclick: () => this.page.openSession(session.id) },
      element("span", { class: `dot ${isOn ? this.page.activity : ""}` }),
      element("span", { class: "name" }, origin ? `↳ at ${origin.revision}: ` : "",
        shortened(nameOf(session), 120)),
      element("small", {}, ago(session.lastUpdateTime))));
  }
}
