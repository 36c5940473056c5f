// The report of an experiment: costs and answers of the variants, and the details of each run.

const SPREADS = [
  { key: "wall", name: "wall", format: formatTime, better: "low" },
  { key: "longestLane", name: "longest lane", format: formatTime, better: "low" },
  { key: "parallelism", name: "parallelism", format: formatNumber, better: "high" },
  { key: "overheadPerTurn", name: "overhead per turn", format: formatTime, better: "low" },
  { key: "modelCalls", name: "model calls", format: formatNumber },
  { key: "toolCalls", name: "tool calls", format: formatNumber },
  { key: "tokens", name: "tokens", format: formatNumber, better: "low" },
  { key: "cost", name: "cost", format: formatCost, better: "low" },
];

// Costs of single runs are small parts of the currency's unit.
function formatCost(amount) {
  return isNumber(amount) ? amount.toFixed(amount >= 1 || amount === 0 ? 2 : 6) : "–";
}

function failuresOfVariant(variant) {
  return sum(Object.values(variant.failed ?? {}));
}

function hasFailed(run) {
  return run.error !== null && run.error !== undefined;
}

// Returns the best of the known values; null if fewer than two are known or all are equal.
function bestOf(values, better) {
  const known = values.filter(isNumber);
  const [low, high] = [smallest(known), largest(known, -Infinity)];
  if (!better || known.length < 2 || low === high)
    return null;
  return better === "low" ? low : high;
}

function spreadCell(spread, format) {
  if (!isNumber(spread?.mean))
    return NONE;
  const parts = [element("span", { class: "value" }, format(spread.mean))];
  if (isNumber(spread.low) && isNumber(spread.high) && spread.low !== spread.high)
    parts.push(element("span", { class: "aside" },
      `${format(spread.low)} \u2013 ${format(spread.high)}`));
  return parts;
}

function spreadColumn({ key, name, format, better }, variants) {
  const best = bestOf(variants.map((variant) => variant[key]?.mean), better);
  return {
    name, number: true, node: (variant) => spreadCell(variant[key], format),
    mark: (variant) => (best !== null && variant[key]?.mean === best ? "best" : ""),
  };
}

function quantileColumn(name, key, variants) {
  const best = bestOf(variants.map((variant) => variant.wall?.[key]), "low");
  return {
    name, number: true,
    node: (variant) => element("span", { class: "value" }, formatTime(variant.wall?.[key])),
    mark: (variant) => (best !== null && variant.wall?.[key] === best ? "best" : ""),
  };
}

function variantTable(variants) {
  const agreed = bestOf(variants.map((variant) => variant.agreement), "high");
  const [wall, ...others] = SPREADS.filter(({ key }) => variants.some(
    (variant) => isNumber(variant[key]?.mean))).map((each) => spreadColumn(each, variants));
  return table([
    { name: "variant", head: true, words: true, node: variantName },
    { name: "runs", number: true, text: (variant) => formatCount(variant.runs) },
    { name: "failed", number: true,
      mark: (variant) => (failuresOfVariant(variant) > 0 ? "bad" : ""),
      text: (variant) => formatCount(failuresOfVariant(variant)) },
    wall, quantileColumn("wall p50", "p50", variants), quantileColumn("wall p90", "p90", variants),
    ...others,
    { name: "agreement", number: true,
      node: (variant) => element("span", { class: "value" }, formatShare(variant.agreement)),
      mark: (variant) => (agreed !== null && variant.agreement === agreed ? "best" : "") },
  ].filter(Boolean), variants, { label: "Variants" });
}

function variantName(variant) {
  const changes = variant.changes ?? [];
  return [element("span", {}, named(variant.name)), element("span", { class: "aside" },
    changes.length > 0 ? changes.join("; ") : "no changes")];
}

function errorText(run) {
  return [run.error, run.reason].filter(Boolean).map(textOf).join(": ");
}

function runHeading(run) {
  return `${shortened(named(run.variant), 60)}, input ${run.input + 1}, repeat ${run.repeat + 1}`;
}

function runRows(run) {
  return [["wall", formatTime(run.wall)], ["longest lane", formatTime(run.longestLane)],
    ["work", formatTime(run.work)], ["model calls", formatCount(run.modelCalls)],
    ...(hasFailed(run) ? [["error", shortened(errorText(run), 160)]] : [])];
}

// Wall time, a row per variant

