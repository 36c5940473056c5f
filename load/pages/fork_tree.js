// The tree of an experiment that begins at a session: the session up to its revision, and from
// there a branch for each variant, with its runs.

const TREE_TOP = 34;

function treeLayout(variants, width) {
  const above = width < 560;
  const fork = above ? 74 : Math.min(Math.round(width * 0.3), 330);
  const words = above ? 0 : Math.min(Math.ceil(largest(variants.map(
    (variant) => textWidth(visible(named(variant.name)))))) + 2, Math.round((width - fork) * 0.35));
  const pitch = above ? 46 : 32;
  const rows = variants.map((_, index) => TREE_TOP + (index + 1) * pitch + (above ? 4 : 0));
  return { above, fork, words, rows, left: 10, right: width - 12, top: TREE_TOP,
    first: fork + (above ? 22 : words + 44), height: TREE_TOP + variants.length * pitch + 22 };
}

function pastRows(said) {
  return [["revision", formatCount(said.revision)], ["author", shortened(named(said.author), 60)],
    ["text", shortened(textOf(said.text), 200)]];
}

// Draws the session's newest messages before the fork; dashes stand for older events.
function drawTrunk(svg, from, layout, add) {
  const past = from.past ?? [];
  const room = layout.fork - layout.left;
  const at = (index) => layout.left + room * (index + 1) / (past.length + 1);
  const older = past.length > 0 ? past[0].revision > 1 : from.revision > 0;
  const solid = past.length > 0 ? at(0) : layout.fork;
  svg.append(
    shape("text", { x: 2, y: 15 },
      fitted(visible(`session ${named(from.session)}`), layout.right - 4)),
    shape("path", { class: "trunk", "stroke-dasharray": older ? "3 4" : null,
      d: `M${layout.left} ${layout.top}H${solid}` }),
    shape("path", { class: "trunk", d: `M${solid} ${layout.top}H${layout.fork}` }));
  past.forEach((said, index) => {
    svg.append(shape("circle", { class: "dot cq", cx: at(index), cy: layout.top, r: 4 }));
    add({ heading: `session ${shortened(named(from.session), 60)}`, rows: pastRows(said) },
      [at(index), layout.top]);
  });
}

function drawFork(svg, from, layout, add) {
  svg.append(
    shape("path", { class: "trunk", d: `M${layout.fork} ${layout.top}V${layout.rows[
      layout.rows.length - 1] - 8}` }),
    shape("circle", { class: "dot ring cq", cx: layout.fork, cy: layout.top, r: 5 }),
    shape("text", { class: "quiet", x: layout.fork + 12, y: layout.top + 4 },
      fitted(`revision ${formatCount(from.revision)}`, layout.right - layout.fork - 12)));
  add({ heading: `revision ${formatCount(from.revision)}`, rows: [
    ["session", shortened(named(from.session), 60)], ["app", shortened(named(from.app), 60)],
    ["user", shortened(named(from.user), 60)]] }, [layout.fork, layout.top]);
}

function branchRows(run) {
  const keys = Object.keys(run.changes ?? {});
  return [...runRows(run),
    ...(run.output ? [["answer", shortened(textOf(run.output), 160)]] : []),
    ...(keys.length > 0 ? [["changed", shortened(keys.join(", "), 160)]] : [])];
}

// Runs keep their distance until they no longer fit; then they lie closer together.
function drawBranch(svg, variant, runs, layout, { index, color, choose, add }) {
  const y = layout.rows[index];
  const step = Math.min((layout.right - layout.first) / Math.max(runs.length, 1), 20);
  const end = layout.first + step * Math.max(runs.length - 1, 0);
  const curve = `M${layout.fork} ${y - 8}Q${layout.fork} ${y} ${layout.fork + 8} ${y}`;
  svg.append(shape("path", { class: `line ${color}`, d: layout.above ? `${curve}H${end}`
    : `${curve}H${layout.fork + 16}M${layout.first - 12} ${y}H${end}` }));
  svg.append(layout.above
    ? shape("text", { x: layout.fork + 14, y: y - 10 },
      fitted(visible(named(variant.name)), layout.right - layout.fork - 14))
    : shape("text", { x: layout.fork + 22, y: y + 4 },
      fitted(visible(named(variant.name)), layout.words)));
  runs.forEach((run, number) => {
    const x = layout.first + step * number;
    svg.append(hasFailed(run) ? crossShape(x, y) : shape("circle",
      { class: `dot run ${color}`, cx: x, cy: y, r: step < 9 ? 3 : 4.5 }));
    add({ heading: runHeading(run), rows: branchRows(run), pick: () => choose(run) }, [x, y]);
  });
}

function treeGist(from, variants, runs) {
  return `Session ${shortened(named(from.session), 60)} up to revision ${
    formatCount(from.revision)}, and from there ${many(variants.length, "branch", "branches")} `
    + `with ${many(runs.length, "run")}.`;
}

function drawTree(report, variants, runs, width, choose) {
  const layout = treeLayout(variants, width);
  const svg = canvas(width, layout.height, treeGist(report.from, variants, runs));
  const [points, placed] = [[], []];
  const add = (point, at) => {
    points.push(point);
    placed.push(at);
  };
  drawTrunk(svg, report.from, layout, add);
  drawFork(svg, report.from, layout, add);
  variants.forEach((variant, index) => drawBranch(svg, variant,
    runs.filter((run) => run.variant === variant.name), layout,
    { index, color: variants.length <= 8 ? styleOf(index).color : "c1", choose, add }));
  const overlay = shape("g", {});
  svg.append(overlay);
  makeInteractive(svg, overlay, pointFinder(points, placed, overlay));
  return svg;
}

function pastTable(from) {
  const past = from.past ?? [];
  if (past.length === 0)
    return null;
  return folded(`The last ${many(past.length, "message")} before the branches`, () => table([
    { name: "revision", number: true, text: (said) => formatCount(said.revision) },
    { name: "author", words: true, text: (said) => named(said.author) },
    { name: "text", words: true, text: (said) => shortened(textOf(said.text), 600) },
  ], past, { label: "Messages before the branches" }));
}

function treePanel(report, variants, runs, choose) {
  if (!report.from)
    return null;
  return panel("Branches", "each run is a fork of the session; click one to see it below", () => {
    if (variants.length === 0)
      return nothing("There is no branch.");
    const entries = [{ name: "message of the session", swatch: "round cq" },
      { name: "run", swatch: "round c1" }];
    if (runs.some(hasFailed))
      entries.push({ name: "failed run", swatch: "times" });
    return [legend(entries), chart(TREE_TOP + variants.length * 32 + 22,
      (width) => drawTree(report, variants, runs, width, choose)), pastTable(report.from),
    element("p", { class: "note" }, "Each run has keys of its own in the session\u2019s state. "
      + "The keys of app: and user: are shared: by the session, by all runs, and by the other "
      + "sessions of this app and user.")];
  }, { class: "wide" });
}
