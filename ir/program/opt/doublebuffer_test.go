package opt

import (
	"testing"

	"tgc/ir/program"
)

// testdata/doublebuffer.txtar: pairs of NAME.program and NAME.buffered. Two sets of arrays are
// filled in turn; where an array is read outside of the loop, where two sets do not
// fit, or where a value of the filling side is computed with, one set stays, and loads
// move ahead only.
func TestDoubleBufferGolden(t *testing.T) {
	forFiles(t, "testdata/doublebuffer.txtar", ".buffered", func(t *testing.T, text string) string {
		p, err := program.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Options[program.Panel] = 8
		doubleBuffer(p, 64<<10)
		prefetchTiles(p)
		p.Options[program.Panel] = 0
		if err := program.VerifyGPU(p); err != nil {
			t.Error(err)
		}
		return program.Print(p)
	})
}
