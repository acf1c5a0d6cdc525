if (DATA.graph) startGraph(DATA.graph);
redraws.push(drawCharts, drawGrowth, drawCost);
startTheme();  // draws everything in the right colours
