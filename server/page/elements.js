// Makes elements. Text of sessions becomes text nodes alone, never markup.

// Characters that change the order of a text or cannot be seen.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

function visible(text) {
  return String(text).replace(HIDDEN,
    (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
}

// Attributes whose names begin with "on" are listeners.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, data] of Object.entries(attributes)) {
    if (data === null || data === undefined || data === false)
      continue;
    if (key.startsWith("on"))
      made.addEventListener(key.slice(2), data);
    else
      made.setAttribute(key, data === true ? "" : visible(data));
  }
  add(made, children);
  return made;
}

function add(parent, children) {
  for (const each of children.flat())
    if (each !== null && each !== undefined)
      parent.append(each instanceof Node ? each : visible(each));
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, data] of Object.entries(attributes))
    if (data !== null && data !== undefined)
      made.setAttribute(key, data);
  add(made, children);
  return made;
}

function button(text, press, attributes = {}) {
  return element("button", { type: "button", onclick: press, ...attributes }, text);
}

// Brings the children into this order. Nodes that stay are not moved, so they keep the focus.
function setChildren(parent, wanted) {
  const kept = new Set(wanted);
  for (const each of [...parent.childNodes])
    if (!kept.has(each))
      each.remove();
  let next = parent.firstChild;
  for (const each of wanted) {
    if (each === next)
      next = next.nextSibling;
    else
      parent.insertBefore(each, next);
  }
}

// Calls `draw` at the next frame, once for any number of calls before it.
function atNextFrame(draw) {
  let isPlanned = false;
  return () => {
    if (isPlanned)
      return;
    isPlanned = true;
    const run = () => {
      if (!isPlanned)
        return;
      isPlanned = false;
      draw();
    };
    requestAnimationFrame(run);
    // A hidden page has no frames.
    setTimeout(run, 200);
  };
}

function textOf(data) {
  return data === undefined ? "" : JSON.stringify(data);
}

function shortened(text, length) {
  const line = text.replace(/\s+/gu, " ").trim();
  return line.length > length ? `${[...line].slice(0, length).join("")}…` : line;
}

function timeOf(seconds) {
  const time = new Date(seconds * 1000);
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString() : time.toLocaleString();
}

function durationOf(seconds) {
  if (seconds < 0.9995)
    return `${Math.max(Math.round(seconds * 1000), 0)} ms`;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
}

const UNITS = [["s", 1], ["min", 60], ["h", 3600], ["d", 86400]];

function ago(seconds) {
  const passed = Date.now() / 1000 - seconds;
  if (passed < 10)
    return "now";
  if (passed > 30 * 86400)
    return new Date(seconds * 1000).toLocaleDateString();
  const [unit, size] = UNITS.findLast((each) => passed >= each[1]);
  return `${Math.floor(passed / size)} ${unit}`;
}

// Agents get colours in the order in which they are first seen.
const colours = new Map();

function colourOf(author) {
  if (author === "user" || author === "system")
    return `by-${author}`;
  if (!colours.has(author))
    colours.set(author, colours.size % 6 + 1);
  return `by-${colours.get(author)}`;
}
