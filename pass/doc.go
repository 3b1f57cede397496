// Package pass is what a row in the compiler's table of passes is, and what runs
// the rows of one stage in order.
//
// The compiler has one table, from the tensor graph to machine code. It is made
// of the tables of its stages (schedule, kernel/shape, ir/program/opt, render),
// each a list of rows over the state that the stage's passes hand on. A row has
// a name, the form before and after, what it needs and gives, why it stands
// there, and its function; pairs "a before b, because" are checked when the
// program starts. Control is what a user asked for: rows left out, forms
// printed after a row, a row to stop after, the verifier between rows, times
// and firings.
//
// The package knows no form: a stage says how its form prints and is verified.
package pass
