// Two sessions with the same past beside each other: the past once, then both futures, and the keys
// of the state that differ.

const FUTURE_SHOWN = 60;
const PAST_SHOWN = 40;
const LOOKED_AT_MAX = 30;

class BranchesPane {
  constructor(root, page) {
    this.page = page;
    this.chosen = null; // The id of the other session.
    this.other = null;  // Its history.
    this.looked = new Set(); // Paths of sessions whose events were searched for a fork.
    this.choice = element("select", { "aria-label": "Session to compare with",
      onchange: () => this.choose(this.choice.value) });
    this.told = element("span", { class: "muted" });
    this.head = element("div", { class: "row beside" }, element("label", {}, "Beside ",
      this.choice), this.told);
    this.box = element("div", { class: "scroller branches", tabindex: "0" });
    root.append(this.head, this.box);
    this.draw = atNextFrame(() => this.drawNow());
    this.readState = later(100, () => this.readOtherState());
  }

  open() {
    this.leave();
    this.chosen = null;
    this.draw();
  }

  leave() {
    this.other?.close();
    this.other = null;
    this.sides = null;
    this.box.replaceChildren();
  }

  choose(id) {
    this.leave();
    this.chosen = id;
    this.draw();
  }

  // -- sessions with the same past ----

  // Returns the sessions that the events of a session come from, with the last shared revision.
  chainOf(id) {
    const chain = new Map([[id, Infinity]]);
    let last = Infinity;
    for (let origin = this.page.originOf(id); origin && !chain.has(origin.session);
      origin = this.page.originOf(origin.session)) {
      last = Math.min(last, origin.revision);
      chain.set(origin.session, last);
    }
    return chain;
  }

  // Returns the number of events that both sessions have; null if they have no past in common.
  sharedBy(one, other) {
    const theirs = this.chainOf(other);
    for (const [id, last] of this.chainOf(one))
      if (theirs.has(id))
        return Math.min(last, theirs.get(id));
    return null;
  }

  related() {
    const own = this.page.place.session;
    const parent = this.page.originOf(own)?.session;
    const known = new Set([parent, ...[...this.page.origins].flatMap(
      ([id, origin]) => [id, origin.session])]);
    known.delete(own);
    known.delete(undefined);
    return [...known].filter((id) => this.sharedBy(own, id) !== null);
  }

  // Looks for forks among the sessions of the list. Only the event behind the past tells of a fork.
  async discover() {
    const { app, user } = this.page.place;
    const left = this.page.sessions.sessions.filter(({ id }) => !this.page.originOf(id))
      .map(({ id: session }) => sessionPath({ app, user, session }))
      .filter((path) => !this.looked.has(path)).slice(0, LOOKED_AT_MAX);
    left.forEach((path) => this.looked.add(path));
    for (const path of left) {
      try {
        const { events } = await this.page.server.get(
          `${path}/events?before=${Number.MAX_SAFE_INTEGER}&limit=100`);
        if (user === this.page.place.user)
          this.page.noteOriginIn(decodeURIComponent(path.split("/").at(-1)), events);
      } catch (error) {
        if (!(error instanceof Refusal))
          throw error;
      }
    }
    if (left.length > 0)
      this.page.draw();
  }

  // -- the other session ----

  openOther(id) {
    this.leave();
    this.chosen = id;
    const opened = new History(this.page.server, { ...this.page.place, session: id }, () => {
      if (opened === this.other) {
        this.page.noteOrigin(opened);
        this.readState();
        this.draw();
      }
    });
    this.other = opened;
    this.otherState = null;
    opened.open().then((session) => {
      if (opened === this.other)
        this.otherState = session.state;
      this.draw();
    }).catch((error) => {
      if (opened === this.other)
        this.box.replaceChildren(element("p", { class: "nothing bad" }, error.message));
    });
  }

  async readOtherState() {
    const { other } = this;
    if (!other || other.state === "gone")
      return;
    try {
      const session = await this.page.server.get(`${sessionPath(other.key)}?events=0`);
      if (other === this.other)
        this.otherState = session.state;
    } catch (error) {
      console.warn(error);
    }
    this.draw();
  }

  // -- drawing ----

  drawNow() {
    const { history } = this.page;
    if (document.body.dataset.view !== "branches")
      return this.leave();
    if (!history)
      return this.showNothing("No session is chosen.");
    this.discover().catch((error) => notify(error.message, true));
    const related = this.related();
    if (related.length === 0)
      return this.showNothing("No other session with the same past is known. Fork this one from a "
        + "revision to see both side by side.");
    const id = related.includes(this.chosen) ? this.chosen : related[0];
    if (this.other?.key.session !== id)
      this.openOther(id);
    this.drawChoice(related, id);
    this.drawBoth(history, this.other, this.sharedBy(history.key.session, id));
  }

  showNothing(text) {
    this.leave();
    this.head.hidden = true;
    setChildren(this.box, [element("p", { class: "nothing" }, text)]);
  }

  drawChoice(related, id) {
    this.head.hidden = false;
    const names = related.map((each) => this.labelOf(each));
    if (names.join("\n") !== this.names) {
      this.names = names.join("\n");
      this.choice.replaceChildren(...related.map((each, index) => element("option",
        { value: each }, names[index])));
    }
    this.choice.value = id;
  }

