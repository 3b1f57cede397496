package interp_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime/interp"
	"tgc/target"
)

// Random arithmetic on bytes of words gives the same floats in words (the pass widen-bytes).
func TestWidenBytes(t *testing.T) {
	const lanes = 16
	desc := target.ForCPU("x86-64-v4", nil, 1)
	r := rand.New(rand.NewPCG(1, 2))
	narrow, seen := 0, make(map[string]bool)
	for round := range 500 {
		text := program.Print(bytesOfWords(r, lanes))
		widened, err := opt.RunPass(t.Context(), "widen-bytes", text, desc)
		if err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, text)
		}
		if widened == text {
			narrow++
		}
		seen[widened] = true
		args := []interp.Arg{{Bytes: make([]byte, 4*lanes)}, {Bytes: make([]byte, 8)}, {Bytes: make([]byte, 4*lanes)}}
		for i := range lanes {
			binary.LittleEndian.PutUint32(args[0].Bytes[4*i:], r.Uint32())
		}
		args[1].Bytes[0] = byte(r.IntN(12)) // what shifts go by, more than a byte has among it
		var got [2][]byte
		for k, s := range []string{text, widened} {
			p, err := program.Parse(s)
			if err == nil {
				err = interp.RunProgram(p, args, 0, 1)
			}
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			got[k] = slices.Clone(args[2].Bytes)
		}
		if !slices.Equal(got[0], got[1]) {
			t.Fatalf("round %d: %x, widened %x\n%s\n%s", round, got[0], got[1], text, widened)
		}
		if strings.Count(widened, fmt.Sprintf(":u8x%d = cast", lanes)) > 0 && widened != text {
			t.Fatalf("round %d: bytes of words are left\n%s", round, widened)
		}
	}
	if narrow > 100 || len(seen) < 300 {
		t.Errorf("%d of 500 programs are left as they are, %d are different: too few are tried", narrow, len(seen))
	}
}

// bytesOfWords is a program that makes a vector of floats of bytes of words.
func bytesOfWords(r *rand.Rand, lanes int) *program.Program {
	b := program.NewBuilder("bytes")
	in := b.Buffer(0, ir.U32, "w", 64, int64(4*lanes))
	by := b.Buffer(1, ir.I64, "by", 64, 8)
	out := b.Buffer(2, ir.F32, "y", 64, int64(4*lanes))
	b.Access(in, true, false)
	b.Access(by, true, false)
	b.Access(out, false, true)
	b.SetGrid(1)
	body := &program.Block{Args: []*program.Value{b.NewValue(program.Scalar(ir.I64))}}
	b.With(body, func() {
		g := byteMaker{b, r, b.Load(in, lanes, 4), b.Load(by, 1, 8)}
		v := g.make(4)
		if r.IntN(3) == 0 { // a code with an offset
			v = b.Cast(b.Alu(ir.OpAnd, v, g.number(63)), ir.I8)
			v = b.Alu(ir.OpAdd, v, b.Int(program.Vector(ir.I8, lanes), -int64(r.IntN(128))))
		}
		b.Store(out, b.Cast(v, ir.F32), 4)
	})
	b.Emit(program.Instr{Op: program.GridLoop, Body: body})
	return b.Finish()
}

// byteMaker makes arithmetic on bytes of a vector of words.
type byteMaker struct {
	b     *program.Builder
	r     *rand.Rand
	words *program.Value
	by    *program.Value
}

func (g *byteMaker) number(v int64) *program.Value {
	return g.b.Int(program.Vector(ir.U8, g.words.Type.Lanes), v)
}

func (g *byteMaker) make(depth int) *program.Value {
	if depth == 0 {
		return g.b.Cast(g.b.Alu(ir.OpShr, g.words, g.b.Int(g.words.Type, 8*int64(g.r.IntN(4)))), ir.U8)
	}
	x := g.make(depth - 1)
	switch g.r.IntN(6) {
	case 0:
		return g.b.Alu(ir.OpAnd, x, g.number(int64(g.r.IntN(256))))
	case 1:
		return g.b.Alu(ir.OpShr, x, g.number(int64(g.r.IntN(10))))
	case 2:
		return g.b.Alu(ir.OpShl, x, g.number(int64(g.r.IntN(10))))
	case 3:
		return g.b.Alu(ir.OpShr, x, g.b.Broadcast(g.b.Cast(g.by, ir.U8), g.words.Type.Lanes))
	case 4:
		return g.b.Where(g.b.Lt(g.words, g.b.Int(g.words.Type, 1<<31)), x, g.make(depth-1))
	}
	return g.b.Alu([]ir.Op{ir.OpOr, ir.OpAnd}[g.r.IntN(2)], x, g.make(depth-1))
}
