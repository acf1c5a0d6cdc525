if (DATA.graph) startGraph(DATA.graph);
redraws.push(drawCharts, drawGrowth, drawCost, drawTasks);
startTheme();  // draws everything in the right colours
