// The report of one load test: the verdict, the speed, its course over time, and the settings.

const VERDICT_COUNTS = [["acknowledged", "acknowledged"], ["lost", "lost"],
  ["doubled", "doubled"], ["ghosts", "ghosts"], ["reordered", "out of order"], ["torn", "torn"],
  ["wrongTotals", "wrong totals"]];

function verdictState(verdict) {
  if (!verdict?.checked)
    return ["unchecked", "Not checked", verdict?.reason ?? "No verdict was made."];
  if (!verdict.holds)
    return ["fails", "FAILS", "The stored events differ from the acknowledged ones."];
  if (verdict.acknowledged === 0)
    return ["unchecked", "Holds", "No append was acknowledged, so none could be lost."];
  return ["holds", "Holds",
    "Every acknowledged append is stored once, in order, and all totals are exact."];
}

function verdictPanel(verdict, expectations) {
  const broken = (expectations ?? []).filter((each) => !each.holds);
  const [state, word, sentence] = broken.length > 0 && verdict?.holds
    ? ["fails", "Missed", "Every acknowledged append is stored, but an expectation does not hold."]
    : verdictState(verdict);
  const made = element("section", { class: `verdict ${state}`, "aria-label": "Verdict" },
    element("p", {}, element("span", { class: "word" }, word), sentence));
  if (verdict?.checked)
    made.append(element("dl", { class: "counts" }, VERDICT_COUNTS.map(([key, name]) => element(
      "div", { class: key !== "acknowledged" && verdict[key] > 0 ? "wrong" : null },
      element("dt", {}, name), element("dd", {}, formatCount(verdict[key] ?? 0))))));
  const findings = [...(verdict?.findings ?? []), ...broken.map((each) => each.finding)];
  if (findings.length > 0)
    made.append(element("ul", { tabindex: "0", "aria-label": "Findings" },
      findings.map((finding) => element("li", {}, finding))));
  return made;
}

function isOpen(report) {
  return report.settings?.arrival === "open";
}

function failuresOf(report) {
  return sum(Object.values(report.failed ?? {}));
}

function headlineFigures(report) {
  const times = report.response ?? {};
  const failures = failuresOf(report);
  const time = (name, key, aside) => ({
    name, value: times.count > 0 ? formatTime(times[key]) : NONE, aside });
  const offered = isOpen(report) ? report.offeredPerSecond ?? report.settings.rate : null;
  return figuresRow([
    { name: "appends", value: `${formatRate(report.appendsPerSecond)} /s`,
      aside: isNumber(offered) ? `of ${formatRate(offered)} /s offered`
        : `${formatCount(report.stored)} stored` },
    time("p50", "p50", isOpen(report) ? "from when it was due" : "from call to answer"),
    time("p99", "p99"),
    time("p99.9", "p99_9"),
    time("longest", "max"),
    { name: "failures", value: formatCount(failures), wrong: failures > 0,
      aside: failures > 0 && report.sent > 0
        ? `${formatShare(failures / report.sent)} of all sent`
        : `of ${formatCount(report.sent)} sent` },
  ]);
}

// Returns the rows with their lengths in seconds. Leaves out a last one of a few milliseconds,
// whose rate would mean nothing.
function timedRows(seconds) {
  let before = 0;
  return seconds.filter((row) => isNumber(row.atSeconds)).map((row) => {
    const lasted = row.atSeconds - before;
    before = row.atSeconds;
    return { ...row, lasted };
  }).filter((row, index, rows) => row.lasted >= 0.2 || (rows.length === 1 && row.lasted > 0));
}

function ratesOver(seconds, key) {
  return seconds.filter((row) => isNumber(row[key]))
    .map((row) => [row.atSeconds, row[key] / row.lasted]);
}

function secondsAxis(seconds) {
  const last = largest(seconds.map((row) => row.atSeconds), 0);
  return {
    scale: linearScale(0, last || 1), tick: formatSecondsTick,
    text: (at) => `after ${formatSeconds(at)}`,
  };
}

