package shape_test

import (
	"regexp"
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
