
// The drawings of the reports that the page shows too.
export { figuresRow, lineChart, linearScale, spanScale, timelineView };