function throughputPanel(report, seconds) {
  return panel("Throughput", "appends per second", () => {
    const stored = ratesOver(seconds, "stored");
    if (stored.length === 0)
      return nothing("The test was too short for a row per second.");
    const offered = isOpen(report) ? ratesOver(seconds, "offered") : [];
    const failed = ratesOver(seconds, "failed").filter(([, rate]) => rate > 0);
    const series = [{ name: "stored", color: "c1", points: stored }];
    if (offered.length > 0)
      series.push({ name: "offered", color: "cq", dash: "6 4", points: offered });
    if (failed.length > 0)
      series.push({ name: "failed", color: "cbad", bars: true, points: failed });
    const rates = series.flatMap((each) => each.points.map((point) => point[1]));
    const average = sum(stored.map((point) => point[1])) / stored.length;
    return [legendOf(series), lineChart({
      label: `Throughput over ${formatSeconds(report.elapsedSeconds)}: `
        + `${formatRate(average)} appends per second on average, `
        + `${many(failuresOf(report), "failure")}.`,
      x: secondsAxis(seconds),
      y: { scale: amountScale(largest(rates)), tick: formatCountTick,
        text: (rate) => `${formatRate(rate)} /s` },
      series,
    })];
  });
}

function legendOf(series) {
  return legend(series.map((each) => ({
    name: [each.name, each.meaning].filter(Boolean).join(", "), swatch: swatchOf(each) })));
}

function latencyOverTimePanel(report, seconds) {
  const aside = isOpen(report) ? "from when it was due" : "from call to answer";
  return panel("Latency over time", aside, (head) => {
    // A second without an append has no latency; zero stands for it in the report.
    const over = (key) => seconds.map((row) => [row.atSeconds, row[key] > 0 ? row[key] : null]);
    const series = [{ name: "max", color: "cq", thin: true, points: over("max") },
      { name: "p99", color: "c2", points: over("p99") },
      { name: "p50", color: "c1", points: over("p50") }];
    const values = series.flatMap((each) => each.points.map((point) => point[1]))
      .filter((value) => value > 0);
    if (values.length === 0)
      return nothing(report.response?.count > 0
        ? "The test was too short for a row per second."
        : "No append was answered, so there is no latency.");
    const draw = (log) => lineChart({
      label: `Latency over time: p99 up to ${formatTime(largest(over("p99").map((at) => at[1])))}, `
        + `longest ${formatTime(largest(values))}.`,
      x: secondsAxis(seconds), y: timeAxis(values, log), series,
    });
    return [legendOf(series), eitherScale(head, draw)];
  });
}

// Returns the upper end of the bucket that starts at `low`; see load/histogram.hpp.
function bucketHigh(low, isLast, times) {
  if (isLast)
    return times.max;
  const shift = Math.max(Math.floor(Math.log2(Math.max(low, 1))) - 10, 0);
  return Math.min(low + 2 ** shift - 1, times.max);
}

// Points [1 / (1 - share), time], in steps that halve the distance to 1 every few rows, as
// HdrHistogram's PercentileIterator has them. The last point is the longest time.
function percentileCurve(times, perHalving = 12) {
  const buckets = times?.buckets ?? [];
  const total = sum(buckets.map(([, count]) => count));
  if (total === 0)
    return [];
  const points = [];
  const last = Math.max(Math.log2(total), 1) * perHalving;
  let [index, below] = [0, buckets[0][1]];
  for (let step = 0; step <= last; ++step) {
    const inverse = 2 ** (step / perHalving);
    const wanted = Math.max(Math.ceil(total * (1 - 1 / inverse) - 1e-6), 1);
    while (below < wanted && index + 1 < buckets.length)
      below += buckets[++index][1];
    points.push([inverse, bucketHigh(buckets[index][0], index + 1 === buckets.length, times)]);
  }
  points.push([Math.max(total, 2) * 1.0001, times.max]);
  return points;
}

function percentileText(inverse) {
  const distance = 1 / inverse;
  const digits = Math.max(Math.ceil(-Math.log10(distance)) - 1, 0) + 1;
  return `${Number((100 * (1 - distance)).toFixed(inverse < 2 ? 0 : digits))} %`;
}

function percentileAxis(highest) {
  const decades = Math.log10(Math.max(highest, 2));
  const ticksIn = (width) => {
    const ticks = width / decades > 150 ? [1, 2, 4] : [1];
    for (let inverse = 10; inverse <= highest; inverse *= 10)
      ticks.push(inverse);
    return ticks.filter((tick) => tick <= highest);
  };
  return {
    scale: logScale(1, Math.max(highest, 2)), ticks: ticksIn,
    tick: percentileText, text: (inverse) => `${percentileText(inverse)} within`,
  };
}

