// The line of revisions: a slider, and the ways to go on from a place.

const MARKS_MAX = 240;

class Revisions {
  constructor(root, page) {
    this.page = page;
    this.root = root;
    this.told = element("span", { class: "told" });
    this.back = button("◀", () => this.step(-1), { "aria-label": "One revision back", title: "," });
    this.forth = button("▶", () => this.step(1), { "aria-label": "One revision forward",
      title: "." });
    this.now = button("Now", () => page.goTo(null));
    this.rewind = button("Rewind to here", () => page.rewind());
    this.fork = button("Fork from here", () => page.fork());
    this.marks = shape("svg", { "aria-hidden": "true" });
    this.slider = element("input", { type: "range", min: 0, max: 0, step: 1,
      "aria-label": "Revision", oninput: () => this.slid() });
    root.append(element("div", { class: "row" }, this.told,
      element("span", { class: "steps" }, this.back, this.forth, this.now),
      element("span", { class: "ways" }, this.rewind, this.fork)),
      element("div", { class: "track" }, this.marks, this.slider));
    this.draw = atNextFrame(() => this.drawNow());
    new ResizeObserver(() => this.draw()).observe(this.marks);
  }

  slid() {
    const number = Number(this.slider.value);
    this.page.goTo(number === this.page.history?.revision ? null : number);
  }

  step(by) {
    const { history, at } = this.page;
    if (!history)
      return;
    const to = (at ?? history.revision) + by;
    if (to >= history.oldest - 1)
      this.page.goTo(to >= history.revision ? null : to);
  }

  drawNow() {
    const { history, at } = this.page;
    this.root.hidden = !history;
    if (!history)
      return;
    const { revision, oldest } = history;
    const shown = at ?? revision;
    this.told.replaceChildren("Revision ", element("strong", {}, shown.toLocaleString()), " of ",
      revision.toLocaleString(), at === null ? "" : this.about(at));
    this.slider.min = oldest - 1;
    this.slider.max = revision;
    this.slider.value = shown;
    this.slider.disabled = revision < oldest;
    this.slider.setAttribute("aria-valuetext", `${shown} of ${revision}`);
    this.back.disabled = shown < oldest;
    this.forth.disabled = at === null;
    this.now.disabled = at === null;
    this.rewind.disabled = at === null;
    this.drawMarks(history, shown);
  }

  about(at) {
    const { oldest } = this.page.history;
    const event = this.page.history.at(at);
    if (at > 0 && at === oldest - 1)
      return " · the oldest that is kept";
    return event ? ` · ${shortened(`${event.author}, ${ago(event.timestamp)}`, 60)}`
      : at === 0 ? " · the creation" : "";
  }

  // One mark for each event, or for the events of the same place if they are many.
  drawMarks(history, shown) {
    const width = this.marks.clientWidth;
    if (width === 0)
      return;
    const { revision } = history;
    const inset = 9;
    const across = (number) => inset + (revision === 0 ? 0
      : number / revision * (width - 2 * inset));
    const taken = history.takenBack();
    const drawn = [shape("line", { class: "rail", x1: inset, x2: width - inset, y1: 15, y2: 15 })];
    const stride = Math.max(1, Math.ceil(revision / Math.min(MARKS_MAX, width / 7)));
    const arcs = [];
    for (let number = 1; number <= revision; ++number) {
      const event = history.at(number);
      const count = event ? takesBack(event) : 0;
      if (count > 0 && arcs.length < MARKS_MAX)
        arcs.push(this.arc(across(number), across(number - count - 1), taken.has(number)));
      if (number % stride !== 0 && number !== revision)
        continue;
      const author = event && !taken.has(number) ? colourOf(event.author) : "unknown";
      drawn.push(shape("circle", { class: `dot ${author}${taken.has(number) ? " taken" : ""}`
        + `${number > shown ? " later" : ""}`, cx: across(number), cy: 15,
        r: stride > 1 ? 2 : 3.5 }));
    }
    drawn.push(...arcs, ...this.forks(across));
    this.marks.replaceChildren(...drawn);
  }

  arc(from, to, isTaken) {
    const rise = Math.min(12, 4 + (from - to) / 12);
    return shape("path", { class: `arc${isTaken ? " taken" : ""}`,
      d: `M${from} 15C${from} ${15 - rise} ${to} ${15 - rise} ${to} 15` });
  }

  // The forks of this session that the page knows.
  forks(across) {
    return this.page.forksOf(this.page.place.session).map(({ revision }) =>
      shape("path", { class: "fork", d: `M${across(revision)} 15c4 0 4 10 9 10h10` }));
  }
}