function wallScale(values) {
  const positive = values.filter((value) => value > 0);
  const log = largest(positive) / smallest(positive) > 30;
  return log ? logScaleOf(positive) : spanScale(smallest(positive), largest(positive));
}

function stripLayout(variants, width) {
  const above = width < 480;
  const gutter = above ? 8 : Math.min(Math.ceil(largest(variants.map((variant) => textWidth(
    named(variant.name))))) + 20, 240);
  const pitch = above ? 58 : Math.min(Math.max(300 / variants.length, 40), 64);
  return { above, left: gutter, right: width - 14, pitch, height: variants.length * pitch + 34 };
}

// Runs are in the upper part of a row. A run always has the same height, and neighbours have
// different ones.
function jitterOf(index) {
  return ((index * 0.618034) % 1 - 0.5) * 12 - 6;
}

function stripRow(svg, variant, layout, top, across) {
  const middle = top + (layout.above ? 36 : layout.pitch / 2);
  svg.append(shape("text", layout.above ? { x: 2, y: top + 14 }
    : { x: layout.left - 10, y: middle + 4, "text-anchor": "end" },
  fitted(named(variant.name), layout.above ? layout.right : layout.left - 14)));
  const wall = variant.wall ?? {};
  if (isNumber(wall.min) && isNumber(wall.max))
    svg.append(shape("line", { class: "baseline", x1: across(wall.min), x2: across(wall.max),
      y1: middle + 11, y2: middle + 11 }));
  return middle;
}

function stripMean(svg, wall, middle, across) {
  const parts = shape("g", { class: "c2" });
  const low = middle + 11;
  if (isNumber(wall?.p50))
    parts.append(shape("path", { class: "baseline", d: `M${across(wall.p50)} ${low - 6}v12` }));
  if (isNumber(wall?.low) && isNumber(wall?.high))
    parts.append(shape("rect", { class: "bar", x: across(wall.low), y: low - 2,
      width: Math.max(across(wall.high) - across(wall.low), 1), height: 4 }));
  if (isNumber(wall?.mean)) {
    const at = across(wall.mean);
    parts.append(shape("path", { class: "bar",
      d: `M${at} ${low - 6}l6 6l-6 6l-6 -6z` }));
  }
  svg.append(parts);
}

function meanPoint(variant) {
  const wall = variant.wall;
  const interval = isNumber(wall.low) && isNumber(wall.high)
    ? [["95 % interval", `${formatTime(wall.low)} \u2013 ${formatTime(wall.high)}`]] : [];
  return { heading: shortened(named(variant.name), 120), rows: [["mean", formatTime(wall.mean)],
    ...interval, ["min", formatTime(wall.min)], ["p50", formatTime(wall.p50)],
    ["p90", formatTime(wall.p90)], ["max", formatTime(wall.max)]] };
}

function drawStrip(variants, runs, scale, width, choose) {
  const layout = stripLayout(variants, width);
  const svg = canvas(width, layout.height, stripGist(variants));
  const bottom = layout.height - 26;
  const frame = { left: layout.left, right: layout.right, bottom,
    width: layout.right - layout.left };
  const across = (value) => placeX(frame, scale, value);
  const [points, placed] = [[], []];
  const add = (point, at) => {
    points.push(point);
    placed.push(at);
  };
  drawXAxis(svg, frame, { scale, tick: formatTimeTick }, width);
  variants.forEach((variant, index) => {
    const middle = stripRow(svg, variant, layout, index * layout.pitch, across);
    (runs.get(variant.name) ?? []).forEach((run, number) => {
      const at = [across(run.wall), middle + jitterOf(number)];
      svg.append(hasFailed(run) ? crossShape(...at)
        : shape("circle", { class: "dot faint c1", cx: at[0], cy: at[1], r: 3 }));
      add({ heading: runHeading(run), rows: runRows(run), pick: () => choose(run) }, at);
    });
    stripMean(svg, variant.wall, middle, across);
    if (isNumber(variant.wall?.mean))
      add(meanPoint(variant), [across(variant.wall.mean), middle + 11]);
  });
  const overlay = shape("g", {});
  svg.append(overlay);
  makeInteractive(svg, overlay, pointFinder(points, placed, overlay));
  return svg;
}

