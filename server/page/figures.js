// The figures of the server while they are in sight: its runs, its store and its connections.

import { amountScale, figuresRow, lineChart, linearScale } from "./charts.js";

const PERIOD = 2; // Seconds between two questions.
const SAMPLES_MAX = 150;
const MINUTES = [-300, -240, -180, -120, -60, 0];

class FiguresPane {
  constructor(root, page) {
    this.page = page;
    this.samples = []; // Answers of the server with `time` and `took`, in seconds.
    this.numbers = element("div", {});
    this.charts = element("div", { class: "charts" });
    this.failure = element("p", { class: "nothing bad", hidden: true, role: "alert" });
    root.append(element("div", { class: "scroller server-figures", tabindex: "0" }, this.failure,
      this.numbers, this.charts));
  }

  get isShown() {
    return document.body.dataset.view === "figures";
  }

  // Asks as long as the view is in sight.
  draw() {
    if (!this.isShown || this.isAsking)
      return;
    this.isAsking = true;
    this.read().finally(() => setTimeout(() => {
      this.isAsking = false;
      this.draw();
    }, PERIOD * 1000));
  }

  async read() {
    if (document.hidden)
      return;
    const began = performance.now();
    try {
      const told = await this.page.server.get("/figures");
      this.take({ ...told, time: began / 1000, took: (performance.now() - began) / 1000 });
      this.failure.hidden = true;
    } catch (error) {
      this.failure.textContent = error.message;
      this.failure.hidden = false;
    }
  }

  take(sample) {
    // Another server has other counts.
    if (this.samples.length > 0 && sample.uptime < this.samples.at(-1).uptime)
      this.samples = [];
    this.samples.push(sample);
    this.samples.splice(0, this.samples.length - SAMPLES_MAX);
    this.numbers.replaceChildren(figuresRow(figuresIn(sample)));
    // Keeps a chart while the reader points at it.
    if (!this.charts.matches(":hover, :focus-within"))
      this.charts.replaceChildren(...CHARTS.map((each) => this.chart(each)).filter(Boolean));
  }

  chart({ name, unit, of, isRate, least }) {
    const points = isRate ? ratesOf(this.samples, of) : levelsOf(this.samples, of);
    if (points.length === 0)
      return null;
    const most = points.reduce((so, [, each]) => Math.max(so, each), 0);
    const now = this.samples.at(-1).time;
    const told = (amount) => `${roundedText(amount)}${unit}`;
    return element("figure", {}, element("figcaption", {}, name), lineChart({
      label: `${name}: now ${told(points.at(-1)[1])}, at most ${told(most)}.`, height: 150,
      x: { scale: linearScale(-PERIOD * SAMPLES_MAX, 0), ticks: () => MINUTES,
        tick: (each) => (each === 0 ? "now" : `${each / 60} min`),
        text: (each) => (each === 0 ? "now" : `${durationOf(-each)} ago`) },
      y: { scale: amountScale(Math.max(most, least), 3), tick: roundedText, text: told },
      series: [{ name, color: "c1", points: points.map(([time, each]) => [time - now, each]) }],
    }));
  }
}

const CHARTS = [
  { name: "runs under way", unit: "", of: (each) => each.runs.active, least: 3 },
  { name: "commits", unit: " /s", of: (each) => each.store?.commits, isRate: true, least: 1 },
  { name: "changes in commits", unit: " /s", of: (each) => each.store?.changes, isRate: true,
    least: 1 },
  { name: "requests", unit: " /s", of: (each) => each.requests, isRate: true, least: 1 },
];

function levelsOf(samples, of) {
  return samples.filter((each) => of(each) !== undefined).map((each) => [each.time, of(each)]);
}

function ratesOf(samples, of) {
  return levelsOf(samples, of).flatMap(([time, count], index, all) => (index === 0 ? []
    : [[time, (count - all[index - 1][1]) / (time - all[index - 1][0])]]));
}

function roundedText(amount) {
  return amount.toLocaleString("en", { maximumFractionDigits: amount < 10 ? 2 : 0 });
}

function figuresIn({ runs, store, uptime, ...sample }) {
  const whole = (count) => count.toLocaleString("en");
  return [
    { name: "runs under way", value: whole(runs.active),
      aside: `${whole(runs.started)} started, ${whole(runs.failed)} failed` },
    store ? { name: "commits", value: whole(store.commits),
      aside: `${whole(store.changes)} changes` } : null,
    { name: "requests", value: whole(sample.requests) },
    { name: "connections", value: whole(sample.connections),
      aside: `${whole(sample.followers)} follow a session` },
    { name: "answer", value: durationOf(sample.took), aside: "as measured by this page" },
    { name: "up for", value: uptime < 60 ? durationOf(uptime) : ago(Date.now() / 1000 - uptime) },
  ].filter(Boolean);
}
