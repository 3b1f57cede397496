// Package algebra rewrites the bodies of values before anything is placed: what
// leaves a sum, what is summed in integers, which reduces become one tuple. A
// rule rewrites each value once (values.go); a file is a rule, named as its row in
// the table of passes. What a sum of products is made of, expr.Contraction tells.
package algebra
