// The steps of a run, read from its events.
//
// Events of runs with step times tell when their models and tools worked. In other runs only the
// ends of steps are known: the time since the event before it on its branch counts as one step.
// `troupe trace` reads a session in the same way (load/timeline.cpp). Times are in nanoseconds.

// Shorter gaps are not waits, but work of the runtime between two steps.
const WAIT_MIN = 100_000;

function microsecondsOf(event) {
  return Math.round(event.timestamp * 1e6);
}

// Lanes of one fan-out do not wait for each other. A branch has two names for each level: that of
// the fan-out and that of the lane.
function areRelated(left = "", right = "") {
  const ours = left.split(".").filter(Boolean);
  const theirs = right.split(".").filter(Boolean);
  const shared = Math.min(ours.length, theirs.length);
  for (let level = 0; level < shared; ++level)
    if (ours[level] !== theirs[level])
      return level % 2 === 0;
  return true;
}

function toldSteps(event) {
  const told = event.customMetadata?.troupe?.steps;
  return !Array.isArray(told) ? [] : told.filter((each) => ["model", "tool"].includes(each?.kind)
    && Number.isFinite(each.began) && Number.isFinite(each.ended) && each.ended >= each.began);
}

// A step of which only the end is known.
function derivedStep(event) {
  // The runtime asks for permissions, and no model does.
  const called = callsOf(event).map((each) => each.name).filter((name) => name !== CONFIRMATION);
  const answered = responsesOf(event).map((each) => each.name);
  if (answered.length > 0)
    return { kind: "tool", name: answered.join(", ") };
  const isModel = called.length > 0 || event.usageMetadata || event.finishReason
    || event.modelVersion;
  return { kind: isModel ? "model" : "other", name: "",
    detail: called.length > 0 ? `calls ${called.join(", ")}` : null };
}

function hasStep(event) {
  return event.author !== "user" && (partsOf(event).length > 0 || Boolean(event.errorCode));
}

// Reads the steps of one run. `events` are those of the run, in their order, and at least one.
class StepReader {
  constructor(events) {
    this.events = events;
    this.started = events.reduce((least, each) => Math.min(least, microsecondsOf(each)), Infinity);
    this.lanes = new Map();
    this.made = { startedAt: this.started / 1e6, wall: 0, tokens: 0, modelCalls: 0, toolCalls: 0,
      areTold: false, error: events.at(-1).errorCode ?? null };
  }

  read() {
    this.events.forEach((event, index) => this.add(event, index));
    for (const lane of this.lanes.values())
      lane.steps.sort((left, right) => left.start - right.start);
    return { ...this.made, lanes: [...this.lanes.values()] };
  }

  since(microseconds) {
    return Math.max(microseconds - this.started, 0) * 1000;
  }

  // The end of the event that this one had to wait for.
  readyFor(index) {
    const { branch } = this.events[index];
    for (let before = index - 1; before >= 0; --before)
      if (areRelated(this.events[before].branch, branch))
        return this.since(microsecondsOf(this.events[before]));
    return 0;
  }

  add(event, index) {
    const end = this.since(microsecondsOf(event));
    this.made.wall = Math.max(this.made.wall, end);
    this.made.tokens += Number(event.usageMetadata?.totalTokenCount ?? 0);
    if (!hasStep(event))
      return;
    const ready = this.readyFor(index);
    const steps = this.stepsOf(event, ready, end);
    const begin = Math.min(...steps.map((each) => each.start));
    if (begin - ready >= WAIT_MIN)
      steps.push({ kind: "wait", name: "", start: ready, end: begin, event: event.id });
    this.laneOf(event).steps.push(...steps);
  }

  stepsOf(event, ready, end) {
    const derived = derivedStep(event);
    const told = toldSteps(event).map(({ kind, name, began, ended }) => ({ kind, name,
      start: this.since(began), end: this.since(ended),
      detail: kind === "model" ? derived.detail : null }));
    this.made.areTold ||= told.length > 0;
    const steps = told.length > 0 ? told : [{ ...derived, start: Math.min(ready, end), end }];
    for (const each of steps) {
      this.made.wall = Math.max(this.made.wall, each.end);
      this.made.modelCalls += each.kind === "model" ? 1 : 0;
      this.made.toolCalls += each.kind === "tool" ? 1 : 0;
      Object.assign(each, { event: event.id, error: event.errorCode ?? null });
    }
    return steps;
  }

  laneOf(event) {
    const key = `${event.branch ?? ""}\n${event.author}`;
    if (!this.lanes.has(key))
      this.lanes.set(key, { agent: event.author, branch: event.branch ?? "", steps: [] });
    return this.lanes.get(key);
  }
}
