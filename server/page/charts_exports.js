
// The drawings of the reports that the page shows too.
export { amountScale, figuresRow, lineChart, linearScale, timelineView };