function stripGist(variants) {
  const known = variants.filter((variant) => isNumber(variant.wall?.mean));
  if (known.length === 0)
    return "Wall time per variant.";
  const fastest = known.reduce((best, variant) => (
    variant.wall.mean < best.wall.mean ? variant : best));
  return `Wall time per variant; the lowest mean is ${formatTime(fastest.wall.mean)}, `
    + `of ${shortened(named(fastest.name), 60)}.`;
}

function runsByVariant(runs) {
  const grouped = new Map();
  for (const run of runs)
    if (isNumber(run.wall))
      grouped.set(run.variant, [...grouped.get(run.variant) ?? [], run]);
  return grouped;
}

function wallPanel(variants, runs, choose) {
  return panel("Wall time", "click a run to see it below", () => {
    const values = [...runs.map((run) => run.wall),
      ...variants.flatMap((variant) => [variant.wall?.mean, variant.wall?.low, variant.wall?.high,
        variant.wall?.max])].filter((value) => value > 0);
    if (values.length === 0)
      return nothing("No run took any time.");
    const scale = wallScale(values);
    const grouped = runsByVariant(runs);
    const entries = [{ name: "run", swatch: "round c1" },
      { name: "mean with its 95 % interval", swatch: "c2" }];
    if (runs.some(hasFailed))
      entries.splice(1, 0, { name: "failed run", swatch: "times" });
    return [legend(entries), chart(variants.length * 36 + 34,
      (width) => drawStrip(variants, grouped, scale, width, choose)),
    element("p", { class: "note" },
      "The thin line spans all runs that did not fail; its upright mark is the median.")];
  }, { class: variants.length > 8 ? "wide" : "" });
}

function againstPanel(variants, runs, choose) {
  return panel("Wall time against longest lane", "on the line, only the lane took time",
    () => {
      const known = runs.filter((run) => run.wall > 0 && run.longestLane > 0);
      if (known.length === 0)
        return nothing("No run has both.");
      const names = variants.map((variant) => variant.name);
      const coloured = names.length <= 8;
      const colorOf = (name) => (coloured ? styleOf(Math.max(names.indexOf(name), 0)).color : "c1");
      const values = known.flatMap((run) => [run.wall, run.longestLane]);
      const scale = wallScale(values);
      const axis = { scale, tick: formatTimeTick, text: formatTime };
      const told = names.filter((name) => known.some((run) => run.variant === name));
      const entries = coloured ? told.map((name) => ({ name: shortened(named(name), 60),
        swatch: `round ${colorOf(name)}` })) : [{ name: "run", swatch: "round c1" }];
      if (known.some(hasFailed))
        entries.push({ name: "failed run", swatch: "times" });
      return [legend(entries), scatterChart({
        label: `Wall time, upwards, against the longest lane, across, of ${
          many(known.length, "run")}.`,
        x: axis, y: axis, diagonal: true,
        points: known.map((run) => ({ x: run.longestLane, y: run.wall, color: colorOf(run.variant),
          failed: hasFailed(run), heading: runHeading(run), rows: runRows(run),
          pick: () => choose(run) })),
      }), element("p", { class: "note" }, "Up: wall time. Across: longest lane.")];
    }, { class: variants.length > 8 ? "wide" : "" });
}

// Answers

function valueList(values) {
  const sorted = [...values].sort((left, right) => right.count - left.count);
  const line = ({ value, count }) => {
    const text = JSON.stringify(value) ?? NONE;
    return element("li", { title: text.length > 80 ? shortened(text, 1000) : null },
      element("span", { class: "times" }, `${formatCount(count)}\u00d7`),
      element("span", {}, shortened(text, 80)));
  };
  const parts = [element("ul", { class: "values" }, sorted.slice(0, 3).map(line))];
  if (sorted.length > 3)
    parts.push(folded(`${sorted.length - 3} more`,
      () => element("ul", { class: "values" }, sorted.slice(3).map(line))));
  return parts;
}

function keyPanel(variants) {
  const keys = [...new Set(variants.flatMap((variant) => Object.keys(variant.keys ?? {})))];
  return panel("Answers", "values of the state's keys at the end of runs, by how often", () => {
    if (keys.length === 0)
      return nothing("The experiment names no keys to compare.");
    return table([
      { name: "variant", head: true, words: true, text: (variant) => named(variant.name) },
      { name: "agreement", number: true, text: (variant) => formatShare(variant.agreement) },
      ...keys.map((key) => ({ name: shortened(key, 40), title: key, words: true,
        node: (variant) => (variant.keys?.[key]?.length > 0 ? valueList(variant.keys[key])
          : NONE) })),
    ], variants, { label: "Answers by variant" });
  }, { class: "wide" });
}

