// Elements, numbers as text, and SVG charts that fill the width of their panel. All text enters
// through text nodes, so no text of a report can become markup.
"use strict";

const NONE = "\u2013";

// Elements

// Characters that could reorder or hide text of a report. Tabs, line ends, signs before Arabic
// numbers and selectors of emoji are not among them.
const HIDDEN = new RegExp("(?![\\t\\n\\u0600-\\u0605\\u06dd\\u070f]|(?<=[^\\0-\\x7f])[\\ufe0e\\ufe0f])"
  + "[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]", "gu");

function visible(text) {
  return text.replace(HIDDEN, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);
}

function shown(value) {
  return typeof value === "string" ? visible(value) : value;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {}))
    if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : shown(value));
  node.append(...children.flat(Infinity)
    .filter((child) => child !== null && child !== undefined).map(shown));
  return node;
}

function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function shape(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function button(text, act) {
  const made = element("button", { type: "button" }, text);
  made.addEventListener("click", act);
  return made;
}

function nothing(text) {
  return element("p", { class: "nothing" }, text);
}

// Makes the contents of a details element when it is first opened.
function folded(text, build) {
  const made = element("details", {}, element("summary", {}, text));
  made.addEventListener("toggle", () => made.append(build()), { once: true });
  return made;
}

// Numbers

const TIME_UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTE_UNITS = [["B", 1], ["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30],
  ["TiB", 2 ** 40]];
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function threeDigits(value) {
  const amount = Math.abs(value);
  return value.toFixed(amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0);
}

// Returns the first unit in which the rounded number has at most three digits.
function unitOf(amount, units, limit) {
  return units.find(([, size]) => Math.abs(amount) / size < limit) ?? units[units.length - 1];
}

function formatTime(nanoseconds) {
  if (!isNumber(nanoseconds))
    return NONE;
  const [name, size] = unitOf(nanoseconds, TIME_UNITS, 999.5);
  const scaled = nanoseconds / size;
  return `${size === 1 ? scaled.toFixed(0) : threeDigits(scaled)} ${name}`;
}

function formatTimeTick(nanoseconds) {
  const [name, size] = unitOf(nanoseconds, TIME_UNITS, 1000);
  return `${Number((nanoseconds / size).toPrecision(4))} ${nanoseconds === 0 ? "s" : name}`;
}

function formatSeconds(seconds) {
  return isNumber(seconds) ? formatTime(seconds * 1e9) : NONE;
}

function formatSecondsTick(seconds) {
  return `${Number(seconds.toPrecision(6))} s`;
}

function formatBytes(bytes) {
  if (!isNumber(bytes))
    return NONE;
  const [name, size] = unitOf(bytes, BYTE_UNITS, 1023.5);
  return `${size === 1 ? bytes : threeDigits(bytes / size)} ${name}`;
}

function formatBytesTick(bytes) {
  const [name, size] = unitOf(bytes, BYTE_UNITS, 1024);
  return `${Number((bytes / size).toPrecision(3))} ${name}`;
}

function formatCount(count) {
  return isNumber(count) ? WHOLE.format(count) : NONE;
}

function formatNumber(value) {
  if (!isNumber(value))
    return NONE;
  return Number.isInteger(value) || Math.abs(value) >= 1000 ? formatCount(value)
    : threeDigits(value);
}

function formatRate(perSecond) {
  if (!isNumber(perSecond))
    return NONE;
  return perSecond < 100 ? formatNumber(perSecond) : formatCount(perSecond);
}

function formatCountTick(count) {
  const [name, size] = unitOf(count, [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9]], 1000);
  return `${Number((count / size).toPrecision(3))}${name}`;
}

function formatShare(share) {
  if (!isNumber(share))
    return NONE;
  return share > 0 && share < 0.0005 ? "< 0.1 %" : `${Number((share * 100).toFixed(1))} %`;
}

function formatMoment(text) {
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? String(text ?? NONE)
    : moment.toISOString().replace("T", " ").replace(/\.\d+Z$|Z$/, " UTC");
}

function many(count, one, more) {
  return `${formatCount(count)} ${count === 1 ? one : more ?? `${one}s`}`;
}

function shortened(text, length) {
  const letters = Array.from(String(text));
  return letters.length <= length ? String(text) : `${letters.slice(0, length - 1).join("")}\u2026`;
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + (isNumber(number) ? number : 0), 0);
}