function percentilePanel(report, isWide) {
  return panel("Latency by percentile", null, (head) => {
    const series = isOpen(report)
      ? [{ name: "response", meaning: "from when it was due", color: "c1",
        points: percentileCurve(report.response) },
      { name: "service", meaning: "from call to answer", color: "c3", dash: "6 4",
        points: percentileCurve(report.service) }]
      : [{ name: "service", meaning: "from call to answer", color: "c1",
        points: percentileCurve(report.response) }];
    const drawn = series.filter((each) => each.points.length > 0);
    if (drawn.length === 0)
      return nothing("No append was answered, so there is no latency.");
    const values = drawn.flatMap((each) => each.points.map((point) => point[1]));
    const highest = largest(drawn.flatMap((each) => each.points.map((point) => point[0])));
    const draw = (log) => lineChart({
      label: `Latency by percentile: half within ${formatTime(report.response?.p50)}, 99 % within `
        + `${formatTime(report.response?.p99)}, all within ${formatTime(report.response?.max)}.`,
      x: percentileAxis(highest), y: timeAxis(values, log), series: drawn,
    });
    return [legendOf(drawn), eitherScale(head, draw)];
  }, { class: isWide ? "wide" : "" });
}

// One bar per size, or per power of two when there are too many.
function batchBars(batches) {
  const sizes = largest(batches.map(([events]) => events));
  const commits = sum(batches.map(([, count]) => count));
  const events = sum(batches.map(([size, count]) => size * count));
  const ranges = sizes <= 24
    ? Array.from({ length: sizes }, (_, index) => [index + 1, index + 1])
    : Array.from({ length: Math.floor(Math.log2(sizes)) + 1 },
      (_, power) => [2 ** power, 2 ** (power + 1) - 1]);
  return ranges.map(([low, high]) => {
    const inside = batches.filter(([size]) => size >= low && size <= high);
    const count = sum(inside.map(([, number]) => number));
    const name = low === high ? `${low}` : `${low}\u2013${high}`;
    return {
      name, value: count, heading: low === 1 && high === 1 ? "1 event" : `${name} events`,
      rows: [["commits", formatCount(count)], ["share of commits", formatShare(count / commits)],
        ["share of events", formatShare(sum(inside.map(([size, number]) => size * number))
          / events)]],
    };
  });
}

function batchPanel(report) {
  const batches = (report.batches ?? []).filter(([events, count]) => events > 0 && count > 0);
  const commits = sum(batches.map(([, count]) => count));
  const mean = sum(batches.map(([size, count]) => size * count)) / commits;
  const aside = commits > 0
    ? `commits by how many events they had; ${formatNumber(mean)} on average` : null;
  return panel("Batches", aside, () => {
    if (commits === 0)
      return nothing("The store did not report the sizes of its commits.");
    const bars = batchBars(batches);
    return barChart({
      label: `Sizes of ${many(commits, "commit")}: ${formatNumber(mean)} events on average.`,
      y: { scale: amountScale(Math.max(largest(bars.map((bar) => bar.value)), 4)),
        tick: formatCountTick },
      bars,
    });
  });
}

function memoryPanel(report, seconds) {
  const points = seconds.filter((row) => row.residentBytes > 0)
    .map((row) => [row.atSeconds, row.residentBytes]);
  if (points.length === 0)
    return null;
  const most = largest(points.map((point) => point[1]));
  const unit = unitOf(most, BYTE_UNITS, 1024)[1];
  const inUnits = amountScale(most / unit);
  return panel("Memory", `resident; ${formatBytes(report.residentBytes)} at the end`,
    () => lineChart({
      label: `Resident memory over time: at most ${formatBytes(most)}.`,
      x: secondsAxis(seconds),
      y: { scale: byteScale(inUnits, unit), tick: formatBytesTick, text: formatBytes },
      series: [{ name: "resident", color: "c4", points }],
    }));
}

// A scale with round numbers of MiB, and not of bytes.
function byteScale(inUnits, unit) {
  return {
    ...linearScale(0, inUnits.high * unit),
    ticks: (count) => inUnits.ticks(count).map((tick) => tick * unit),
  };
}

function inFlightPanel(report, seconds) {
  const points = seconds.filter((row) => isNumber(row.inFlight))
    .map((row) => [row.atSeconds, row.inFlight]);
  if (!isOpen(report) || points.length === 0)
    return null;
  const most = largest(points.map((point) => point[1]));
  return panel("Under way", "appends not yet answered, at the end of each second",
    () => lineChart({
      label: `Appends under way over time: at most ${formatCount(most)}.`,
      x: secondsAxis(seconds),
      y: { scale: amountScale(Math.max(most, 4)), tick: formatCountTick, text: formatCount },
      series: [{ name: "under way", color: "c3", points }],
    }));
}