function errorPanel(variants, runs, choose) {
  const failed = runs.filter(hasFailed);
  const counts = variants.flatMap((variant) => Object.entries(variant.failed ?? {})
    .filter(([, count]) => count > 0).map(([code, count]) => ({ variant, code, count })));
  if (failed.length === 0 && counts.length === 0)
    return null;
  return panel("Errors", null, () => element("div", { class: "stack" },
    counts.length > 0 ? table([
      { name: "variant", head: true, words: true, text: (row) => named(row.variant.name) },
      { name: "code", words: true, text: (row) => row.code },
      { name: "runs", number: true, text: (row) => formatCount(row.count) },
      { name: "of its runs", number: true, text: (row) => (row.variant.runs > 0
        ? formatShare(row.count / row.variant.runs) : NONE) },
    ], counts, { label: "Errors by code" }) : null,
    failed.length > 0 ? folded(many(failed.length, "failed run"), () => table([
      { name: "run", head: true, words: true, text: runHeading },
      { name: "error", words: true, text: errorText },
      { name: "", node: (run) => button("Show", () => choose(run)) },
    ], failed, { label: "Failed runs" })) : null), { class: "wide" });
}

// One run

// Quotes for a shell where they are needed.
function shellWord(text) {
  const word = String(text ?? "");
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function traceCommand(report, session) {
  return `troupe trace --store ${shellWord(report.settings?.store ?? "STORE")} --app ${
    shellWord(session.app)} --user ${shellWord(session.user)} --session ${shellWord(session.id)}`;
}

function titled(title, node) {
  return element("div", {}, element("h3", {}, title), node);
}

function runFigures(run) {
  return figuresRow([
    { name: "wall time", value: formatTime(run.wall) },
    { name: "longest lane", value: formatTime(run.longestLane) },
    { name: "work", value: formatTime(run.work) },
    { name: "model calls", value: formatCount(run.modelCalls) },
    { name: "tool calls", value: formatCount(run.toolCalls) },
    { name: "tokens", value: formatCount(run.tokens) },
    ...(run.cost ? [{ name: `cost, ${run.cost.currency}`, value: formatCost(run.cost.amount) }] : []),
  ]);
}

function runView(report, run) {
  const state = Object.entries(run.state ?? {});
  return element("div", { class: "stack" }, runFigures(run),
    hasFailed(run) ? titled("Error", element("pre", { class: "text error" }, errorText(run)))
      : null,
    titled("Timeline", run.timeline ? timelineView(run.timeline)
      : element("p", { class: "muted" }, "No timeline was kept of this run.")),
    titled("Input", element("pre", { class: "text", tabindex: "0" },
      report.inputs?.[run.input] ?? NONE)),
    titled("Output", run.output ? element("pre", { class: "text", tabindex: "0" },
      textOf(run.output)) : element("p", { class: "muted" }, "There was no output.")),
    state.length > 0 ? titled("State", table([
      { name: "key", head: true, words: true, text: ([key]) => key },
      { name: "value", words: true, text: ([, value]) => JSON.stringify(value) },
    ], state, { label: "State at the end" })) : null,
    run.session ? titled("Session", element("code", { class: "address" },
      traceCommand(report, run.session))) : null);
}

function chooser(name, options, chosen, act) {
  const made = element("select", {}, options.map(([, text]) => element("option", {}, text)));
  made.selectedIndex = options.findIndex(([value]) => value === chosen);
  made.addEventListener("change", () => act(options[made.selectedIndex][0]));
  return element("label", {}, name, made);
}

function distinct(values) {
  return [...new Set(values)];
}

// Returns the run that fits best if there is none for the chosen combination.
function closestRun(runs, wanted) {
  const fits = (run) => (run.variant === wanted.variant ? 4 : 0)
    + (run.input === wanted.input ? 2 : 0) + (run.repeat === wanted.repeat ? 1 : 0);
  return runs.reduce((best, run) => (fits(run) > fits(best) ? run : best));
}

function runChoosers(report, runs, run, show) {
  const turn = (key) => (value) => show(closestRun(
    key === "variant" ? runs.filter((each) => each.variant === value)
      : key === "input" ? runs.filter((each) => each.variant === run.variant
        && each.input === value)
        : runs.filter((each) => each.variant === run.variant && each.input === run.input
          && each.repeat === value),
    { variant: run.variant, input: run.input, repeat: run.repeat, [key]: value }));
  const ofVariant = runs.filter((each) => each.variant === run.variant);
  const ofInput = ofVariant.filter((each) => each.input === run.input);
  return element("div", { class: "choosers" },
    chooser("Variant", distinct(runs.map((each) => each.variant)).map(
      (name) => [name, shortened(named(name), 60)]), run.variant, turn("variant")),
    chooser("Input", distinct(ofVariant.map((each) => each.input)).map((index) => [index,
      `${index + 1}: ${shortened(report.inputs?.[index] ?? "", 60)}`]), run.input,
    turn("input")),
    chooser("Repeat", ofInput.map((each) => [each.repeat,
      `${each.repeat + 1}${hasFailed(each) ? ", failed" : ""}`]), run.repeat,
    turn("repeat")));
}

function runPanel(report, runs) {
  const holder = element("div", {});
  const show = (run) => {
    const focused = [...holder.querySelectorAll("select")].indexOf(document.activeElement);
    holder.replaceChildren(runChoosers(report, runs, run, show), runView(report, run));
    holder.querySelectorAll("select")[focused]?.focus();
  };
  const made = panel("One run", null, () => {
    if (runs.length === 0)
      return nothing("There is no run.");
    show(runs.find((run) => run.timeline) ?? runs[0]);
    return holder;
  }, { class: "wide long" });
  return { made, choose: (run) => {
    show(run);
    made.scrollIntoView({ block: "start" });
  } };
}

function experimentFigures(variants, runs, report) {
  const failed = runs.filter(hasFailed).length;
  const known = variants.filter((variant) => isNumber(variant.wall?.mean));
  const fastest = known.length === 0 ? null : known.reduce((best, variant) => (
    variant.wall.mean < best.wall.mean ? variant : best));
  return figuresRow([
    { name: "variants", value: formatCount(variants.length) },
    { name: "inputs", value: formatCount(report.inputs?.length ?? 0) },
    { name: "repeats of each", value: formatCount(report.repeats) },
    { name: "runs", value: formatCount(runs.length) },
    { name: "failed runs", value: formatCount(failed), wrong: failed > 0 },
    { name: "lowest mean wall", value: formatTime(fastest?.wall.mean),
      aside: fastest ? shortened(named(fastest.name), 50) : null },
  ]);
}

function experimentSettings(report) {
  return [["file", report.file ?? NONE], ["store", report.settings?.store ?? NONE],
    ["runs at once", formatCount(report.settings?.atOnce)],
    ["repeats", formatCount(report.repeats)], ["seed", String(report.seed ?? NONE)],
    ...(report.from ? [["session", ["app", "user", "session"].map(
      (field) => named(report.from[field])).join(" / ")],
    ["revision", formatCount(report.from.revision)]] : []),
    ...Object.entries(report.settings?.state ?? {}).map(
      ([key, value]) => [`state ${shortened(key, 40)}`, JSON.stringify(value)])];
}

function drawExperimentReport(page, report) {
  const [variants, runs] = [report.variants ?? [], report.runs ?? []];
  const { made: oneRun, choose } = runPanel(report, runs);
  page.append(
    pageHead(document.title, [report.startedAt ? formatMoment(report.startedAt) : null,
      report.name ? `experiment ${report.name}` : null, report.file,
      isNumber(report.elapsedSeconds) ? formatSeconds(report.elapsedSeconds) : null,
      report.from ? `from revision ${formatCount(report.from.revision)} of session ${
        report.from.session}` : null,
      report.interrupted ? "interrupted before its end" : null]),
    experimentFigures(variants, runs, report),
    fill(element("div", { class: "grid" }), {}, [
      panel("Variants", "means, with their 95 % intervals; the best of a column is marked",
        () => (variants.length === 0 ? nothing("There is no variant.")
          : variantTable(variants)), { class: "wide" }),
      treePanel(report, variants, runs, choose),
      wallPanel(variants, runs, choose), againstPanel(variants, runs, choose),
      keyPanel(variants), errorPanel(variants, runs, choose), pairPanel(report, runs), oneRun,
      surroundings(report, experimentSettings(report)),
    ]));
}
