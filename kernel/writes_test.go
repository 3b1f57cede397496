package kernel_test

import (
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/interp"
)

// Of threads that hold the same element of a result, one writes it: a store that
// another thread repeats is harmless only while nothing reads what it overwrites.
func TestElementsAreWrittenByOneThread(t *testing.T) {
	for _, c := range gpuCases {
		t.Run(c.name, func(t *testing.T) {
			for _, text := range c.plans {
				b := newBuilder()
				sink, vars := c.build(b), map[string]int64{"pos": 4, "T": 5}
				data := makeBuffers(t, sink, vars, rand.New(rand.NewPCG(1, 2)))
				p := lowerText(t, b, sink, text, hopper(t))
				countWrites(p)
				args := make([]interp.Arg, len(p.Params))
				counts := make(map[string][]byte)
				for i, x := range p.Params {
					switch {
					case x.Kind == program.ParamVar:
						args[i].Int64 = vars[x.Name]
					case x.Kind == program.ParamTable:
						args[i].Bytes = []byte(x.Table)
					case x.Write && x.Value.Type.Elem == ir.F32:
						args[i].Bytes = make([]byte, len(data.bytes(x.Slot)))
						counts[x.Name] = args[i].Bytes
					default:
						args[i].Bytes = data.bytes(x.Slot)
					}
				}
				if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
					t.Fatalf("%s: %v\n%s", text, err, show(p))
				}
				for name, bytes := range counts {
					for i, n := range decode(ir.F32, bytes) {
						if n.F > 1 {
							t.Fatalf("%s: element %d of %s is written %v times\n%s", text, i, name, n.F, show(p))
						}
					}
				}
			}
		})
	}
}

// countWrites has every store of f32 in global memory add 1 to what it would write.
func countWrites(p *program.Program) {
	value := func(t program.Type) *program.Value {
		v := &program.Value{ID: p.Values, Type: t}
		p.Values++
		return v
	}
	var walk func(b *program.Block)
	walk = func(b *program.Block) {
		var out []program.Instr
		for _, in := range b.Instrs {
			for _, inner := range []*program.Block{in.Body, in.Else} {
				if inner != nil {
					walk(inner)
				}
			}
			to := program.Type{}
			if in.Op == program.Store || in.Op == program.Scatter {
				to = in.Args[0].Type
			}
			if to.Space != program.GlobalSpace || to.Elem != ir.F32 {
				out = append(out, in)
				continue
			}
			one := value(program.Scalar(ir.F32))
			out = append(out, program.Instr{Op: program.Const, Result: one, Float: 1})
			for lane := range in.Args[len(in.Args)-1].Type.Lanes {
				at, element := value(program.Scalar(ir.I64)), value(to)
				if in.Op == program.Scatter {
					at.Type = program.Scalar(in.Args[1].Type.Elem)
					out = append(out, program.Instr{Op: program.Extract, Result: at, Args: in.Args[1:2], Lane: lane})
					if at.Type.Elem != ir.I64 {
						wide := value(program.Scalar(ir.I64))
						out = append(out, program.Instr{Op: program.Alu, Ir: ir.OpCast, Result: wide, Args: []*program.Value{at}})
						at = wide
					}
				} else {
					out = append(out, program.Instr{Op: program.Const, Result: at, Int: int64(lane)})
				}
				out = append(out,
					program.Instr{Op: program.PtrAdd, Result: element, Args: []*program.Value{in.Args[0], at}},
					program.Instr{Op: program.Atomic, Ir: ir.OpAdd, Result: value(one.Type), Args: []*program.Value{element, one}, Align: 4})
			}
		}
		b.Instrs = out
	}
	walk(p.Body)
	for i := range p.Params {
		p.Params[i].Read = p.Params[i].Read || p.Params[i].Write
	}
}