// A spread of thousands of numbers into Math.max would overflow the stack.
function largest(numbers, least = 0) {
  return numbers.reduce((most, number) => (isNumber(number) && number > most ? number : most),
    least);
}

function smallest(numbers, most = Infinity) {
  return numbers.reduce((least, number) => (isNumber(number) && number < least ? number : least),
    most);
}

// Tables

// `columns`: {name, text(row) or node(row), number, words, head, title, mark(row)}.
function table(columns, rows, options = {}) {
  const head = element("tr", {}, columns.map((column) => element("th",
    { scope: "col", class: column.number ? "number" : null, title: column.title }, column.name)));
  const body = element("tbody", {}, rows.map((row) => element("tr",
    { class: options.rowClass ? options.rowClass(row) : null },
    columns.map((column) => cell(column, row)))));
  const made = element("table", {}, element("thead", {}, head), body);
  const holder = element("div", {
    class: rows.length > 25 ? "scroll tall" : "scroll", tabindex: "0", role: "region",
    "aria-label": options.label ?? "Table",
  }, made);
  stackWhereNarrow(holder, made);
  return holder;
}

// Shows each row as a block of named values where the table does not fit, since columns that are
// scrolled out of sight are easily missed.
function stackWhereNarrow(holder, made) {
  const arrange = () => {
    holder.classList.remove("stacked");
    holder.classList.toggle("stacked", made.offsetWidth > holder.clientWidth);
  };
  new ResizeObserver(() => requestAnimationFrame(arrange)).observe(holder);
}

function cell(column, row) {
  const classes = [column.number ? "number" : column.words ? "words" : "",
    column.mark ? column.mark(row) : ""].filter(Boolean).join(" ");
  const content = column.node ? column.node(row) : String(column.text(row));
  return element(column.head ? "th" : "td",
    { class: classes || null, scope: column.head ? "row" : null,
      "data-name": column.head ? null : column.name || null },
    column.words ? element("div", {}, content) : content);
}

function factsList(facts) {
  return element("dl", { class: "facts-list" },
    facts.map(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));
}

// `figures`: {name, value, aside, wrong}.
function figuresRow(figures) {
  return element("dl", { class: "figures" }, figures.map((figure) => element("div",
    { class: figure.wrong ? "wrong" : null }, element("dt", {}, figure.name),
    element("dd", {}, figure.value),
    figure.aside ? element("dd", { class: "aside" }, figure.aside) : null)));
}

// Scales: `at` maps a value to 0..1, `from` maps 0..1 to a value.

function niceStep(raw) {
  const power = 10 ** Math.floor(Math.log10(raw));
  const lead = raw / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

function linearTicks(low, high, count) {
  const step = niceStep((high - low) / Math.max(count, 1) || 1);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => Number(
    ((first + index) * step).toPrecision(12)));
}

function linearScale(low, high) {
  const top = high > low ? high : low + 1;
  return {
    low,
    high: top,
    at: (value) => (value - low) / (top - low),
    from: (share) => low + share * (top - low),
    ticks: (count) => linearTicks(low, top, count),
  };
}

// From zero to a round number above `high`.
function amountScale(high, ticks = 5) {
  const top = high > 0 ? high : 1;
  const step = niceStep(top / ticks);
  return linearScale(0, Math.ceil(top / step - 1e-9) * step);
}

// A scale of round numbers around the values. It leaves out zero if the values are far from it, so
// it is used for points and not for bars.
function spanScale(low, high, ticks = 5) {
  if (!(low > high * 0.3))
    return amountScale(high, ticks);
  const step = niceStep((high - low) / ticks || high / ticks);
  return linearScale(Math.floor(low / step) * step, Math.ceil(high / step) * step);
}

