// Package emit makes kernels of values: what runs when, which values one kernel
// stores, which reduces share a loop, final names of ranges, arguments, and places
// of temporaries in memory. A file is a row of the table of passes. Start at
// order_levels.go, then write_kernels.go.
package emit
