package opt

import (
	"testing"

	"tgc/ir/program"
)

// testdata/doublebuffer.txtar: pairs of NAME.program and NAME.buffered. Two sets of arrays are
// filled in turn; where an array is read outside of the loop, where two sets do not
// fit, or where a value of the filling side is computed with, one set stays, and loads
// move ahead only. copytiles.txtar: loops with products of warpgroups, filled by asynchronous copies.
func TestDoubleBufferGolden(t *testing.T) {
	for file, copies := range map[string]bool{"doublebuffer": false, "copytiles": true} {
		bufferedGolden(t, file, copies)
	}
}

func bufferedGolden(t *testing.T, file string, copies bool) {
	forFiles(t, "testdata/"+file+".txtar", ".buffered", func(t *testing.T, text string) string {
		p, err := program.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Options[program.Panel] = 8
		doubleBuffer(p, 64<<10, copies)
		prefetchTiles(p)
		p.Options[program.Panel] = 0
		if err := program.VerifyGPU(p); err != nil {
			t.Error(err)
		}
		return program.Print(p)
	})
}
