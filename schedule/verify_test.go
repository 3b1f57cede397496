package schedule_test

import (
	"regexp"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/schedule"
)

// valuesText is the form of a small graph after rangeify: x is summed over its
// rows, and the sums are stored doubled.
const valuesText = `values 2 ranges 4100
%0 = buffer f32 [0] 4 8
%1 = param f32 [0] 4 8
%2 = buffer f32 [1] 4
%3 = param f32 [1] 4
%4 = param f32 [2] 4
%5 = range idx [4097] 4
%6 = range idx [1] 8
%7 = load f32 %1 %5 %6
%8 = reduce f32 [add] %7 %6
%9 = value f32 [0] 4
%10 = range idx [4099] 4
%11 = load f32 %9 %10
%12 = mul f32 %11 2:f32
%13 = value f32 [1] 4
version 0 buffer %0 param %1
version 1 buffer %2 param %3
version 2 buffer %2 param %4 number 1 previous 1 writer 1
value 0 node %9 ranges %5 body %8
value 1 node %13 ranges %10 body %12 index %10 target 2
`

// The verifier finds what breaks the contract of values, and the parser what is no
// text of values.
func TestVerifyValues(t *testing.T) {
	opt := schedule.DefaultOptions()
	if err := schedule.VerifyText(ir.NewArena(), valuesText, opt); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"range of another value", "body %12", "body %8", "range|dtype"},
		{"free range that is no loop", "value 0 node %9 ranges %5", "value 0 node %9 ranges %10", "no loop of its store"},
		{"closed range free", "body %8", "body %7", "no loop of its store"},
		{"read of a dead value", "value 0 node %9 ranges %5 body %8", "value 0 node %9 ranges %5 body %8 dead", "dead"},
		{"value left out", "value 0 node %9 ranges %5 body %8\n", "", "dead"},
		{"node of another value", "value 0 node %9", "value 0 node %13", "its node is"},
		{"circle", "body %8", "body %11", "no loop of its store|reads itself"},
		{"circle of one", "value 0 node %9 ranges %5 body %8", "value 0 node %9 ranges %10 body %11", "reads itself"},
		{"extent", "%10 = range idx [4099] 4", "%10 = range idx [4099] 5", "extent"},
		{"two writers", "value 0 node %9 ranges %5 body %8", "value 0 node %9 ranges %5 body %8 target 2", "another value writes"},
		{"version without writer", " target 2", "", "no value writes it"},
		{"version of another buffer", "previous 1", "previous 0", "another buffer"},
		{"state of a buffer", "number 1", "number 2", "state 2"},
		{"param of another version", "version 2 buffer %2 param %4", "version 2 buffer %2 param %3", "its param is"},
		{"dead value stored", "value 1 node %13 ranges %10 body %12 index %10 target 2", "value 1 node %13 ranges %10 body %12 index %10 target 2\nlaunch\nkernel 1", "no earlier launch stores"},
		{"unknown word", "target 2", "target 2 shiny", `no "shiny"`},
		{"unknown node", "body %12", "body %99", "expected a node"},
		{"unknown line", "version 0", "vision 0", "no line begins"},
		{"order of values", "value 1 node", "value 0 node", "comes after"},
	} {
		text := strings.Replace(valuesText, c.from, c.to, 1)
		if text == valuesText {
			t.Fatalf("%s: nothing replaced", c.name)
		}
		err := schedule.VerifyText(ir.NewArena(), text, opt)
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// Rows of the values form run on a text alone.
func TestRunPassOnValues(t *testing.T) {
	got, err := schedule.RunPass(t.Context(), ir.NewArena(), "fuse-points", valuesText, schedule.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "value 0") || !strings.Contains(got, `reason "fuse-points v0[4]"`) {
		t.Errorf("v0 did not move into its reader:\n%s", got)
	}
}
