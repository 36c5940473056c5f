// The runs of the app that have begun and not ended, of all processes of the store. A run whose
// process has ended can be recovered or given up.

const UNFINISHED_PERIOD = 3; // Seconds between two questions.
const UNFINISHED_MAX = 50;

class UnfinishedRuns {
  constructor(page) {
    this.page = page;
    this.app = null; // The app whose runs are here.
    this.runs = [];
    this.rows = new Map(); // By the id of the run.
    this.title = element("h2", {});
    this.list = element("ul", {});
    this.more = element("p", { class: "muted", hidden: true },
      `These are the oldest ${UNFINISHED_MAX}.`);
    this.failure = element("p", { class: "bad", hidden: true, role: "alert" });
    this.node = element("section", { class: "unfinished", "aria-label": "Unfinished runs",
      hidden: true }, this.title, this.list, this.more, this.failure);
  }

  get isShown() {
    return document.body.dataset.view === "runs";
  }

  // Asks as long as the view is in sight.
  draw() {
    const { app } = this.page.place;
    const isOther = app !== this.app;
    if (isOther) {
      this.app = app;
      this.take({ runs: [], hasMore: false });
    }
    this.show();
    if (!this.isShown || !app)
      return;
    if (!this.isAsking) {
      this.isAsking = true;
      this.read().finally(() => setTimeout(() => {
        this.isAsking = false;
        this.draw();
      }, UNFINISHED_PERIOD * 1000));
    } else if (isOther) {
      this.read();
    }
  }

  async read() {
    const { app } = this;
    if (document.hidden)
      return;
    try {
      const told = await this.page.server.get(
        `/apps/${encodeURIComponent(app)}/unfinished-runs?limit=${UNFINISHED_MAX}`);
      if (app !== this.app)
        return;
      this.take(told);
    } catch (error) {
      if (app !== this.app)
        return;
      this.failure.textContent = error.message;
      this.failure.hidden = false;
    }
    this.show();
  }

  take({ runs, hasMore }) {
    this.runs = runs;
    this.more.hidden = !hasMore;
    this.failure.hidden = true;
    const kept = new Set(runs.map((each) => each.run));
    for (const id of this.rows.keys())
      if (!kept.has(id))
        this.rows.delete(id);
  }

  // The runs of this session that this server has are the panels below.
  show() {
    const { user, session } = this.page.place;
    const shown = this.runs.filter(
      (each) => !each.active || each.user !== user || each.session !== session);
    this.title.textContent = shown.length === 1 ? "1 unfinished run"
      : `${shown.length} unfinished runs`;
    setChildren(this.list, shown.map((each) => this.row(each)));
    this.node.hidden = shown.length === 0 && this.failure.hidden;
  }

  // A row stays while its run is in the list, so its buttons keep the focus.
  row(run) {
    if (!this.rows.has(run.run))
      this.rows.set(run.run, new UnfinishedRow(this, run));
    const row = this.rows.get(run.run);
    row.show(run);
    return row.node;
  }

  // The page knows the names of sessions of the shown user alone.
  nameOf(run) {
    return run.user === this.page.place.user ? this.page.nameOf(run.session) : run.session;
  }

  async recover(run, choice = {}) {
    try {
      await this.page.server.post(`${unfinishedPath(run)}/recover`, choice);
      notify(`The run of ${run.agent} goes on.`);
    } catch (error) {
      if (error.code !== "conflict" || !error.message.includes("allow_lost_temp"))
        notify(error.message, true);
      else if (await askConsent("Recover without these keys?", error.message, "Recover"))
        return this.recover(run, { allowLostTemp: true });
    }
    return this.looked();
  }

  async giveUp(run) {
    const agreed = await askConsent("Give up this run?", `The run of ${run.agent} cannot be `
      + "recovered afterwards. Its events and its state stay.", "Give up");
    if (!agreed)
      return;
    try {
      await this.page.server.fetch("DELETE", unfinishedPath(run));
      notify(`The run of ${run.agent} is given up.`);
    } catch (error) {
      notify(error.message, true);
    }
    await this.looked();
  }

  looked() {
    this.page.refresh();
    return this.read();
  }
}

class UnfinishedRow {
  constructor(list, run) {
    this.list = list;
    this.link = element("a", {});
    this.facts = element("span", { class: "muted" });
    this.isPressed = false;
    this.buttons = element("div", { class: "row" },
      button("Recover", () => this.press(() => list.recover(this.run))),
      button("Give up", () => this.press(() => list.giveUp(this.run))));
    this.node = element("li", { "data-unfinished": run.run },
      element("strong", { title: `run ${run.run}` }, shortened(run.agent, 40)), this.link,
      this.facts, this.buttons);
  }

  show(run) {
    this.run = run;
    const { user, session } = this.list.page.place;
    const isOn = run.user === user && run.session === session;
    this.link.textContent = visible(`${shortened(run.user, 40)} / `
      + shortened(this.list.nameOf(run), 60));
    this.link.setAttribute("href", addressOf(run));
    if (isOn)
      this.link.setAttribute("aria-current", "true");
    else
      this.link.removeAttribute("aria-current");
    this.facts.textContent = `${begunText(run.began)} · ${holderText(run)}`;
    this.facts.title = visible(`process ${run.holder}`);
    this.buttons.hidden = !run.free;
  }

  // A press before the answer to another one does nothing. The buttons stay enabled, so the focus
  // comes back to them after a question.
  async press(act) {
    if (this.isPressed)
      return;
    this.isPressed = true;
    this.node.setAttribute("aria-busy", "true");
    try {
      await act();
    } finally {
      this.isPressed = false;
      this.node.removeAttribute("aria-busy");
    }
  }
}

function unfinishedPath(run) {
  return `${sessionPath(run)}/runs/${encodeURIComponent(run.run)}`;
}

function addressOf({ app, user, session }) {
  return `#${new URLSearchParams({ app, user, session })}`;
}

function begunText(seconds) {
  const passed = ago(seconds);
  if (passed === "now")
    return "began just now";
  return /^\d+ [a-z]+$/u.test(passed) ? `began ${passed} ago` : `began on ${passed}`;
}

function holderText({ active, own, free, silentMs }) {
  if (active)
    return "this server runs it";
  if (own)
    return "this server has it, and does not run it";
  if (silentMs === null)
    return "its process has ended or has left it";
  const silent = durationOf(silentMs / 1000);
  return free ? `its process has been silent for ${silent}`
    : `its process was heard of ${silent} ago`;
}
