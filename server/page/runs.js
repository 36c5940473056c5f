// The runs of a session, newest first, each as graphs of its workflows and as a timeline of lanes
// and steps. Above them are the unfinished runs of the app.

import { timelineView } from "./charts.js";

const EARLIER = 1000;

class RunsPane {
  constructor(root, page) {
    this.page = page;
    this.root = root;
    this.drawn = new Map(); // The panels of runs, by their invocation.
    this.graphs = new Map(); // The graphs of their workflows.
    this.unfinished = new UnfinishedRuns(page);
    this.earlier = button("Show earlier runs", () => this.loadEarlier(), { class: "earlier" });
    this.none = element("p", { class: "nothing" }, "This session has no runs yet.");
    this.box = element("div", { class: "scroller runs", tabindex: "0" });
    root.append(this.box);
    this.draw = atNextFrame(() => this.drawNow());
  }

  open() {
    this.drawn.clear();
    this.graphs.clear();
    setChildren(this.box, [this.unfinished.node]);
    this.draw();
  }

  async loadEarlier() {
    const { history } = this.page;
    const first = history.firstOfTail;
    this.earlier.disabled = true;
    await history.loadRange(Math.max(first - EARLIER, history.oldest), first - 1);
    this.earlier.disabled = false;
    this.draw();
  }

  drawNow() {
    const { history, at } = this.page;
    if (document.body.dataset.view !== "runs")
      return;
    this.unfinished.draw();
    if (!history)
      return setChildren(this.box, [this.unfinished.node]);
    const runs = runsOf(history, at ?? history.revision);
    const isWhole = history.firstOfTail <= history.oldest;
    // The events before the first run in sight may be a part of it.
    if (!isWhole && runs.length > 1)
      runs.shift();
    for (const each of this.graphs.values())
      each.noteRuns();
    const panels = runs.map((each, index) => this.panel(each, index === runs.length - 1));
    setChildren(this.box, [this.unfinished.node, ...panels.reverse(),
      runs.length === 0 ? this.none : null, isWhole ? null : this.earlier].filter(Boolean));
  }

  // A run is drawn again only if it has more events.
  panel(run, isNewest) {
    const stamp = `${run.events.length} ${run.isTaken}`;
    const kept = this.drawn.get(run.id);
    if (kept?.stamp === stamp)
      return kept.node;
    const node = this.made(run, kept ? kept.node.open : isNewest);
    this.drawn.set(run.id, { stamp, node });
    return node;
  }

  made(run, isOpen) {
    const steps = new StepReader(run.events).read();
    const made = element("details", { class: `run${run.isTaken ? " taken-back" : ""}`,
      "data-run": run.id }, element("summary", {}, element("strong", {}, titleOf(run)),
      element("span", { class: "muted" }, factsOf(run, steps).join(" · ")),
      steps.error ? element("span", { class: "bad" }, steps.error) : null));
    const graphs = run.events.some(tellsOfWorkflow) ? this.graphsOf(run) : null;
    made.addEventListener("toggle", () => {
      made.append(element("div", { class: "drawn" }, graphs?.node ?? [],
        timelineView(steps, (step) => this.pick(step))));
      graphs?.refresh();
    }, { once: true });
    made.open = isOpen;
    return made;
  }

  // The graphs stay while the panel is drawn again.
  graphsOf(run) {
    if (!this.graphs.has(run.id))
      this.graphs.set(run.id, new WorkflowGraphs(this.page, run.id));
    return this.graphs.get(run.id);
  }

  pick(step) {
    const number = this.page.history.numberOf(step.event);
    if (number !== null)
      this.page.showEvent(number);
  }
}

// Returns the runs up to `last` whose events are here, oldest first.
function runsOf(history, last) {
  const runs = new Map();
  const taken = history.takenBack(last);
  for (let number = history.firstOfTail; number <= last; ++number) {
    const event = history.at(number);
    if (!event?.invocationId || takesBack(event) > 0 || event.actions?.agentState?.forkedFrom)
      continue;
    if (!runs.has(event.invocationId))
      runs.set(event.invocationId, { id: event.invocationId, first: number, events: [],
        isTaken: true });
    const run = runs.get(event.invocationId);
    run.events.push(event);
    run.isTaken &&= taken.has(number);
  }
  // A change of the state alone is no run.
  return [...runs.values()].filter((each) => each.events.some(
    (event) => hasStep(event) || tellsOfWorkflow(event)));
}

function tellsOfWorkflow(event) {
  return Boolean(event.customMetadata?.troupe?.workflow);
}

function titleOf(run) {
  const message = run.events.find((each) => each.author === "user" && wordsOf(each));
  return message ? shortened(wordsOf(message), 80) : `from event ${run.first}`;
}

function factsOf(run, steps) {
  const counted = (count, name) => (count === 1 ? `1 ${name}` : `${count} ${name}s`);
  return [timeOf(steps.startedAt), durationOf(steps.wall / 1e9), counted(steps.lanes.length, "lane"),
    steps.areTold ? counted(steps.modelCalls, "model call") : null,
    steps.areTold ? counted(steps.toolCalls, "tool call") : null,
    steps.tokens > 0 ? `${steps.tokens.toLocaleString()} tokens` : null,
    run.isTaken ? "taken back" : null].filter(Boolean);
}
