// The timeline of one invocation: a row per lane, a bar per step, with zoom and a table of steps.

const KINDS = ["model", "tool", "other", "wait"];
const KIND_NAMES = { model: "model", tool: "tool", other: "other work", wait: "waiting" };
const TRACK = 20;
const LABEL = 17;

let timelinesMade = 0;

function kindOf(step) {
  return KINDS.includes(step.kind) ? step.kind : "other";
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function stepName(step) {
  return step.name ? String(step.name) : KIND_NAMES[step.kind];
}

function named(text) {
  return text === null || text === undefined || text === "" ? "(no name)" : String(text);
}

function beginOf(lane) {
  return smallest((lane.steps ?? []).map((step) => step.start).filter(isNumber), 0);
}

// Returns the lanes in the order of their first steps. The lanes below one lane stay together, where
// the first of them begins.
function inTreeOrder(lanes) {
  const root = { lanes: [], below: new Map() };
  for (const lane of lanes) {
    let node = root;
    for (const part of String(lane.branch ?? "").split(".").filter(Boolean)) {
      if (!node.below.has(part))
        node.below.set(part, { lanes: [], below: new Map() });
      node = node.below.get(part);
    }
    node.lanes.push(lane);
  }
  const visit = (node, depth) => {
    const below = [...node.below.values()]
      .map((child) => visit(child, depth + (node.lanes.length > 0 ? 1 : 0)));
    const own = node.lanes.map((lane) => ({ begin: beginOf(lane), rows: [{ lane, depth }] }));
    const parts = [...own, ...below].sort((left, right) => left.begin - right.begin);
    return { begin: smallest(parts.map((part) => part.begin), 0),
      rows: parts.flatMap((part) => part.rows) };
  };
  return visit(root, 0).rows;
}

// Steps that overlap within a lane, such as tools called at once, get tracks of their own.
function inTracks(steps) {
  const ends = [];
  for (const step of steps) {
    let track = ends.findIndex((end) => end <= step.start);
    if (track < 0)
      track = ends.push(0) - 1;
    ends[track] = step.end;
    step.track = track;
  }
  return Math.max(ends.length, 1);
}

function preparedSteps(lane, whole) {
  return (lane.steps ?? [])
    .filter((step) => isNumber(step.start))
    .map((step) => ({ ...step, lane, kind: kindOf(step),
      end: Math.max(isNumber(step.end) ? step.end : whole, step.start) }))
    .sort((left, right) => left.start - right.start || right.end - left.end);
}

function preparedRows(timeline) {
  return inTreeOrder(timeline.lanes ?? []).map(({ lane, depth }) => {
    const steps = preparedSteps(lane, timeline.wall ?? 0);
    return { lane, depth: Math.min(depth, 8), steps, tracks: inTracks(steps) };
  });
}

// Places the names beside the bars, or on a line above them if the drawing is narrow.
function layOut(rows, width) {
  const above = width < 640;
  const gutter = above ? 0 : Math.min(Math.ceil(largest(rows.map((row) => 12 * row.depth
    + textWidth(named(row.lane.agent))))) + 22, 240);
  let top = 0;
  const places = rows.map((row) => {
    const bars = top + (above ? LABEL : 0) + 3;
    const place = { top, bars, height: row.tracks * TRACK + 6 + (above ? LABEL : 0) };
    top += place.height;
    return place;
  });
  return { above, left: gutter + (above ? 6 : 8), right: width - 10, width, places, height: top };
}

function laneLabel(row, place, room, layout) {
  const indent = 10 + 12 * row.depth;
  const text = shape("text", { x: indent, y: place.top + (layout.above ? 14 : 17) },
    fitted(named(row.lane.agent), room - indent));
  text.append(shape("title", {}, row.lane.branch
    ? `${named(row.lane.agent)}, branch ${row.lane.branch}` : named(row.lane.agent)));
  return text;
}

function drawLanes(svg, rows, layout) {
  rows.forEach((row, index) => {
    const place = layout.places[index];
    svg.append(shape("rect", { class: `lane ${index % 2 ? "odd" : ""}`, x: 0, y: place.top,
      width: layout.width, height: place.height, fill: "none" }));
    for (let level = 1; level <= row.depth; ++level)
      svg.append(shape("line", { class: "guide", x1: 2 + 12 * level, x2: 2 + 12 * level,
        y1: place.top, y2: place.top + (layout.above ? LABEL : place.height) }));
    svg.append(laneLabel(row, place, layout.above ? layout.right : layout.left - 4, layout));
  });
}

function stepBox(step, place, layout, scale) {
  const across = (time) => layout.left + scale.at(time) * (layout.right - layout.left);
  const begin = Math.max(across(step.start), layout.left);
  const end = Math.min(across(step.end), layout.right);
  return { x: begin, y: place.bars + step.track * TRACK + 1, width: Math.max(end - begin, 1),
    height: TRACK - 2 };
}

function stepBar(step, box, hatch) {
  const failed = step.error !== null && step.error !== undefined;
  const bar = shape("rect", { class: `step ${step.kind}${failed ? " failed" : ""}`, ...box,
    rx: Math.min(2, box.width / 2), fill: step.kind === "wait" ? `url(#${hatch})` : null });
  const parts = [bar];
  if (failed)
    parts.push(shape("path", { class: "failure",
      d: `M${box.x} ${box.y + box.height}v${-box.height}h8l-8 8z` }));
  const indent = failed ? 11 : 5;
  if (step.kind !== "wait" && box.width > 34)
    parts.push(shape("text", { class: "on-step", x: box.x + indent, y: box.y + 13 },
      fitted(stepName(step), box.width - indent - 4, 11)));
  return parts;
}

function isShown(step, scale) {
  return step.end >= scale.low && step.start <= scale.high;
}

// Leaves out a step that would be inside of the bar before it, unless it failed: thousands of steps
// may share few pixels.
function drawSteps(svg, rows, layout, scale, hatch) {
  rows.forEach((row, index) => {
    const covered = [];
    for (const step of row.steps) {
      if (!isShown(step, scale))
        continue;
      const box = stepBox(step, layout.places[index], layout, scale);
      const right = box.x + box.width;
      if (right - (covered[step.track] ?? -1) < 0.7 && !step.error)
        continue;
      covered[step.track] = right;
      svg.append(...stepBar(step, box, hatch));
    }
  });
}

function hatchPattern(id) {
  return shape("defs", {}, shape("pattern",
    { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    shape("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 5 })));
}

// Uses as many digits as make neighbouring labels different, at any zoom.
function timeLabels(ticks) {
  const [name, size] = unitOf(ticks[ticks.length - 1] ?? 0, TIME_UNITS, 1000);
  const step = ticks.length > 1 ? (ticks[1] - ticks[0]) / size : 1;
  const digits = Math.min(Math.max(Math.ceil(-Math.log10(step) - 1e-9), 0), 9);
  return ticks.map((tick) => (tick === 0 ? "0" : `${(tick / size).toFixed(digits)} ${name}`));
}

function axisSvg(layout, scale) {
  const svg = shape("svg", { viewBox: `0 0 ${layout.width} 26`, width: layout.width, height: 26,
    "aria-hidden": "true" });
  const room = layout.right - layout.left;
  const ticks = scale.ticks(Math.max(2, Math.floor(room / 85)));
  const labels = timeLabels(ticks);
  let free = -Infinity;
  ticks.forEach((tick, index) => {
    const at = layout.left + scale.at(tick) * room;
    const width = textWidth(labels[index]);
    const middle = Math.min(Math.max(at, width / 2 + 2), layout.width - width / 2 - 2);
    svg.append(shape("line", { class: "baseline", x1: at, x2: at, y1: 21, y2: 26 }));
    if (middle - width / 2 < free)
      return;
    free = middle + width / 2 + 8;
    svg.append(shape("text", { class: "tick", x: middle, y: 16, "text-anchor": "middle" },
      labels[index]));
  });
  return svg;
}

function drawGuides(svg, layout, scale) {
  const room = layout.right - layout.left;
  for (const tick of scale.ticks(Math.max(2, Math.floor(room / 85)))) {
    const at = layout.left + scale.at(tick) * room;
    svg.append(shape("line", { class: "gridline", x1: at, x2: at, y1: 0, y2: layout.height }));
  }
}

// Uses as many digits as make the two ends of a step different.
function momentText(time, took) {
  const [name, size] = unitOf(time, TIME_UNITS, 999.5);
  const wanted = took > 0 ? Math.ceil(-Math.log10(took / size)) + 1 : 3;
  const whole = String(Math.max(Math.floor(Math.abs(time) / size), 1)).length;
  const digits = size === 1 ? 0 : Math.min(Math.max(wanted, 3 - whole, 0), 9);
  return `${(time / size).toFixed(digits)} ${name}`;
}

function stepRows(step) {
  const length = step.end - step.start;
  const told = (name, value) => (value === null || value === undefined || value === "" ? []
    : [[name, shortened(textOf(value), 300)]]);
  return [
    ["agent", shortened(named(step.lane.agent), 60)], ["kind", KIND_NAMES[step.kind]],
    ["from", momentText(step.start, length)], ["to", momentText(step.end, length)],
    ["took", formatTime(length)], ...told("event", step.event),
    ...told("detail", step.detail), ...told("error", step.error),
  ];
}

// Finds steps by position and by arrow key; an item is a step.
function stepFinder(rows, layout, scale, overlay) {
  const placeOf = new Map(rows.flatMap((row, index) => row.steps.map((step) => [step, index])));
  const boxOf = (step) => stepBox(step, layout.places[placeOf.get(step)], layout, scale);
  const shown = rows.flatMap((row) => row.steps.filter((step) => isShown(step, scale)));
  const inRow = (index) => rows[index].steps.filter((step) => isShown(step, scale));
  return {
    find: (x, y) => {
      const index = layout.places.findIndex((place) => y < place.top + place.height);
      if (index < 0)
        return null;
      const track = Math.floor((y - layout.places[index].bars) / TRACK);
      const far = (step) => {
        const box = boxOf(step);
        return Math.max(box.x - x, x - box.x - box.width, 0);
      };
      const near = inRow(index).filter((step) => step.track === track && far(step) <= 5);
      return near.length === 0 ? null
        : near.reduce((best, step) => (far(step) < far(best) ? step : best));
    },
    move: (step, key) => {
      if (shown.length === 0)
        return null;
      if (step === null || key === "Home")
        return shown[0];
      if (key === "End")
        return shown[shown.length - 1];
      if (key === "ArrowLeft" || key === "ArrowRight")
        return shown[Math.min(Math.max(shown.indexOf(step) + (key === "ArrowRight" ? 1 : -1), 0),
          shown.length - 1)];
      return stepInOtherRow(step, key === "ArrowDown" ? 1 : -1, placeOf.get(step), rows, inRow);
    },
    show: (step) => {
      const box = boxOf(step);
      const frame = shape("rect", { class: "picked", ...box, rx: 2 });
      overlay.append(frame);
      if (overlay.ownerSVGElement === document.activeElement)
        frame.scrollIntoView({ block: "nearest" });
      return { x: box.x + Math.min(box.width, 40), y: box.y + box.height + 40,
        heading: shortened(stepName(step), 120), rows: stepRows(step) };
    },
  };
}

function stepInOtherRow(step, by, from, rows, inRow) {
  for (let index = from + by; index >= 0 && index < rows.length; index += by) {
    const steps = inRow(index);
    if (steps.length > 0)
      return steps.reduce((best, other) => (
        Math.abs(other.start - step.start) < Math.abs(best.start - step.start) ? other : best));
  }
  return step;
}

// A drag of the mouse zooms in; a finger scrolls the page instead.
function zoomByDrag(svg, layout, scale, setView) {
  let begin = null;
  const selection = shape("rect", { class: "selection", y: 0, height: layout.height });
  const shareAt = (x) => (x - layout.left) / (layout.right - layout.left);
  const place = (event) => Math.min(Math.max(pointIn(svg, event)[0], layout.left), layout.right);
  const stop = () => {
    begin = null;
    selection.remove();
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0) {
      begin = place(event);
      svg.setPointerCapture(event.pointerId);
    }
  });
  svg.addEventListener("pointermove", (event) => {
    if (begin === null)
      return;
    const end = place(event);
    selection.setAttribute("x", Math.min(begin, end));
    selection.setAttribute("width", Math.abs(end - begin));
    svg.append(selection);
    hideTip();
  });
  svg.addEventListener("pointerup", (event) => {
    if (begin === null)
      return;
    const [from, to] = [begin, place(event)].sort((left, right) => left - right);
    stop();
    if (to - from > 6)
      setView(scale.from(shareAt(from)), scale.from(shareAt(to)));
  });
  svg.addEventListener("pointercancel", stop);
}

function timelineGist(timeline, rows) {
  const steps = sum(rows.map((row) => row.steps.length));
  return `Timeline of ${many(rows.length, "lane")} with ${many(steps, "step")} over `
    + `${formatTime(timeline.wall)}.`;
}

function drawTimeline(holder, timeline, rows, view, setView, pick) {
  const width = Math.floor(holder.clientWidth);
  const layout = layOut(rows, width);
  const scale = linearScale(view.from, view.to);
  const hatch = `hatch-${++timelinesMade}`;
  const svg = canvas(width, layout.height, timelineGist(timeline, rows));
  svg.classList.add("body");
  const overlay = shape("g", {});
  svg.append(hatchPattern(hatch));
  drawLanes(svg, rows, layout);
  drawGuides(svg, layout, scale);
  drawSteps(svg, rows, layout, scale, hatch);
  svg.append(overlay);
  makeInteractive(svg, overlay, { ...stepFinder(rows, layout, scale, overlay), pick });
  zoomByDrag(svg, layout, scale, setView);
  hideTip();
  holder.replaceChildren(element("div", { class: "axis" }, axisSvg(layout, scale)), svg);
}

// Returns the part of the whole to show after a zoom or a shift.
function zoomed(view, whole, factor, shift) {
  const least = Math.min(whole, Math.max(whole / 1e6, 10));
  const length = Math.min(Math.max((view.to - view.from) * factor, least), whole);
  const middle = (view.from + view.to) / 2 + shift * (view.to - view.from);
  const from = Math.min(Math.max(middle - length / 2, 0), whole - length);
  return { from, to: from + length };
}

function timelineLegend(rows) {
  const used = KINDS.filter((kind) => rows.some((row) => row.steps.some(
    (step) => step.kind === kind)));
  return legend(used.map((kind) => ({ name: KIND_NAMES[kind], swatch: `block ${kind}` })));
}

function zoomControls(view, whole, setView) {
  const turn = (factor, shift) => () => {
    const next = zoomed(view, whole, factor, shift);
    setView(next.from, next.to);
  };
  const made = {
    closer: button("Zoom in", turn(0.5, 0)), wider: button("Zoom out", turn(2, 0)),
    earlier: button("Earlier", turn(1, -0.5)), later: button("Later", turn(1, 0.5)),
    all: button("All", () => setView(0, whole)),
  };
  const readout = element("span", { class: "muted", "aria-live": "polite" });
  const update = () => {
    const isWhole = view.from <= 0 && view.to >= whole;
    for (const each of [made.wider, made.all])
      each.disabled = isWhole;
    made.earlier.disabled = view.from <= 0;
    made.later.disabled = view.to >= whole;
    readout.textContent = isWhole ? "" : `${formatTime(view.from)} to ${formatTime(view.to)}`;
  };
  update();
  return { update, node: element("div", { class: "controls", role: "group",
    "aria-label": "Part of the time" }, readout, Object.values(made)) };
}

// `pick(step)` may take a click on a step.
function timelineView(timeline, pick = null) {
  const rows = preparedRows(timeline);
  const steps = rows.flatMap((row) => row.steps);
  if (steps.length === 0)
    return nothing("No step was recorded.");
  const whole = Math.max(timeline.wall ?? 0, largest(steps.map((step) => step.end)), 1);
  const view = { from: 0, to: whole };
  const holder = element("div", { class: rows.length > 24 ? "rows tall" : "rows" });
  const redraw = () => holder.clientWidth > 0
    && drawTimeline(holder, timeline, rows, view, setView, pick);
  const setView = (from, to) => {
    Object.assign(view, { from, to });
    controls.update();
    redraw();
  };
  const controls = zoomControls(view, whole, setView);
  redrawOnResize(holder, redraw);
  return element("div", { class: "timeline stack" },
    element("div", {}, element("div", { class: "bar-of-tools" }, timelineLegend(rows),
      controls.node), holder), folded(`Table of ${many(steps.length, "step")}`,
      () => stepTable(steps)));
}

function redrawOnResize(holder, redraw) {
  let drawn = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    const width = Math.floor(holder.clientWidth);
    if (width === drawn)
      return;
    drawn = width;
    redraw();
  })).observe(holder);
}

function stepTable(steps) {
  const told = (value) => (value === null || value === undefined ? "" : textOf(value));
  return table([
    { name: "agent", head: true, words: true, text: (step) => named(step.lane.agent) },
    { name: "kind", text: (step) => KIND_NAMES[step.kind] },
    { name: "step", words: true, text: stepName },
    { name: "start", number: true, text: (step) => momentText(step.start, step.end - step.start) },
    { name: "end", number: true, text: (step) => momentText(step.end, step.end - step.start) },
    { name: "took", number: true, text: (step) => formatTime(step.end - step.start) },
    { name: "event", words: true, text: (step) => told(step.event) },
    { name: "detail or error", words: true, mark: (step) => (step.error ? "bad" : ""),
      text: (step) => told(step.error ?? step.detail) },
  ], steps, { label: "Steps" });
}
