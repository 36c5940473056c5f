// All events of a session, one a line. Only the lines in sight are elements, so their number does
// not matter.

const LINE = 32;

class EventList {
  constructor(root, page) {
    this.page = page;
    this.chosen = null;
    this.isAtEnd = true;
    this.lines = element("div", { class: "lines" });
    this.box = element("div", { class: "scroller", role: "listbox", tabindex: "0",
      "aria-label": "Events", onscroll: () => this.scrolled(), onkeydown: (event) => this.key(event) },
      this.lines);
    this.details = element("div", { class: "details", hidden: true });
    root.append(this.box, this.details);
    this.draw = atNextFrame(() => this.drawNow());
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  open() {
    this.isAtEnd = true;
    this.choose(null);
    this.draw();
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.box;
    this.isAtEnd = scrollTop + clientHeight >= scrollHeight - LINE / 2;
    this.draw();
  }

  drawNow() {
    const { history } = this.page;
    if (!history || this.box.clientHeight === 0)
      return;
    this.lines.style.height = `${history.revision * LINE}px`;
    if (this.isAtEnd)
      this.box.scrollTop = this.box.scrollHeight;
    const first = Math.max(Math.floor(this.box.scrollTop / LINE) - 4, 0) + 1;
    const count = Math.ceil(this.box.clientHeight / LINE) + 8;
    const last = Math.min(first + count - 1, history.revision);
    for (const number of [first, last])
      history.load(number);
    const taken = history.takenBack();
    const drawn = [];
    for (let number = first; number <= last; ++number)
      drawn.push(this.line(number, history.at(number), taken.has(number)));
    this.lines.replaceChildren(...drawn);
    if (history.revision === 0)
      this.lines.replaceChildren(element("p", { class: "nothing" }, "No events yet."));
    const active = this.chosen >= first && this.chosen <= last ? `event-${this.chosen}` : null;
    if (active)
      this.box.setAttribute("aria-activedescendant", active);
    else
      this.box.removeAttribute("aria-activedescendant");
  }

  line(number, event, isTaken) {
    const at = this.page.at;
    const made = element("div", {
      class: `line${isTaken ? " taken-back" : ""}${number === this.chosen ? " on" : ""}`
        + `${at !== null && number > at ? " later" : ""}`,
      id: `event-${number}`, role: "option", "aria-selected": String(number === this.chosen),
      "aria-posinset": number, "aria-setsize": this.page.history.revision,
      onclick: () => this.choose(number) },
      element("span", { class: "number" }, number));
    if (event)
      made.append(element("span", { class: `who ${colourOf(event.author)}` }, event.author),
        element("span", { class: "summary" }, shortened(summaryOf(event), 300)),
        element("time", {}, timeOf(event.timestamp)));
    else if (number < this.page.history.oldest)
      made.append(element("span", { class: "summary" }, "deleted"));
    made.style.transform = `translateY(${(number - 1) * LINE}px)`;
    return made;
  }

  async choose(number) {
    this.chosen = number;
    this.draw();
    this.details.hidden = number === null;
    if (number === null)
      return;
    const { history } = this.page;
    await history.load(number);
    if (this.chosen !== number || history !== this.page.history)
      return;
    const event = history.at(number);
    this.details.replaceChildren(
      element("header", {}, element("h2", {}, `Event ${number}`),
        button("Show revision", () => this.page.goTo(number)),
        button("Copy", () => navigator.clipboard?.writeText(JSON.stringify(event, null, 2))),
        button("✕", () => this.choose(null), { "aria-label": "Close" })),
      element("pre", { tabindex: "0" }, JSON.stringify(event ?? null, null, 2)));
    this.draw();
  }

  show(number) {
    this.isAtEnd = false;
    this.choose(number);
    const top = (number - 1) * LINE;
    if (top < this.box.scrollTop)
      this.box.scrollTop = top;
    else if (top + LINE > this.box.scrollTop + this.box.clientHeight)
      this.box.scrollTop = top + LINE - this.box.clientHeight;
    this.draw();
  }

  key(event) {
    const { revision } = this.page.history ?? { revision: 0 };
    const screen = Math.max(Math.floor(this.box.clientHeight / LINE) - 1, 1);
    const from = this.chosen ?? revision + 1;
    const to = { ArrowUp: from - 1, ArrowDown: from + 1, PageUp: from - screen,
      PageDown: from + screen, Home: 1, End: revision }[event.key];
    if (to === undefined || revision === 0 || event.altKey || event.ctrlKey || event.metaKey)
      return;
    event.preventDefault();
    this.show(Math.min(Math.max(to, 1), revision));
  }
}