function latencyRows(report) {
  const rows = [];
  if (isOpen(report))
    rows.push({ name: "response, from when it was due", times: report.response });
  rows.push({ name: "service, from call to answer", times: report.service });
  for (const [name, times] of Object.entries(report.byOperation ?? {}))
    rows.push({ name, times, sub: true });
  rows.push({ name: "reads", times: report.reading });
  return rows.filter((row) => row.times?.count > 0);
}

function latencyTablePanel(report) {
  return panel("Latency by operation", null, () => {
    const rows = latencyRows(report);
    if (rows.length === 0)
      return nothing("No operation was answered.");
    const time = (name, key) => ({ name, number: true, text: (row) => formatTime(row.times[key]) });
    const overflow = sum(rows.map((row) => row.times.overflow));
    return [table([
      { name: "operation", head: true, words: true, text: (row) => row.name },
      { name: "count", number: true, text: (row) => formatCount(row.times.count) },
      time("mean", "mean"), time("p50", "p50"), time("p90", "p90"), time("p95", "p95"),
      time("p99", "p99"), time("p99.9", "p99_9"), time("p99.99", "p99_99"), time("max", "max"),
    ], rows, { label: "Latency by operation", rowClass: (row) => (row.sub ? "sub" : null) }),
    overflow > 0 ? element("p", { class: "note" }, "Times above 60 s count as 60 s in the mean.")
      : null];
  }, { class: "wide" });
}

function failurePanel(report) {
  const rows = Object.entries(report.failed ?? {}).filter(([, count]) => count > 0)
    .sort((left, right) => right[1] - left[1]);
  if (rows.length === 0)
    return null;
  return panel("Failures", "by code", () => table([
    { name: "code", head: true, words: true, text: ([code]) => code },
    { name: "count", number: true, text: ([, count]) => formatCount(count) },
    { name: "of all sent", number: true,
      text: ([, count]) => (report.sent > 0 ? formatShare(count / report.sent) : NONE) },
  ], rows, { label: "Failures by code" }), { class: "wide" });
}

function loadOf(settings) {
  return settings.arrival === "open"
    ? `open, ${formatRate(settings.rate)} appends per second`
    : ["closed", isNumber(settings.callers) ? many(settings.callers, "caller") : null]
      .filter(Boolean).join(", ");
}

function distributionOf(settings) {
  if (settings.hot)
    return "all on one session";
  return settings.zipf > 0 ? `by Zipf, ${settings.zipf}` : "evenly";
}

function settingFacts(settings) {
  return [
    ["store", settings.store], ["durability", settings.durability], ["load", loadOf(settings)],
    ["callers", formatCount(settings.callers)],
    ["ends after", isNumber(settings.appends) ? many(settings.appends, "append")
      : formatSeconds(settings.durationSeconds)],
    ["apps, users, sessions",
      [settings.apps, settings.users, settings.sessions].map(formatCount).join(", ")],
    ["appends go", distributionOf(settings)],
    ["mix", String(settings.ops ?? NONE).replaceAll(",", ", ")],
    ["text in each event", many(settings.payloadBytes ?? 0, "byte")],
    ["readers beside", formatCount(settings.readers)], ["seed", String(settings.seed)],
  ];
}

function drawLoadReport(page, report) {
  const settings = report.settings ?? {};
  const seconds = timedRows(report.seconds ?? []);
  const extras = [memoryPanel(report, seconds), inFlightPanel(report, seconds)].filter(Boolean);
  page.append(
    pageHead(document.title, [report.startedAt ? formatMoment(report.startedAt) : null,
      `run ${report.run ?? NONE}`, `${settings.store ?? NONE}, ${settings.durability ?? NONE}`,
      loadOf(settings), formatSeconds(report.elapsedSeconds),
      report.interrupted ? "interrupted before its end" : null]),
    verdictPanel(report.verdict, report.expectations), headlineFigures(report),
    fill(element("div", { class: "grid" }), {}, [
      throughputPanel(report, seconds), latencyOverTimePanel(report, seconds),
      percentilePanel(report, extras.length % 2 === 1), batchPanel(report), extras,
      latencyTablePanel(report), failurePanel(report),
      surroundings(report, [...settingFacts(settings),
        ["reads", formatCount(report.reads)],
        ["own cost of the tool", `${formatTime(report.ownCostNanoseconds)} for each append`],
        ...(isNumber(report.cpuPerAppendNanoseconds)
          ? [["CPU time", `${formatTime(report.cpuPerAppendNanoseconds)} for each append`]]
          : [])]),
    ]));
}
