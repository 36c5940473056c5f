// Draws the report that is embedded in the page.

const DRAWN = {
  load: drawLoadReport,
  sweep: drawSweepReport,
  trace: drawTraceReport,
  experiment: drawExperimentReport,
};

function drawPage() {
  const page = document.getElementById("page");
  try {
    const report = JSON.parse(document.getElementById("report").textContent);
    const draw = Object.hasOwn(DRAWN, report?.kind) ? DRAWN[report.kind] : null;
    if (draw)
      draw(page, report);
    else
      page.append(nothing(`This page knows no report of the kind '${report?.kind}'.`));
  } catch (error) {
    console.error(error);
    page.append(nothing(`The report cannot be read: ${error.message}`));
  }
}

drawPage();
