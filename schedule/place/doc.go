// Package place decides which values vanish into their readers, and splits those
// that would make kernels too narrow or too long. Start at place.go, which runs the
// placement rules to a fixpoint; a file is a rule, named as its row in the table of
// passes. injective.go, rows.go and placed.go are shared by several.
package place