function logTicks(low, high, count) {
  const decades = Math.log10(high / low);
  const leads = decades < count / 2 ? [1, 2, 5] : decades < count * 0.8 ? [1, 3] : [1];
  const every = leads.length > 1 ? 1 : Math.max(1, Math.ceil(decades / count));
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += every)
    for (const lead of leads)
      ticks.push(Number((lead * 10 ** power).toPrecision(6)));
  return ticks.filter((tick) => tick >= low * 0.999999 && tick <= high * 1.000001);
}

function logScale(low, high) {
  const bottom = low > 0 ? low : 1;
  const top = high > bottom ? high : bottom * 10;
  const span = Math.log(top / bottom);
  return {
    low: bottom,
    high: top,
    at: (value) => Math.log(Math.max(value, bottom) / bottom) / span,
    from: (share) => bottom * Math.exp(share * span),
    ticks: (count) => logTicks(bottom, top, count),
  };
}

function roundDown(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const lead = value / power;
  return power * (lead >= 5 ? 5 : lead >= 2 ? 2 : 1);
}

function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const lead = value / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

// Spans at least a decade, so that small differences do not look large.
function logScaleOf(values) {
  const positive = values.filter((value) => isNumber(value) && value > 0);
  if (positive.length === 0)
    return logScale(1, 10);
  const low = roundDown(smallest(positive));
  return logScale(low, Math.max(roundUp(largest(positive)), low * 10));
}

// Text widths

const measure = document.createElement("canvas").getContext("2d");
const fontFamily = getComputedStyle(document.body).fontFamily;

function textWidth(text, size = 12) {
  measure.font = `${size}px ${fontFamily}`;
  return measure.measureText(text).width;
}

function fitted(text, width, size = 12) {
  const whole = String(text);
  if (textWidth(whole, size) <= width)
    return whole;
  const letters = Array.from(whole);
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(`${letters.slice(0, middle).join("")}\u2026`, size) <= width)
      low = middle;
    else
      high = middle - 1;
  }
  return low === 0 ? "" : `${letters.slice(0, low).join("")}\u2026`;
}

// The tooltip: one for the page, beside the pointer or the point in focus.

const tip = element("div", { class: "tip", role: "status", hidden: true });

function tipRow([name, value, swatch]) {
  return [element("dt", {}, swatch ? element("span", { class: `swatch ${swatch}` }) : null, name),
    element("dd", {}, String(value))];
}

function showTip(svg, x, y, heading, rows) {
  if (!tip.isConnected)
    document.body.append(tip);
  tip.replaceChildren(element("strong", {}, heading), element("dl", {}, rows.map(tipRow)));
  tip.hidden = false;
  const box = svg.getBoundingClientRect();
  const scale = box.width / (svg.viewBox.baseVal.width || box.width || 1);
  const [left, top] = [box.left + x * scale, box.top + y * scale];
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  const [wide, high] = [document.documentElement.clientWidth, window.innerHeight];
  const beside = left + 14 + width <= wide - 8 ? left + 14 : left - 14 - width;
  const placed = Math.min(Math.max(beside, 8), Math.max(wide - 8 - width, 8));
  const below = Math.min(Math.max(top - height / 2, 8), Math.max(high - 8 - height, 8));
  tip.style.transform = `translate(${Math.round(placed)}px, ${Math.round(below)}px)`;
}

function hideTip() {
  tip.hidden = true;
}

window.addEventListener("wheel", hideTip, { passive: true });

function pointIn(svg, event) {
  const box = svg.getBoundingClientRect();
  const scale = (svg.viewBox.baseVal.width || box.width) / (box.width || 1);
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}

