// The workflows of a run as graphs, with the states of their nodes. The server computes the states
// from the events, and is asked again when the session has more of them.

const NODE = { width: 168, height: 46, across: 76, down: 18 };
const START = 22; // Width and height of the point where a workflow begins.
const NODES_MAX = 300;

const STATE_WORDS = { unreached: "not reached" };
const OVER = ["done", "failed", "cancelled"];

class WorkflowGraphs {
  constructor(page, run) {
    this.page = page;
    this.run = run;
    this.graphs = new Map(); // By path.
    this.node = element("div", { class: "workflows" });
    this.refresh = later(120, () => this.read());
  }

  async read() {
    const { history, at } = this.page;
    if (!history || !this.node.isConnected)
      return;
    try {
      const { workflows } = await this.page.server.get(`${sessionPath(history.key)}/workflows`
        + `?invocation=${encodeURIComponent(this.run)}${at === null ? "" : `&at=${at}`}`);
      if (history === this.page.history)
        this.show(workflows);
    } catch (error) {
      // Without an answer, the next event asks again.
      if (error instanceof Refusal)
        setChildren(this.node, [element("p", { class: "bad" }, error.message)]);
    }
  }

  // Draws again after the list of runs has changed.
  noteRuns() {
    if (this.workflows && this.underWay !== this.page.underWay)
      this.show(this.workflows);
  }

  show(workflows) {
    this.workflows = workflows;
    this.underWay = this.page.underWay;
    const drawn = workflows.map((each) => {
      const key = `${each.run}/${each.path}`;
      if (!this.graphs.has(key))
        this.graphs.set(key, new WorkflowGraph());
      const graph = this.graphs.get(key);
      graph.show(each, this.underWay);
      return graph.node;
    });
    setChildren(this.node, drawn);
  }
}

class WorkflowGraph {
  constructor() {
    this.head = element("p", { class: "workflow-head" });
    this.picture = element("div", { class: "graph" });
    this.notes = element("div", {});
    this.node = element("div", { class: "workflow" }, this.head, this.picture, this.notes);
    this.shown = null;
  }

  // `underWay` has the runs of this server that go on; null if they are not known yet.
  show(workflow, underWay) {
    const hasStopped = workflow.state === "running" && underWay !== null
      && !underWay.has(workflow.invocations.at(-1));
    const text = JSON.stringify([workflow, hasStopped]);
    if (text === this.shown)
      return;
    this.shown = text;
    this.node.dataset.state = workflow.state;
    this.head.replaceChildren(element("strong", {}, workflow.path), " ",
      element("span", { class: `state ${workflow.state}` }, stateWords(workflow.state)),
      element("span", { class: "muted" }, countsOf(workflow)));
    this.picture.replaceChildren(workflow.nodes.length > NODES_MAX
      ? element("p", { class: "muted" }, `${workflow.nodes.length} nodes are too many to draw.`)
      : drawnGraph(workflow));
    this.notes.replaceChildren(...notesOf(workflow), ...hasStopped
      ? [element("p", { class: "muted" }, "This server does not run this workflow: its run was stopped, or another server runs it.")] : []);
  }
}

function stateWords(state) {
  return STATE_WORDS[state] ?? state;
}

function visitOf(workflow, node) {
  return node.visit === null ? null : workflow.visits[node.visit];
}

function nodeWords(workflow, node) {
  const visit = visitOf(workflow, node);
  const state = visit?.due ? `${stateWords(node.state)} until ${timeOf(visit.due)}`
    : stateWords(node.state);
  return [state, visit?.number > 1 ? `visit ${visit.number}` : null,
    visit?.attempt > 1 ? `attempt ${visit.attempt}` : null].filter(Boolean).join(", ");
}

function countsOf(workflow) {
  const counts = new Map();
  for (const { state } of workflow.nodes)
    counts.set(state, (counts.get(state) ?? 0) + 1);
  return ` ${[...counts].map(([state, count]) => `${count} ${stateWords(state)}`).join(", ")}`;
}

// The reasons of failures, and the newest failed attempts.
function notesOf(workflow) {
  const failures = workflow.visits.flatMap((visit) => visit.failures.map((each) => ({
    at: each.at, text: `${visit.node}@${visit.number}, attempt ${each.attempt}: ${each.code}: `
      + each.message })));
  failures.sort((left, right) => right.at - left.at);
  const lines = [workflow.conflict, workflow.failure,
    ...failures.slice(0, 5).map((each) => each.text)];
  return lines.filter(Boolean)
    .map((each) => element("p", { class: "bad" }, shortened(each, 400)));
}

// -- the picture ----

// Returns the edges without those that lead back, which begin at a node on the way.
function forwardEdges(names, leaves) {
  const forward = [];
  const seen = new Map(); // True while the edges of a node are followed.
  for (const first of names) {
    const open = seen.has(first) ? [] : [[first, 0]];
    if (open.length > 0)
      seen.set(first, true);
    while (open.length > 0) {
      const top = open.at(-1);
      const edge = (leaves.get(top[0]) ?? [])[top[1]++];
      if (!edge) {
        seen.set(top[0], false);
        open.pop();
      } else if (seen.get(edge.to) !== true) {
        forward.push(edge);
        if (!seen.has(edge.to)) {
          seen.set(edge.to, true);
          open.push([edge.to, 0]);
        }
      }
    }
  }
  return forward;
}

