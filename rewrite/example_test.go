package rewrite_test

import (
	"fmt"
	"os"

	"tgc/ir"
	"tgc/rewrite"
)

// A reshape [8, 32] -> [256] -> [8, 32] leaves no division.
func ExampleSimplify() {
	a := ir.NewArena()
	row, column := a.Range(0, a.Index(8)), a.Range(1, a.Index(32))
	flat := a.Add(a.Mul(row, a.Index(32)), column)
	again := a.Add(a.Mul(a.Div(flat, a.Index(32)), a.Index(100)), a.Mod(flat, a.Index(32)))
	if err := ir.Print(os.Stdout, rewrite.Simplify(a, again)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// %0 = range idx [0] 8
	// %1 = mul idx %0 100
	// %2 = range idx [1] 32
	// %3 = add idx %1 %2
}