// `find(x, y)` gives an item or null, `move(item, key)` the next one for an arrow key,
// `show(item)` draws it and tells {x, y, heading, rows}; `pick(item)` may take a click.
function makeInteractive(svg, overlay, { find, move, show, pick }) {
  let current = null;
  const present = (item) => {
    current = item;
    overlay.replaceChildren();
    if (item === null)
      return hideTip();
    const told = show(item);
    return showTip(svg, told.x, told.y, told.heading, told.rows);
  };
  const follow = (event) => present(find(...pointIn(svg, event)));
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  // A lifted finger leaves the drawing too, but its tooltip stays.
  svg.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch")
      present(null);
  });
  svg.addEventListener("pointercancel", () => present(null));
  svg.addEventListener("blur", () => present(null));
  if (pick)
    svg.addEventListener("click", () => current !== null && pick(current));
  svg.addEventListener("focus", () => {
    if (svg.matches(":focus-visible"))
      present(move(current, "Home"));
  });
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape")
      present(null);
    if (event.key === "Enter" && pick && current !== null)
      pick(current);
    if (!/^(Arrow|Home$|End$)/.test(event.key))
      return;
    event.preventDefault();
    present(move(current, event.key));
  });
}

function moveInList(length) {
  return (index, key) => {
    if (length === 0)
      return null;
    if (key === "Home" || index === null)
      return 0;
    if (key === "End")
      return length - 1;
    const by = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    return Math.min(Math.max(index + by, 0), length - 1);
  };
}

// Charts

// Redraws when the width changes, in the next frame, because drawing changes sizes itself.
function chart(height, draw) {
  const holder = element("div", { class: "chart" });
  holder.style.minHeight = `${height}px`;
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(holder.clientWidth);
    if (width === 0 || width === drawn)
      return;
    drawn = width;
    hideTip();
    holder.replaceChildren(draw(width));
  };
  new ResizeObserver(() => requestAnimationFrame(redraw)).observe(holder);
  return holder;
}

function canvas(width, height, label) {
  return shape("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
  });
}

function frameOf(width, height, y, right = 14) {
  const ticks = y.scale.ticks(Math.max(2, Math.floor((height - 40) / 38)));
  const left = Math.ceil(largest(ticks.map((tick) => textWidth(y.tick(tick))))) + 10;
  const frame = { left, top: 8, right: width - right, bottom: height - 26, yTicks: ticks };
  frame.width = Math.max(frame.right - frame.left, 1);
  frame.height = Math.max(frame.bottom - frame.top, 1);
  return frame;
}

function placeX(frame, scale, value) {
  return frame.left + scale.at(value) * frame.width;
}

function placeY(frame, scale, value) {
  return frame.bottom - scale.at(value) * frame.height;
}

function drawYAxis(svg, frame, y) {
  for (const tick of frame.yTicks) {
    const at = placeY(frame, y.scale, tick);
    svg.append(
      shape("line", { class: "gridline", x1: frame.left, x2: frame.right, y1: at, y2: at }),
      shape("text", { class: "tick", x: frame.left - 8, y: at + 4, "text-anchor": "end" },
        y.tick(tick)));
  }
}

// Leaves out labels that would touch the one before.
function drawXAxis(svg, frame, x, svgWidth) {
  svg.append(shape("line", {
    class: "baseline", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom,
  }));
  const ticks = x.ticks?.(frame.width)
    ?? x.scale.ticks(Math.max(2, Math.floor(frame.width / 90)));
  let free = -Infinity;
  for (const tick of ticks) {
    const at = placeX(frame, x.scale, tick);
    const text = x.tick(tick);
    const width = textWidth(text);
    const middle = Math.min(Math.max(at, width / 2 + 1), svgWidth - width / 2 - 1);
    svg.append(shape("line",
      { class: "baseline", x1: at, x2: at, y1: frame.bottom, y2: frame.bottom + 4 }));
    if (middle - width / 2 < free)
      continue;
    free = middle + width / 2 + 10;
    svg.append(shape("text",
      { class: "tick", x: middle, y: frame.bottom + 19, "text-anchor": "middle" }, text));
  }
}

