package rewrite

import (
	"testing"

	"tgc/ir"
)

// FuzzSimplify simplifies any text that parses: no panic, no circle, and a
// second run changes nothing.
func FuzzSimplify(f *testing.F) {
	f.Add("%0 = var idx [T 1..4096]\n%1 = range idx [0] %0\n%2 = mul idx %1 64\n%3 = add idx %2 9223372036854775807\n%4 = floordiv idx %3 %0\n%5 = floormod idx %4 -9223372036854775808\n%6 = cmplt bool %5 %3\n")
	f.Add("%0 = arg u8 [0]\n%1 = and u8 %0 240:u8\n%2 = shr u8 %1 4:u8\n%3 = cast idx %2\n%4 = max idx %3 7\n%5 = cast f16 %4\n%6 = sub f16 %5 1:f16\n")
	f.Add("%0 = arg i64 [0]\n%1 = cast idx %0\n%2 = mul idx %1 %1\n%3 = min idx %2 -9223372036854775808\n%4 = cmpeq bool %3 %1\n%5 = where idx %4 %1 3\n%6 = floordiv idx %5 6\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		a := ir.NewArena()
		root, err := ir.Parse(a, text)
		if err != nil {
			return
		}
		out, _, err := Apply(a, root, Sets()...)
		if err != nil {
			t.Fatal(err)
		}
		if again, counts, err := Apply(a, out, Sets()...); err != nil || again != out {
			t.Fatalf("second run: %v %v\n%s\n%s", err, counts, ir.Text(out), ir.Text(again))
		}
		ir.Canonicalise(a, out)
	})
}
