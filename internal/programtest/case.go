package programtest

import (
	"fmt"
	"math/rand/v2"

	"tgc/ir"
	"tgc/ir/program"
)

// Lanes is the number of lanes of an Elementwise program.
const Lanes = 16

// Case is an elementwise op on operand types on which it has meaning.
type Case struct {
	Op      ir.Op
	Result  ir.DType
	Args    []ir.DType
	Program *program.Program
}

// Cases lists every legal case of every elementwise op but the transcendental
// functions, which have an accuracy and no exact result.
func Cases() []Case {
	var cases []Case
	for op := ir.OpInvalid; int(op) < ir.NumOps; op++ {
		switch op {
		case ir.OpExp2, ir.OpLog2, ir.OpSin, ir.OpRsqrt:
			continue
		}
		if !op.IsElementwise() {
			continue
		}
		results, args := Signatures(op)
		for i := range results {
			p := Elementwise(op, results[i], args[i]...)
			if program.Verify(p) == nil {
				cases = append(cases, Case{op, results[i], args[i], p})
			}
		}
	}
	return cases
}

// Check runs the program of c on random values with many edges and compares
// with ir.EvalScalar, bit for bit but for the payload of NaN. run gets the
// argument buffers and the result's, by slot, and fills the last.
func (c *Case) Check(r *rand.Rand, rounds int, run func(buffers [][]byte) error) error {
	src := c.Args[len(c.Args)-1]
	for range rounds {
		buffers, scalars := c.draw(r)
		if err := run(buffers); err != nil {
			return err
		}
		out := buffers[len(c.Args)]
		for lane := range Lanes {
			got := GetScalar(out[lane*c.Result.Size():], c.Result)
			want := ir.EvalScalar(c.Op, c.Result, src, scalars[lane])
			if !SameScalar(c.Result, got, want) {
				return fmt.Errorf("%s %s of %v %v: got %v, want %v", c.Op, c.Result, c.Args, scalars[lane], got, want)
			}
		}
	}
	return nil
}

func (c *Case) draw(r *rand.Rand) (buffers [][]byte, scalars [][]ir.Scalar) {
	scalars = make([][]ir.Scalar, Lanes)
	for i, d := range c.Args {
		b := make([]byte, Lanes*d.Size())
		for lane := range Lanes {
			s := Scalar(r, d)
			if (c.Op == ir.OpShl || c.Op == ir.OpShr) && i == 1 && lane%2 == 0 {
				s = ir.IntScalar(ir.WrapInt(d, int64(r.IntN(d.Bits()))))
			}
			scalars[lane] = append(scalars[lane], s)
			PutScalar(b[lane*d.Size():], d, s)
		}
		buffers = append(buffers, b)
	}
	return append(buffers, make([]byte, Lanes*c.Result.Size())), scalars
}
