// The report of a sweep: rate and latency for each value of one setting, with a line for each value
// of the other one.

function failuresOfRow(row) {
  return isNumber(row.failed) ? row.failed : sum(Object.values(row.failed ?? {}));
}

// Uses a log axis for numbers that differ enough. Other values stand side by side, in their order.
function sweepAxis(values) {
  const numbers = values.map(Number);
  const numeric = values.length > 1 && numbers.every((number, index) => Number.isFinite(number)
    && number > 0 && String(values[index]).trim() !== "");
  if (!numeric) {
    const scale = linearScale(-0.5, values.length - 0.5);
    return { scale, ticks: () => values.map((_, index) => index),
      placeOf: (text) => values.indexOf(text),
      tick: (index) => shortened(values[index], 18), name: (index) => values[index] };
  }
  const low = smallest(numbers);
  const high = largest(numbers);
  const margin = (high / low) ** 0.04;
  return { scale: logScale(low / margin, high * margin), placeOf: Number,
    ticks: () => [...numbers].sort((left, right) => left - right), tick: String, name: String };
}

// Returns true if the figure is a time. A time of zero means that nothing was answered.
function isTime(key) {
  return key !== "appendsPerSecond";
}

function sweepSeries(report, key, axis) {
  const [first, second] = report.vary;
  const lines = second ? second.values : [null];
  return lines.map((value, index) => ({
    name: second ? `${second.name} ${value}` : key,
    ...styleOf(index),
    dots: true,
    points: report.rows
      .filter((row) => value === null || row.values?.[second.name] === value)
      .map((row) => [axis.placeOf(row.values?.[first.name]), row[key], row.holds === false])
      .filter(([across, up]) => isNumber(across) && isNumber(up) && (up > 0 || !isTime(key)))
      .sort((left, right) => left[0] - right[0]),
  })).filter((series) => series.points.length > 0);
}

function sweepLegend(report, series) {
  const entries = report.vary.length < 2 ? [] : series.map((each) => ({ name: each.name,
    swatch: swatchOf(each) }));
  if (report.rows.some((row) => row.holds === false))
    entries.push({ name: "verdict fails", swatch: "round hollow cbad" });
  return entries.length > 0 ? legend(entries) : null;
}

function sweepChart(report, key, text, axisOf) {
  const across = sweepAxis(report.vary[0].values);
  const series = sweepSeries(report, key, across);
  const values = series.flatMap((each) => each.points.map((point) => point[1]));
  if (values.length === 0)
    return nothing("No combination was measured.");
  const y = axisOf(values);
  const made = lineChart({
    label: `${text} over ${report.vary[0].name}: from ${y.text(smallest(values))} to `
      + `${y.text(largest(values))}.`,
    height: 290,
    x: { ...across, text: (at) => `${report.vary[0].name} ${across.name(at)}` },
    y, series,
  });
  return [sweepLegend(report, series), made];
}

function rateAxis(values) {
  return { scale: amountScale(largest(values)), tick: formatCountTick,
    text: (rate) => `${formatRate(rate)} /s` };
}

function sweepFigures(report) {
  const rows = report.rows.filter((row) => isNumber(row.appendsPerSecond));
  const fastest = rows.reduce((best, row) => (
    best === null || row.appendsPerSecond > best.appendsPerSecond ? row : best), null);
  const answered = report.rows.filter((row) => row.p99 > 0);
  const quickest = answered.reduce((best, row) => (
    best === null || row.p99 < best.p99 ? row : best), null);
  const broken = report.rows.filter((row) => row.holds === false).length;
  const failures = sum(report.rows.map(failuresOfRow));
  const where = (row) => (row ? shortened(report.vary.map(({ name }) => `${name} ${
    row.values?.[name] ?? NONE}`).join(", "), 70) : null);
  return figuresRow([
    { name: "highest rate", value: fastest ? `${formatRate(fastest.appendsPerSecond)} /s` : NONE,
      aside: where(fastest) },
    { name: "lowest p99", value: formatTime(quickest?.p99), aside: where(quickest) },
    { name: "combinations", value: formatCount(report.rows.length) },
    { name: "verdicts that fail", value: formatCount(broken), wrong: broken > 0 },
    { name: "failed appends", value: formatCount(failures), wrong: failures > 0 },
  ]);
}

