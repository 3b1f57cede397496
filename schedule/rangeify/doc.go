// Package rangeify turns a tensor graph into values over ranges: movement ops
// become index expressions, and the graph is cut where a value must be. Start at
// rangeify.go.
package rangeify
