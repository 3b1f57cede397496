package cuda

import (
	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Control flow. Carried values and results of branches are variables that are
// assigned at the end of a round or an arm.

// Loop is a for.
func (r *printer) Loop(in *program.Instr) error {
	index, carried := in.Body.Args[0], in.Body.Args[1:]
	t := r.TypeOf(index)
	lo, hi, step := as(r.Lane(in.Args[0], 0), t), as(r.Lane(in.Args[1], 0), t), as(r.Lane(in.Args[2], 0), t)
	variables := make([][]operand, len(in.Results))
	for k, init := range in.Args[3:] {
		variables[k] = r.fresh(carried[k], init)
	}
	i := operand{Name: r.name(types[t].prefix), Type: t}
	r.Set(index, []operand{i})
	r.line("#pragma unroll 1") // the plan has unrolled what it wants to
	r.begin("for (%s %s = %s; %s < %s; %s += %s)", typeName(t), i.Name, lo, i.Name, hi, i.Name, step)
	if err := r.Block(in.Body); err != nil {
		return err
	}
	r.Yields(in.Body, variables, carried)
	r.end("}")
	for k, v := range in.Results { // as their block arguments: nothing is known of either
		r.Set(v, variables[k])
	}
	return nil
}

// Branch is an if.
func (r *printer) Branch(in *program.Instr) error {
	variables := lists.Map(in.Results, func(v *program.Value) []operand { return r.Variables(v) })
	r.begin("if (%s)", text(r.Lane(in.Args[0], 0)))
	err := r.Arms(in, func() error { return r.arm(in, in.Body, variables) }, func() error {
		if len(in.Results) == 0 && len(in.Else.Instrs) == 1 {
			return nil
		}
		r.Close()
		r.depth--
		r.begin("} else")
		return r.arm(in, in.Else, variables)
	})
	r.end("}")
	return err
}

func (r *printer) arm(in *program.Instr, b *program.Block, variables [][]operand) error {
	if err := r.Block(b); err != nil {
		return err
	}
	r.Yields(b, variables, in.Results)
	return nil
}

// Grid runs the block's own unit or, persistent, every gridDim-th after it.
func (r *printer) Grid(in *program.Instr) error {
	index := in.Body.Args[0]
	if !r.Options.Persistent {
		r.Set(index, []operand{r.let(gpu.I32, "(int)blockIdx.x")})
		return r.Block(in.Body)
	}
	unit := r.name("u")
	r.begin("for (unsigned %s = blockIdx.x; %s < %du; %s += gridDim.x)", unit, unit, r.Program.Units(), unit)
	r.Set(index, []operand{r.let(gpu.I32, "(int)%s", unit)})
	if err := r.Block(in.Body); err != nil {
		return err
	}
	if r.SharedBytes > 0 {
		r.showStores()
		r.line("__syncthreads();") // the next unit writes what this one reads
	}
	r.end("}")
	return nil
}
