package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"tgc/ir"
)

// visits is a kernel that sums the first rows of a cache, of which a value in it names one more;
// table is indexed by a loop as long as it is.
func visits(rows, highest, table int) string {
	return fmt.Sprintf(`%%0 = param f32 [0] %[3]d
%%1 = range idx [0] %[3]d
%%2 = param f32 [1] %[3]d
%%3 = load f32 %%2 %%1
%%4 = var idx [length 1..%[2]d]
%%5 = range idx [1] %%4
%%6 = param f32 [2] %[1]d %[3]d
%%7 = load f32 %%6 %%5 %%1
%%8 = reduce f32 [add] %%7 %%5
%%9 = param i32 [3] 1
%%10 = load i32 %%9 0
%%11 = cast idx %%10
%%12 = load f32 %%6 %%11 %%1
%%13 = add f32 %%8 %%12
%%14 = mul f32 %%3 %%13
%%15 = store void [1] %%0 %%14 %%1 %%1
%%16 = sink void %%15
`, rows, highest, table)
}

func class(t *testing.T, text string) string {
	t.Helper()
	a := ir.NewArena()
	root, err := ir.Parse(a, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.VerifyKernel(root); err != nil {
		t.Fatal(err)
	}
	canonical, _ := ir.Canonicalise(a, root)
	return ir.Text(ir.Class(a, canonical))
}

// Kernels whose caches differ in size alone are of one class, within a factor, and what else
// differs keeps them apart.
func TestClass(t *testing.T) {
	base := class(t, visits(1000, 1000, 64))
	if want := class(t, visits(4096, 4096, 64)); base != want || !strings.Contains(base, " 4096 64") || !strings.Contains(base, "1..4096]") {
		t.Errorf("1,000 rows:\n%s4,096 rows:\n%s", base, want)
	}
	if positions := class(t, visits(1000, 999, 64)); positions != class(t, visits(3000, 2999, 64)) || !strings.Contains(positions, "1..4095]") {
		t.Errorf("a place among 1,000 rows:\n%s", positions)
	}
	for what, other := range map[string]string{
		"many more rows": visits(5000, 5000, 64), "few rows": visits(256, 256, 64), "another width": visits(1000, 1000, 65),
		"another variable": visits(1000, 500, 64), "a place": visits(1000, 999, 64),
	} {
		if class(t, other) == base {
			t.Errorf("%s: of the same class", what)
		}
	}
}

// Plans name ranges by their place in the canonical form, which does not depend on the capacity.
func TestCapacitiesRenameNothing(t *testing.T) {
	canonical := func(rows int) string {
		a := ir.NewArena()
		root, err := ir.Parse(a, visits(rows, rows, 64))
		if err != nil {
			t.Fatal(err)
		}
		c, _ := ir.Canonicalise(a, root)
		return strings.ReplaceAll(ir.Text(c), fmt.Sprint(rows), "ROWS")
	}
	want := canonical(4096)
	for rows := 257; rows < 4096; rows += 61 {
		if got := canonical(rows); got != want {
			t.Fatalf("%d rows:\n%s4,096 rows:\n%s", rows, got, want)
		}
	}
}
