// The report of one session: the steps of its agents in each invocation, with their times.

function callsText(count) {
  return isNumber(count) ? formatCount(count) : "not recorded";
}

function invocationFigures(timeline) {
  const share = timeline.wall > 0 && isNumber(timeline.work) ? timeline.work / timeline.wall : null;
  return figuresRow([
    { name: "wall time", value: formatTime(timeline.wall) },
    { name: "work", value: formatTime(timeline.work), aside: "of all lanes, without waiting" },
    { name: "longest lane", value: formatTime(timeline.longestLane),
      aside: timeline.wall > 0 && isNumber(timeline.longestLane)
        ? `${formatShare(timeline.longestLane / timeline.wall)} of the wall time` : null },
    { name: "parallelism", aside: "work per wall time", value: formatNumber(share) },
    { name: "model calls", value: callsText(timeline.modelCalls) },
    { name: "tool calls", value: callsText(timeline.toolCalls) },
  ]);
}

function momentOf(seconds) {
  return isNumber(seconds) ? formatMoment(seconds * 1000) : NONE;
}

function invocationParts(timeline) {
  return [invocationFigures(timeline),
    timeline.error ? element("p", { class: "text error" }, textOf(timeline.error)) : null,
    element("div", {}, timelineView(timeline)),
    ...(timeline.workflows ?? []).map((each) => element("div", {}, visitTable(each)))];
}

// Times of workflows are in seconds.
function visitTable(workflow) {
  const failure = (visit) => visit.failures.map((each) => `attempt ${each.attempt}: `
    + `${each.code}: ${each.message}`).join("; ");
  const took = (visit) => (isNumber(visit.began) && isNumber(visit.ended)
    ? formatTime((visit.ended - visit.began) * 1e9) : "");
  return table([
    { name: `${workflow.path}, ${workflow.state}`, head: true, words: true,
      text: (visit) => `${visit.node}@${visit.number}` },
    { name: "state", mark: (visit) => (visit.state === "failed" ? "bad" : ""),
      text: (visit) => visit.state },
    { name: "attempts", number: true, text: (visit) => visit.attempt },
    { name: "started", text: (visit) => momentOf(visit.began) },
    { name: "took", number: true, text: took },
    { name: "routes", words: true, text: (visit) => visit.routes.map(String).join(", ") },
    { name: "failures", words: true, mark: (visit) => (visit.failures.length > 0 ? "bad" : ""),
      text: (visit) => shortened(failure(visit), 300) },
  ], workflow.visits, { label: `Visits of ${workflow.path}` });
}

// Of many invocations, all but the first few are drawn when they are opened.
function invocationPanel(timeline, number, isFolded) {
  const title = `Invocation ${number}`;
  const aside = [timeline.invocation, momentOf(timeline.startedAt),
    timeline.takenBack ? "taken back by a rewind" : null].filter(Boolean).join(", ");
  const options = { class: timeline.takenBack ? "wide long taken-back" : "wide long" };
  if (!isFolded)
    return panel(title, aside, () => element("div", { class: "stack" },
      invocationParts(timeline)), options);
  const words = `${title}: ${formatTime(timeline.wall)}, ${aside}${
    timeline.error ? ", failed" : ""}`;
  const made = folded(words, () => element("div", { class: "stack" }, invocationParts(timeline)));
  made.classList.add("panel", ...options.class.split(" "));
  return made;
}

function invocationTable(invocations) {
  return table([
    { name: "", head: true, number: true, text: (each) => invocations.indexOf(each) + 1 },
    { name: "started", text: (each) => momentOf(each.startedAt) },
    { name: "wall", number: true, text: (each) => formatTime(each.wall) },
    { name: "work", number: true, text: (each) => formatTime(each.work) },
    { name: "longest lane", number: true, text: (each) => formatTime(each.longestLane) },
    { name: "lanes", number: true, text: (each) => formatCount(each.lanes?.length ?? 0) },
    { name: "model calls", number: true, text: (each) => callsText(each.modelCalls) },
    { name: "tool calls", number: true, text: (each) => callsText(each.toolCalls) },
    { name: "invocation", words: true, text: (each) => each.invocation ?? NONE },
    ...(invocations.some((each) => each.takenBack)
      ? [{ name: "rewound", text: (each) => (each.takenBack ? "taken back" : "") }] : []),
    { name: "error", words: true, mark: (each) => (each.error ? "bad" : ""),
      text: (each) => (each.error ? shortened(textOf(each.error), 160) : "") },
  ], invocations, { label: "Invocations" });
}

function drawTraceReport(page, report) {
  const session = report.session ?? {};
  const invocations = report.invocations ?? [];
  const failed = invocations.filter((each) => each.error).length;
  const gone = invocations.filter((each) => each.takenBack).length;
  page.append(pageHead(document.title, [`app ${session.app ?? NONE}`,
    `user ${session.user ?? NONE}`, `session ${session.id ?? NONE}`,
    many(invocations.length, "invocation"), failed > 0 ? `${failed} failed` : null,
    gone > 0 ? `${gone} taken back` : null]));
  const grid = element("div", { class: "grid" });
  if (invocations.length === 0)
    grid.append(panel("Invocations", null,
      () => nothing("This session has no invocation yet."), { class: "wide" }));
  if (invocations.length > 1)
    grid.append(panel("Invocations", null, () => invocationTable(invocations),
      { class: "wide" }));
  invocations.forEach((timeline, index) => grid.append(
    invocationPanel(timeline, index + 1, index >= 6)));
  page.append(grid);
}