function legend(entries) {
  return element("ul", { class: "legend" }, entries.map((entry) => element("li", {},
    entry.swatch === "times"
      ? element("span", { class: "swatch times", "aria-hidden": "true" }, "\u00d7")
      : element("span", { class: `swatch ${entry.swatch}`, "aria-hidden": "true" }), entry.name)));
}

function swatchOf(series) {
  const dash = { "6 4": "dashed", "2 3": "dotted" }[series.dash] ?? "";
  return series.bars ? "block cbad" : `${series.color} ${dash}`.trim();
}

const DASHES = [null, "6 4", "2 3"];

function styleOf(index) {
  return { color: `c${index % 8 + 1}`, dash: DASHES[Math.floor(index / 8) % 3] };
}

function linePath(points, frame, x, y) {
  let path = "";
  let pen = "M";
  for (const [across, up] of points) {
    if (!isNumber(up)) {
      pen = "M";
      continue;
    }
    path += `${pen}${placeX(frame, x.scale, across).toFixed(1)} `
      + `${placeY(frame, y.scale, up).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

// Reduces the points if there are more than pixels. Keeps the least and the greatest of each part,
// so the outline stays.
function thinned(points, width) {
  if (points.length <= width * 2)
    return points;
  const stretch = Math.ceil(points.length / width);
  const kept = [];
  for (let begin = 0; begin < points.length; begin += stretch) {
    const part = points.slice(begin, begin + stretch).filter(([, up]) => isNumber(up));
    if (part.length === 0)
      continue;
    const low = part.reduce((least, point) => (point[1] < least[1] ? point : least));
    const high = part.reduce((most, point) => (point[1] > most[1] ? point : most));
    kept.push(...(low[0] <= high[0] ? [low, high] : [high, low]));
  }
  return kept;
}

function drawSeries(svg, frame, series, x, y) {
  if (series.bars)
    return drawFailureBars(svg, frame, series, x, y);
  const shown = thinned(series.points, frame.width);
  svg.append(shape("path", {
    class: `line ${series.color}${series.thin ? " thin" : ""}`,
    "stroke-dasharray": series.dash, d: linePath(shown, frame, x, y),
  }));
  const single = shown.filter(([, up]) => isNumber(up)).length < 2;
  if (!series.dots && !single)
    return undefined;
  for (const [across, up, ring] of shown)
    if (isNumber(up))
      svg.append(shape("circle", {
        class: `dot ${ring ? "ring cbad" : series.color}`, cx: placeX(frame, x.scale, across),
        cy: placeY(frame, y.scale, up), r: ring ? 4.5 : 3.5,
      }));
  return undefined;
}

// Draws bars as high as their counts, but never too small to see.
function drawFailureBars(svg, frame, series, x, y) {
  for (const [across, up] of series.points) {
    if (!(up > 0))
      continue;
    const top = Math.min(placeY(frame, y.scale, up), frame.bottom - 7);
    svg.append(shape("rect", {
      class: "bar lost", x: placeX(frame, x.scale, across) - 1.5, y: top, width: 3,
      height: frame.bottom - top,
    }));
  }
}

function nearest(sorted, value, distance) {
  let best = 0;
  for (let index = 1; index < sorted.length; ++index)
    if (distance(sorted[index], value) < distance(sorted[best], value))
      best = index;
  return best;
}

function pointsAt(series, across, distance, reach) {
  return series.flatMap((each) => {
    if (each.points.length === 0)
      return [];
    const index = nearest(each.points, across, (point, to) => distance(point[0], to));
    const point = each.points[index];
    const near = distance(point[0], across) <= reach && isNumber(point[1]);
    return near && !(each.bars && point[1] === 0) ? [{ series: each, point }] : [];
  });
}

// `x`, `y`: {scale, tick(value), text(value)}; `series`: {name, meaning, color, points: [[x, y]],
// dash, thin, dots, bars}.
function lineChart({ label, height = 250, x, y, series }) {
  return chart(height, (width) => {
    const svg = canvas(width, height, label);
    const frame = frameOf(width, height, y);
    const overlay = shape("g", {});
    drawYAxis(svg, frame, y);
    drawXAxis(svg, frame, x, width);
    for (const each of series)
      drawSeries(svg, frame, each, x, y);
    svg.append(overlay);
    const stops = [...new Set(series.flatMap((each) => each.points.map((point) => point[0])))]
      .sort((left, right) => left - right);
    const distance = (left, right) => Math.abs(
      placeX(frame, x.scale, left) - placeX(frame, x.scale, right));
    makeInteractive(svg, overlay, {
      find: (px) => (stops.length === 0 ? null : nearest(stops,
        x.scale.from((px - frame.left) / frame.width), distance)),
      move: moveInList(stops.length),
      show: (index) => showCrosshair(overlay, frame, stops[index], x, y,
        pointsAt(series, stops[index], distance, 4)),
    });
    return svg;
  });
}

function showCrosshair(overlay, frame, across, x, y, found) {
  const at = placeX(frame, x.scale, across);
  overlay.append(shape("line",
    { class: "crosshair", x1: at, x2: at, y1: frame.top, y2: frame.bottom }));
  for (const { series, point } of found)
    overlay.append(shape("circle", {
      class: `dot ring ${series.color}`, cx: at, cy: placeY(frame, y.scale, point[1]), r: 4,
    }));
  return {
    x: at,
    y: frame.top + frame.height / 3,
    heading: x.text(across),
    rows: found.map(({ series, point }) => [series.name, y.text(point[1]), swatchOf(series)]),
  };
}

// `bars`: {name, value, rows: tooltip rows}.
function barChart({ label, height = 250, y, bars }) {
  return chart(height, (width) => {
    const svg = canvas(width, height, label);
    const frame = frameOf(width, height, y);
    const overlay = shape("g", {});
    const pitch = frame.width / bars.length;
    drawYAxis(svg, frame, y);
    drawXAxis(svg, frame, {
      scale: linearScale(0, bars.length), ticks: () => bars.map((_, index) => index + 0.5),
      tick: (at) => bars[Math.floor(at)].name,
    }, width);
    bars.forEach((bar, index) => svg.append(barShape(bar, index, frame, pitch, y)));
    svg.append(overlay);
    makeInteractive(svg, overlay, {
      find: (px) => Math.min(Math.max(Math.floor((px - frame.left) / pitch), 0), bars.length - 1),
      move: moveInList(bars.length),
      show: (index) => ({
        x: frame.left + (index + 0.5) * pitch, y: frame.top + frame.height / 3,
        heading: bars[index].heading, rows: bars[index].rows,
      }),
    });
    return svg;
  });
}

function barShape(bar, index, frame, pitch, y) {
  const top = bar.value > 0
    ? Math.min(placeY(frame, y.scale, bar.value), frame.bottom - 1) : frame.bottom;
  const width = Math.max(Math.min(pitch * 0.8, 64), 1);
  return shape("rect", {
    class: "bar c1", x: frame.left + (index + 0.5) * pitch - width / 2, y: top, width,
    height: frame.bottom - top,
  });
}

function crossShape(x, y, reach = 3.5) {
  return shape("path", {
    class: "cross",
    d: `M${x - reach} ${y - reach}L${x + reach} ${y + reach}`
      + `M${x - reach} ${y + reach}L${x + reach} ${y - reach}`,
  });
}

// `points`: {x, y, color, failed, heading, rows}. `diagonal` adds the line of equal values.
function scatterChart({ label, height = 320, x, y, points, diagonal }) {
  return chart(height, (width) => {
    const svg = canvas(width, height, label);
    const frame = frameOf(width, height, y);
    const overlay = shape("g", {});
    drawYAxis(svg, frame, y);
    drawXAxis(svg, frame, x, width);
    if (diagonal)
      svg.append(diagonalShape(frame, x, y));
    const placed = points.map((point) => [placeX(frame, x.scale, point.x),
      placeY(frame, y.scale, point.y)]);
    points.forEach((point, index) => svg.append(point.failed ? crossShape(...placed[index])
      : shape("circle", {
        class: `dot faint ${point.color}`, cx: placed[index][0], cy: placed[index][1], r: 4,
      })));
    svg.append(overlay);
    makeInteractive(svg, overlay, pointFinder(points, placed, overlay));
    return svg;
  });
}

function diagonalShape(frame, x, y) {
  const low = Math.max(x.scale.low, y.scale.low);
  const high = Math.min(x.scale.high, y.scale.high);
  return shape("line", {
    class: "diagonal", x1: placeX(frame, x.scale, low), y1: placeY(frame, y.scale, low),
    x2: placeX(frame, x.scale, high), y2: placeY(frame, y.scale, high),
  });
}

// A point may have `pick`, which is called on a click.
function pointFinder(points, placed, overlay) {
  const reach = 24;
  return {
    pick: (index) => points[index].pick?.(),
    find: (px, py) => {
      const far = ([x, y]) => Math.hypot(x - px, y - py);
      const index = placed.length === 0 ? -1 : nearest(placed, null, far);
      return index >= 0 && far(placed[index]) <= reach ? index : null;
    },
    move: moveInList(points.length),
    show: (index) => {
      const [x, y] = placed[index];
      overlay.append(shape("circle", { class: "picked", cx: x, cy: y, r: 6 }));
      return { x, y, heading: points[index].heading, rows: points[index].rows };
    },
  };
}

// Panels

// A part that fails does not affect the others; its error is written to the console.
function panel(title, aside, build, options = {}) {
  const made = element("section", { class: `panel ${options.class ?? ""}`.trim() });
  const head = element("header", {}, element("h2", {}, title),
    aside ? element("p", {}, aside) : null);
  made.append(head);
  try {
    made.append(...[build(head)].flat().filter(Boolean));
  } catch (error) {
    console.error(error);
    made.append(nothing(`This part cannot be drawn: ${error.message}`));
  }
  return made;
}

// A pair of buttons in the head of a panel, and the chart that they choose.
function eitherScale(head, build) {
  const holder = element("div", {});
  const choices = [["Log", true], ["Linear", false]].map(([name, log]) => {
    const made = button(name, () => choose(log));
    return { made, log };
  });
  const choose = (log) => {
    for (const choice of choices)
      choice.made.setAttribute("aria-pressed", String(choice.log === log));
    holder.replaceChildren(build(log));
  };
  head.append(element("div", { class: "controls joined", role: "group",
    "aria-label": "Scale of the times" }, choices.map((choice) => choice.made)));
  choose(true);
  return holder;
}

function timeAxis(values, log) {
  const scale = log ? logScaleOf(values) : timeScale(largest(values));
  return { scale, tick: formatTimeTick, text: formatTime };
}

function timeScale(high) {
  return amountScale(high);
}

function pageHead(title, facts) {
  return element("header", { class: "head" }, element("h1", {}, title),
    element("ul", { class: "facts" },
      facts.filter(Boolean).map((fact) => element("li", {}, String(fact)))));
}

// Facts about the machine, for all reports.
function machineFacts(machine) {
  return [["CPU", machine?.cpu ?? NONE], ["cores", machine?.cores ?? NONE],
    ["memory", formatBytes(machine?.memoryBytes)], ["kernel", machine?.kernel ?? NONE],
    ["system", machine?.system ?? NONE]];
}

function surroundings(report, settings) {
  const versions = Object.entries(report.versions ?? {});
  const part = (title, facts) => element("div", {}, element("h3", {}, title),
    facts.length > 0 ? factsList(facts) : element("p", { class: "muted" }, "Not recorded."));
  return panel("Settings, machine, versions", null, () => element("div", { class: "columns" },
    part("Settings", settings), part("Machine", report.machine ? machineFacts(report.machine) : []),
    part("Versions", versions)), { class: "wide" });
}
