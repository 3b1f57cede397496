package kernel_test

import (
	"testing"

	"tgc/ir/program"
)

// manyRows: a thread has four rows of eight loads each, of which not all fit the
// registers.
const manyRows = "VECTOR r0 16; UNROLL r0 8; WARP r0 8; UPCAST s0 4; PRELOAD p2; FMA"

// The rows that do not fit are loaded while others are summed up, not right in front
// of their own sums.
func TestRegistersTakeTheNextRows(t *testing.T) {
	body := gridBody(t, lowered(t, manyRows, "Q8_0", 12, 1024))
	waited, ahead, behind := false, 0, 0
	for i := range body.Instrs {
		in := &body.Instrs[i]
		waited = waited || in.Op == program.WaitGrid
		switch {
		case in.Op != program.Load || in.Cache != program.CacheStream:
		case !waited:
			ahead++
		default:
			behind++
			if n := computedUntilUse(body, i); n < 8 {
				t.Errorf("load %d of a row is used after %d other operations, want 8 at least\n%s", behind, n, program.PrintInstr(in))
			}
		}
	}
	if ahead == 0 || behind == 0 {
		t.Errorf("%d rows' loads ahead of the wait and %d behind, want both", ahead, behind)
	}
}

// Loads ahead of the wait stay in the order of the rows: every so many registers of
// them stands what nothing moves across.
func TestRowsAreLoadedInOrder(t *testing.T) {
	body := gridBody(t, lowered(t, manyRows, "Q8_0", 12, 1024))
	bytes, most, marks := 0, 0, 0
	for i := range body.Instrs {
		in := &body.Instrs[i]
		if in.Op == program.WaitGrid {
			break
		}
		switch in.Op {
		case program.Load:
			bytes += in.Result.Type.Lanes * in.Result.Type.Elem.Size()
			most = max(most, bytes)
		case program.LaunchNext:
			marks++
			bytes = 0
		}
	}
	if marks == 0 || most >= 2*64 {
		t.Errorf("%d marks, up to %d bytes between them, want some and less than 128 bytes", marks, most)
	}
}

func lowered(t *testing.T, text, format string, rows, k int64) *program.Program {
	t.Helper()
	desc := *hopper(t)
	desc.Planes = true
	b := newBuilder()
	return lowerText(t, b, packedMatvec(b, format, rows, k, false), text, &desc)
}

func gridBody(t *testing.T, p *program.Program) *program.Block {
	t.Helper()
	for i := range p.Body.Instrs {
		if in := &p.Body.Instrs[i]; in.Op == program.GridLoop {
			return in.Body
		}
	}
	t.Fatal("no grid loop")
	return nil
}

// computedUntilUse counts operations on floats between a load and its first use.
func computedUntilUse(b *program.Block, load int) int {
	n := 0
	for i := load + 1; i < len(b.Instrs); i++ {
		in := &b.Instrs[i]
		for _, a := range in.Args {
			if a == b.Instrs[load].Result {
				return n
			}
		}
		if in.Op == program.Alu && in.Result.Type.Elem.IsFloat() {
			n++
		}
	}
	return n
}
