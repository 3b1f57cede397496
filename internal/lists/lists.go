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

// FlatMap is Map of a function that gives several results for each element.
func FlatMap[S ~[]E, E, R any](list S, f func(E) []R) []R {
	var out []R
	for _, x := range list {
		out = append(out, f(x)...)
	}
	return out
}

// Make is a list of n elements, each made from its index, in order.
func Make[R any](n int, f func(int) R) []R {
	out := make([]R, n)
	for i := range out {
		out[i] = f(i)
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

// Indices are those of the elements that are kept, in order.
func Indices[S ~[]E, E any](list S, keep func(E) bool) []int {
	return Filter(Upto(len(list)), func(i int) bool { return keep(list[i]) })
}

// Upto lists the numbers below n.
func Upto(n int) []int { return Make(n, func(i int) int { return i }) }

// First is the first element that holds, or another where none does.
func First[S ~[]E, E any](list S, holds func(E) bool, other E) E {
	if i := slices.IndexFunc(list, holds); i >= 0 {
		return list[i]
	}
	return other
}

// Last is the last element that holds, or another where none does.
func Last[S ~[]E, E any](list S, holds func(E) bool, other E) E {
	for _, x := range slices.Backward(list) {
		if holds(x) {
			return x
		}
	}
	return other
}

// Product multiplies numbers; 1 where there are none.
func Product[S ~[]E, E int | int64](list S) E {
	n := E(1)
	for _, x := range list {
		n *= x
	}
	return n
}

// Set has the elements of a list.
func Set[S ~[]E, E comparable](list S) map[E]bool {
	set := make(map[E]bool, len(list))
	for _, x := range list {
		set[x] = true
	}
	return set
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
