// Two runs of an experiment side by side: their answers, and the keys of the session that have
// other values at their ends.

// A key may have the name of a member of every object, such as `constructor`.
function changeOf(run, key) {
  return Object.hasOwn(run.changes ?? {}, key) ? run.changes[key] : undefined;
}

// The runs of an experiment begin with the same keys. So a key that only one run has changed still
// has its first value in the other run.
function endOf(run, other, key) {
  const own = changeOf(run, key);
  return own ? own.after : changeOf(other, key)?.before;
}

function valueText(value) {
  return value === undefined ? NONE : JSON.stringify(value);
}

function comparedKeys(left, right) {
  const keys = [...new Set([left, right].flatMap((run) => Object.keys(run.changes ?? {})))].sort();
  return keys.map((key) => ({
    key, start: valueText((changeOf(left, key) ?? changeOf(right, key)).before),
    left: valueText(endOf(left, right, key)), right: valueText(endOf(right, left, key)),
  }));
}

function keyTable(rows, label) {
  const text = (side) => (row) => shortened(row[side], 400);
  return table([
    { name: "key", head: true, words: true, text: (row) => row.key },
    { name: "at the start", words: true, text: text("start") },
    { name: "left", words: true, text: text("left") },
    { name: "right", words: true, text: text("right") },
  ], rows, { label });
}

function pairState(left, right) {
  const rows = comparedKeys(left, right);
  const apart = rows.filter((row) => row.left !== row.right);
  const alike = rows.filter((row) => row.left === row.right);
  return titled("State of the session at the end", element("div", { class: "stack" },
    apart.length > 0 ? keyTable(apart, "Keys with different values")
      : element("p", { class: "muted" }, "All keys of the session have the same values."),
    alike.length > 0 ? folded(`${many(alike.length, "key")} changed alike`,
      () => keyTable(alike, "Keys that both runs changed alike")) : null));
}

function pairSide(name, report, runs, run, show) {
  return element("div", { role: "group", "aria-label": `${name} run` }, element("h3", {}, name),
    runChoosers(report, runs, run, show),
    hasFailed(run) ? element("pre", { class: "text error" }, errorText(run)) : null,
    run.output ? element("pre", { class: "text", tabindex: "0" }, textOf(run.output))
      : element("p", { class: "muted" }, "There was no answer."));
}

function firstPair(runs) {
  const [left] = runs;
  return [left, runs.find((run) => run.variant !== left.variant && run.input === left.input
    && run.repeat === left.repeat) ?? runs[1]];
}

function pairPanel(report, runs) {
  const holder = element("div", { class: "stack" });
  const draw = (left, right) => {
    const focused = [...holder.querySelectorAll("select")].indexOf(document.activeElement);
    holder.replaceChildren(
      element("div", { class: "columns" },
        pairSide("Left", report, runs, left, (run) => draw(run, right)),
        pairSide("Right", report, runs, right, (run) => draw(left, run))),
      pairState(left, right));
    holder.querySelectorAll("select")[focused]?.focus();
  };
  return panel("Two runs side by side", null, () => {
    if (runs.length < 2)
      return nothing("There are no two runs.");
    draw(...firstPair(runs));
    return holder;
  }, { class: "wide" });
}