function verdictWord(row) {
  return row.holds === true ? "holds" : row.holds === false ? "FAILS" : "not checked";
}

function sweepTable(report) {
  const best = {
    appendsPerSecond: largest(report.rows.map((row) => row.appendsPerSecond)),
    ...Object.fromEntries(["p50", "p99", "p99_9"].map((key) => [key, smallest(
      report.rows.map((row) => row[key]).filter((time) => time > 0))])),
  };
  const several = report.rows.length > 1;
  const measured = (name, key, format) => ({
    name, number: true,
    mark: (row) => (several && isNumber(row[key]) && row[key] === best[key] ? "best" : ""),
    node: (row) => element("span", { class: "value" }, format(row[key])),
  });
  return table([
    ...report.vary.map(({ name }) => ({
      name, head: true, words: true, text: (row) => row.values?.[name] ?? NONE })),
    measured("appends per second", "appendsPerSecond", formatRate),
    measured("p50", "p50", formatTime), measured("p99", "p99", formatTime),
    measured("p99.9", "p99_9", formatTime),
    { name: "failed", number: true, mark: (row) => (failuresOfRow(row) > 0 ? "bad" : ""),
      text: (row) => formatCount(failuresOfRow(row)) },
    { name: "verdict", mark: (row) => (row.holds === false ? "bad" : ""), text: verdictWord },
  ], report.rows, { label: "All combinations" });
}

// The facts about the base settings, without those that are varied.
const FACTS_OF_SETTINGS = { arrival: "load", rate: "load", callers: "callers",
  duration: "ends after", appends: "ends after", apps: "apps, users, sessions",
  users: "apps, users, sessions", sessions: "apps, users, sessions", zipf: "appends go",
  hot: "appends go", ops: "mix", payload: "text in each event", readers: "readers beside" };

function sharedFacts(settings, names) {
  const varied = new Set(names.map((name) => FACTS_OF_SETTINGS[name] ?? name));
  return settingFacts(settings).map(([name, value]) => [name, varied.has(name) ? "varied" : value]);
}

function drawSweepReport(page, report) {
  const given = report.settings ?? {};
  const whole = { ...report, vary: report.vary ?? [], rows: report.rows ?? [] };
  const varied = whole.vary.map(({ name }) => name);
  const names = varied.join(" and ");
  const settings = varied.includes("callers") ? { ...given, callers: null } : given;
  page.append(pageHead(document.title, [report.startedAt ? formatMoment(report.startedAt) : null,
    names ? `varies ${names}` : null, varied.includes("store") ? null : settings.store,
    varied.includes("rate") ? null : loadOf(settings)].filter(Boolean)));
  if (whole.vary.length === 0 || whole.rows.length === 0)
    page.append(panel("Sweep", null, () => nothing("No combination was measured.")));
  const grid = element("div", { class: "grid" });
  if (whole.vary.length > 0 && whole.rows.length > 0) {
    page.append(sweepFigures(whole));
    const by = whole.vary[0].name;
    grid.append(
      panel("Rate", `appends per second, by ${by}`, () => sweepChart(whole, "appendsPerSecond",
        "Appends per second", rateAxis)),
      panel("Latency", `p99, by ${by}`, () => sweepChart(whole, "p99", "p99",
        (values) => timeAxis(values, true))),
      panel("All combinations", "the best of a column is marked", () => sweepTable(whole),
        { class: "wide" }));
  }
  grid.append(surroundings(report, sharedFacts(settings, varied)));
  page.append(grid);
}