  labelOf(id) {
    const origin = this.page.originOf(id);
    return shortened(this.page.nameOf(id), 50) + (origin ? `, forked at ${origin.revision}` : "");
  }

  drawBoth(history, other, shared) {
    const last = Math.min(shared, history.revision, other.revision);
    const count = (each) => `${Math.max(each.revision - last, 0)} more`;
    this.told.textContent = `${last} events in common, then ${count(history)} here and `
      + `${count(other)} there`;
    this.sides ??= [new Future(this.page, history), new Future(this.page, other)];
    setChildren(this.box, [this.past(history, last),
      this.columns(this.sides.map((each) => each.node)), this.keys()].filter(Boolean));
    for (const each of this.sides)
      each.draw(last);
  }

  columns(nodes) {
    if (this.row?.firstChild !== nodes[0])
      this.row = element("div", { class: "futures" }, nodes);
    return this.row;
  }

  // The events that both have, folded.
  past(history, last) {
    const stamp = `${history.key.session} ${last} ${history.version}`;
    if (this.pastStamp === stamp)
      return this.pastNode;
    const wasOpen = this.pastNode?.open;
    const first = Math.max(last - PAST_SHOWN + 1, 1);
    const lines = [];
    for (let number = first; number <= last; ++number) {
      const event = history.at(number);
      lines.push(element("li", {}, element("span", { class: "muted" }, number), event
        ? element("span", { class: `who ${colourOf(event.author)}` }, event.author) : null,
      event ? shortened(summaryOf(event), 200) : "…"));
    }
    for (const each of [first, last])
      history.load(each);
    this.pastStamp = stamp;
    this.pastNode = element("details", { class: "shared-past", open: wasOpen },
      element("summary", {}, `The same past: ${last} ${last === 1 ? "event" : "events"}`),
      first > 1 ? element("p", { class: "muted" }, `${first - 1} earlier`) : null,
      element("ol", {}, lines));
    return this.pastNode;
  }

  // The keys of the state that differ, as they are now.
  keys() {
    const ours = this.page.session?.state;
    const theirs = this.otherState;
    if (!ours || !theirs || this.page.session.id !== this.page.place.session)
      return null;
    const names = [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].sort()
      .filter((key) => key !== METADATA && textOf(ours[key]) !== textOf(theirs[key]));
    const stamp = JSON.stringify(names.map((key) => [key, ours[key], theirs[key]]));
    if (this.keysStamp === stamp && this.keysNode)
      return this.keysNode;
    this.keysStamp = stamp;
    const told = (state, key) => element("td", {}, Object.hasOwn(state, key)
      ? element("code", {}, shortened(textOf(state[key]), 400))
      : element("span", { class: "muted" }, "not set"));
    this.keysNode = names.length === 0
      ? element("p", { class: "nothing" }, "All keys of the state are equal.")
      : element("table", { class: "keys" },
        element("caption", {}, "Keys of the state that differ now"),
        element("thead", {}, element("tr", {}, ["key", "here", "there"].map(
          (each) => element("th", { scope: "col" }, each)))),
        element("tbody", {}, names.map((key) => element("tr", { "data-differs": key },
          element("th", { scope: "row" }, element("code", {}, key)), told(ours, key),
          told(theirs, key)))));
    return this.keysNode;
  }
}

// The events of one session behind the past that it shares.
class Future {
  constructor(page, history) {
    this.page = page;
    this.history = history;
    this.title = element("h3", {});
    this.list = element("div", {});
    this.node = element("section", { class: "future" }, this.title, this.list);
  }

  get isOwn() {
    return this.history === this.page.history;
  }

  // Events lead to their own session.
  async goTo(number) {
    if (!this.isOwn)
      await this.page.openSession(this.history.key.session);
    this.page.show("conversation");
    this.page.goTo(number);
  }

  nameOf(id) {
    return this.page.nameOf(id);
  }

  openSession(id) {
    return this.page.openSession(id);
  }

  draw(shared) {
    const { history } = this;
    const stamp = `${shared} ${history.revision} ${history.version}`;
    if (this.stamp === stamp)
      return;
    this.stamp = stamp;
    const first = Math.max(history.revision - FUTURE_SHOWN, shared) + 1;
    for (const each of [first, history.revision])
      history.load(each);
    this.drawTitle();
    const taken = history.takenBack();
    const { results, asked } = answersIn(history, first, history.revision);
    const drawn = first > shared + 1
      ? [element("p", { class: "muted" }, `${first - shared - 1} earlier`)] : [];
    for (let number = first; number <= history.revision; ++number) {
      const event = history.at(number);
      if (event)
        drawn.push(drawEvent(this, number, event, taken.has(number), results, asked));
    }
    const shown = drawn.filter(Boolean);
    this.list.replaceChildren(...shown.length > 0 ? shown
      : [element("p", { class: "nothing" }, "Nothing has followed.")]);
  }

  drawTitle() {
    const { session } = this.history.key;
    const name = shortened(this.nameOf(session), 60);
    this.title.replaceChildren(this.isOwn ? element("span", {}, name)
      : button(name, () => this.openSession(session), { class: "quiet link", title: session }),
    element("span", { class: "tag" }, this.isOwn ? "here" : "there"),
    element("span", { class: "tag" }, `revision ${this.history.revision}`));
  }
}
