// Package lists has the loops over slices that package slices leaves out.
package lists

import "slices"

// Map is f of every element, in order.
func Map[S ~[]E, E, R any](list S, f func(E) R) []R {
	out := make([]R, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// Filter is the elements that are kept, in order; nil where there are none.
func Filter[S ~[]E, E any](list S, keep func(E) bool) []E {
	var out []E
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// Union is a list with those of some elements at its end that it does not have yet.
func Union[S ~[]E, E comparable](list S, more ...E) S {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}