// Returns columns of names: each node stands behind those that lead to it.
function columnsOf(names, edges) {
  const leaves = new Map();
  for (const each of edges)
    leaves.set(each.from, [...leaves.get(each.from) ?? [], each]);
  const forward = forwardEdges(names, leaves);
  const before = new Map(names.map((each) => [each, 0]));
  const after = new Map();
  for (const each of forward) {
    before.set(each.to, before.get(each.to) + 1);
    after.set(each.from, [...after.get(each.from) ?? [], each.to]);
  }
  const places = new Map(names.map((each) => [each, 0]));
  const open = names.filter((each) => before.get(each) === 0);
  for (let next = 0; next < open.length; ++next)
    for (const to of after.get(open[next]) ?? []) {
      places.set(to, Math.max(places.get(to), places.get(open[next]) + 1));
      before.set(to, before.get(to) - 1);
      if (before.get(to) === 0)
        open.push(to);
    }
  const columns = [];
  for (const each of open)
    (columns[places.get(each)] ??= []).push(each);
  return columns;
}

// Returns the box of each node.
function boxesOf(columns) {
  const rows = Math.max(...columns.map((each) => each.length));
  const boxes = new Map();
  let left = 1;
  for (const column of columns) {
    const isStart = column.length === 1 && column[0] === "START";
    const width = isStart ? START : NODE.width;
    const height = isStart ? START : NODE.height;
    const top = (rows - column.length) * (NODE.height + NODE.down) / 2;
    column.forEach((name, row) => boxes.set(name, { x: left, width, height,
      y: 1 + top + row * (NODE.height + NODE.down) + (NODE.height - height) / 2 }));
    left += width + NODE.across;
  }
  return { boxes, width: left - NODE.across + 1, height: rows * (NODE.height + NODE.down) };
}

function drawnGraph(workflow) {
  const edges = workflow.edges.filter((each, index) => workflow.edges.findIndex(
    (other) => other.from === each.from && other.to === each.to) === index);
  const names = [...edges.length > 0 ? ["START"] : [], ...workflow.nodes.map((each) => each.name)];
  const { boxes, width, height } = boxesOf(columnsOf(names, edges));
  // Edges that lead back run below the nodes.
  const isBack = (each) => boxes.get(each.to).x <= boxes.get(each.from).x;
  const whole = height + (edges.some(isBack) ? 34 : 0);
  const words = workflow.nodes.map((each) => `${each.name}: ${nodeWords(workflow, each)}`);
  return shape("svg", { width, height: whole, viewBox: `0 0 ${width} ${whole}`, role: "img",
    "aria-label": visible(`${workflow.path}. ${words.join("; ")}`) },
  ...workflow.edges.map((each) => drawnEdge(workflow, each, boxes, isBack(each), height)),
  names[0] === "START" ? shape("circle", { class: "start", cx: 1 + START / 2,
    cy: boxes.get("START").y + START / 2, r: START / 2 - 1 }) : null,
  ...workflow.nodes.map((each) => drawnNode(workflow, each, boxes.get(each.name))));
}

function drawnNode(workflow, node, box) {
  const visit = visitOf(workflow, node);
  const words = nodeWords(workflow, node);
  const took = visit?.began && visit.ended && OVER.includes(visit.state)
    ? durationOf(visit.ended - visit.began) : null;
  return shape("g", { class: `node ${node.kind || "agent"} ${node.state}`,
    "data-node": visible(node.name) },
  shape("title", {}, [`${node.name}: ${words}`, took, visit?.failures.at(-1)?.message]
    .filter(Boolean).join("\n")),
  shape("rect", { x: box.x, y: box.y, width: box.width, height: box.height,
    rx: node.kind === "join" ? 0 : 6 }),
  shape("text", { x: box.x + box.width / 2, y: box.y + 19 }, shortened(node.name, 18)),
  shape("text", { class: "about", x: box.x + box.width / 2, y: box.y + 36 },
    shortened(took ? `${words}, ${took}` : words, 28)));
}

function drawnEdge(workflow, edge, boxes, leadsBack, bottom) {
  const from = boxes.get(edge.from);
  const to = boxes.get(edge.to);
  const y = from.y + from.height / 2;
  const end = to.y + to.height / 2;
  const path = leadsBack
    ? `M${from.x + from.width / 2} ${from.y + from.height}V${bottom + 14}`
      + `H${to.x + to.width / 2}V${to.y + to.height + 5}`
    : `M${from.x + from.width} ${y}C${from.x + from.width + NODE.across / 2} ${y} `
      + `${to.x - NODE.across / 2} ${end} ${to.x - 5} ${end}`;
  const head = leadsBack ? `M${to.x + to.width / 2 - 4} ${to.y + to.height + 7}l4 -6l4 6z`
    : `M${to.x - 7} ${end - 4}l6 4l-6 4z`;
  const label = edge.otherwise ? "otherwise" : edge.routes.map(String).join(", ");
  const isTaken = wasTaken(workflow, edge);
  return shape("g", { class: isTaken ? "edge taken" : "edge" },
    shape("path", { class: "way", d: path }), shape("path", { class: "head", d: head }),
    label ? shape("text", { x: leadsBack ? (from.x + to.x + to.width) / 2 : to.x - NODE.across / 2,
      y: leadsBack ? bottom + 28 : (y + end) / 2 - 5 }, shortened(label, 18)) : null);
}

// Returns true if a visit has followed the edge.
function wasTaken(workflow, edge) {
  if (edge.from === "START")
    return true;
  const beside = workflow.edges.filter((each) => each.from === edge.from);
  const fits = (visit, each) => each.routes.some((route) => visit.routes.includes(route));
  return workflow.visits.some((visit) => visit.node === edge.from && visit.state === "done"
    && (edge.otherwise ? !beside.some((each) => fits(visit, each))
      : edge.routes.length === 0 || fits(visit, edge)));
}
