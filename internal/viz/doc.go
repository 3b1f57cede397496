// Package viz shows a compilation as one HTML page that needs nothing else: every form
// after every pass that changed it, kernels with plans and prices, source and machine code,
// and for each line the node of the graph for which it was made.
//
// Watch notes what passes do, Build makes a Page of that and of the kernels, Page.Write the
// file. The page's data is JSON in it: see Page, whose fields the scripts read. Start at
// page.go; texts.go keeps forms small, links.go finds what a line was made of. data.js reads
// the data, page.js draws it.
package viz
