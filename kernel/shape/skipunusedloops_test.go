package shape_test

import (
	"regexp"
	"strings"
	"testing"
)

// tileOfRows is a product of a tile of rows, some of which have no activations (row[i] < 0), with a matrix
// that none or all of them are for. Four rows are copies, and the matrix is decoded into a panel.
const tileOfRows = `# plan: STAGE s2; VECTOR s2 4; UPCAST s1 4; ROLL s1; FMA
%0 = param f32 [0] 3 8 16
%1 = param i32 [1] 3
%2 = range idx [0] 3
%3 = load i32 %1 %2
%4 = cmplt bool %3 0:i32
%5 = not bool %4
%6 = param i32 [2] 3 8
%7 = range idx [1] 8
%8 = load i32 %6 %2 %7
%9 = cmplt bool %8 0:i32
%10 = not bool %9
%11 = param f32 [3] 3 8 64
%12 = range idx [3] 64
%13 = load f32 %11 %2 %7 %12
%14 = param f32 [4] 3 16 64
%15 = range idx [2] 16
%16 = load f32 %14 %2 %15 %12
%17 = mul f32 %16 %16
%18 = mul f32 %13 %17
%19 = reduce f32 [add] %18 %12
%20 = where f32 %10 %19 0:f32
%21 = where f32 %5 %20 0:f32
%22 = store void [3] %0 %21 %2 %7 %15 %2 %7 %15
%23 = sink void %22
`

// A loop for four rows runs where any of them is there, and the panel is filled where the tile has a matrix.
func TestLoopsForRowsThatAreMissing(t *testing.T) {
	got := upTo(t, tileOfRows, "skip-unused-loops")
	for what, want := range map[string]string{
		"the panel":             `(?m)^(%\d+) = where idx %\d+ 0 64\n(.*\n)*%\d+ = range idx \[\d+\] (%\d+)\n(.*\n)*%\d+ = stage f32 \[auto\]`,
		"any row of a matrix":   `(?m)^(%\d+) = where idx %\d+ 0 64\n%\d+ = where idx %\d+ (%\d+) 0\n%\d+ = range idx`,
		"three rows or another": `(?m)^%\d+ = or bool (.*\n)*%\d+ = or bool (.*\n)*%\d+ = or bool `,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: want %s\n%s", what, want, got)
		}
	}
}

// rowOfSquares is a sum of squares, which lie in an array, that one of three results uses.
const rowOfSquares = `# plan: PLAN
%0 = param f32 [0] 3
%1 = param f32 [1] 3 4
%2 = range idx [0] 3
%3 = cmplt bool %2 1
%4 = range idx [1] 4
%5 = load f32 %1 %2 %4
%6 = mul f32 %5 %5
%7 = stage f32 [auto] %6 %4
%8 = range idx [2] 4
%9 = load f32 %7 %8
%10 = reduce f32 [add] %9 %8
%11 = where f32 %3 %10 0:f32
%12 = store void [1] %0 %11 %2 %2
%13 = sink void %12
`

// An array is filled where only copies read it: they read it for a result that nothing uses, too.
func TestArraysThatCopiesRead(t *testing.T) {
	for plan, loops := range map[string]int{"FMA": 2, "UNROLL r0 4; FMA": 0} {
		got := upTo(t, strings.Replace(rowOfSquares, "PLAN", plan, 1), "skip-unused-loops")
		if n := len(regexp.MustCompile(`= range idx \[\d+\] %\d+`).FindAllString(got, -1)); n != loops {
			t.Errorf("%s: %d loops that may not run, want %d\n%s", plan, n, loops, got)
		}
	}
}
