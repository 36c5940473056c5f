// The state by scope. Each key tells its last change, and opens to its history.

const SCOPES = [
  { prefix: "app:", name: "app", about: "all users" },
  { prefix: "user:", name: "user", about: "all sessions of the user" },
  { prefix: "temp:", name: "temp", about: "this run" },
  { prefix: "", name: "session", about: "this session" },
];

function scopeOf(key) {
  return SCOPES.find((each) => key.startsWith(each.prefix));
}

class StatePane {
  constructor(root, page) {
    this.page = page;
    this.state = {};
    this.opened = new Set();
    this.title = element("span", { class: "tag" });
    this.list = element("div", {});
    root.append(element("h2", {}, "State ", this.title), this.list);
    this.draw = atNextFrame(() => this.drawNow());
  }

  open() {
    this.state = {};
    this.opened.clear();
    this.draw();
  }

  // `isOfNow`: an earlier revision is shown, but with the present keys of user and app.
  show(state, isOfNow = false) {
    this.state = state;
    this.isOfNow = isOfNow;
    this.draw();
  }

  drawNow() {
    const { history, at } = this.page;
    const focused = document.activeElement?.dataset?.key;
    if (!history) {
      this.title.textContent = "";
      this.list.replaceChildren(element("p", { class: "nothing" }, "No session is chosen."));
      return;
    }
    const last = at ?? history.revision;
    this.title.textContent = at === null ? `revision ${last}, now` : `revision ${at}`;
    const changes = history.lastChanges(last);
    const drawn = SCOPES.map((scope) => this.scope(scope, changes, last)).filter(Boolean);
    this.list.replaceChildren(...drawn);
    if (drawn.length === 0)
      this.list.replaceChildren(element("p", { class: "nothing" }, "The state is empty."));
    if (focused !== undefined)
      [...this.list.querySelectorAll("[data-key]")]
        .find((each) => each.dataset.key === focused)?.focus();
  }

  scope(scope, changes, last) {
    // The name of the session is shown elsewhere.
    const keys = Object.keys(this.state)
      .filter((key) => scopeOf(key) === scope && key !== METADATA).sort();
    if (keys.length === 0)
      return null;
    const isOfNow = this.isOfNow && ["app", "user"].includes(scope.name);
    return element("section", { class: `scope ${scope.name}` },
      element("h3", {}, scope.name, element("span", { class: "tag" },
        isOfNow ? `${scope.about}, as it is now` : scope.about)),
      keys.map((key) => this.key(scope, key, changes.get(key), last)));
  }

  key(scope, key, change, last) {
    const data = this.state[key];
    const isOpen = this.opened.has(key);
    const toggle = () => {
      if (!this.opened.delete(key))
        this.opened.add(key);
      this.drawNow();
    };
    const row = element("button", { type: "button", class: "key", "data-key": key,
      "aria-expanded": String(isOpen), onclick: toggle },
      element("code", {}, key.slice(scope.prefix.length) || key),
      element("code", { class: "data" }, shortened(textOf(data), 80)),
      element("small", {}, this.origin(scope, change, data)));
    return element("div", { class: `entry${change?.number === last ? " new" : ""}` }, row,
      isOpen ? this.details(key, data, last) : null);
  }

  origin(scope, change, data) {
    const isShared = scope.name === "app" || scope.name === "user";
    if (change && (!isShared || textOf(change.data) === textOf(data)))
      return `${change.event.author}, event ${change.number}, ${ago(change.event.timestamp)}`;
    if (isShared && (change || this.page.history.firstOfTail === 1))
      return "from outside of this session";
    return this.page.history.firstOfTail === 1 ? "from the creation of the session"
      : `before event ${this.page.history.firstOfTail}`;
  }

  details(key, data, last) {
    const { history } = this.page;
    const changes = history.changesOf(key, last);
    const missing = history.firstOfTail - history.oldest;
    return element("div", { class: "past-values" },
      element("pre", { tabindex: "0" }, JSON.stringify(data, null, 2)),
      element("ol", {}, changes.slice(0, 200).map(({ number, event, data: former }) =>
        element("li", {}, button(String(number), () => this.page.goTo(number),
          { class: "quiet", title: `Show revision ${number}` }),
          element("code", {}, former === null ? "erased" : shortened(textOf(former), 60)),
          element("small", {}, event.author, " · ", timeOf(event.timestamp))))),
      missing > 0 ? button(`Search ${Math.min(missing, 2000)} earlier events`, async (pressed) => {
        pressed.target.disabled = true;
        const end = history.firstOfTail - 1;
        await history.loadRange(Math.max(end - 1999, history.oldest), end);
        this.draw();
      }) : null);
  }
}
