// Package opt holds the passes over programs: from a program as package kernel lowers it
// to the one that is rendered. Passes is their table, in the order in which they run;
// each row can run alone on a program's text (RunPass). A file is named for its row.
//
// What a pass knows of the lowering is in the program: buffers marked Constant (packed
// weights) and Early (those that a plan's PRELOAD names). What it knows of dependences
// comes from package dep. Registers and cache policies are those of an H200, measured
// where the constants are.
//
// MergeGrids makes one program of several, for the independent kernels of a launch.
package opt
