package cuda

import (
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Control flow. Carried values and results of branches are variables that are
// assigned at the end of a round or an arm.

// assign moves all of `from` to `to` at once: where a target is still needed as
// a source of a later assignment, its old value is saved first.
func (r *renderer) assign(to, from []operand) {
	from = append([]operand(nil), from...)
	for i := range to {
		if to[i].name == from[i].name {
			continue
		}
		for j := i + 1; j < len(from); j++ {
			if from[j].name == to[i].name && from[j].name != to[j].name {
				saved := r.let(to[i].t, "%s", to[i].name)
				for k := j; k < len(from); k++ {
					if from[k].name == to[i].name {
						from[k].name = saved.name
					}
				}
				break
			}
		}
		r.line("%s = %s;", to[i].name, from[i].as(to[i].t))
	}
}

// yields assigns what a block ends with to the variables of values, in one go.
func (r *renderer) yields(b *program.Block, variables [][]operand) {
	var to, from []operand
	for k, v := range gpu.Yielded(b) {
		source, _ := r.storage(v)
		to, from = append(to, variables[k]...), append(from, source...)
	}
	r.assign(to, from)
}

func (r *renderer) loop(in *program.Instr) error {
	index := in.Body.Args[0]
	t := r.typeOf(index)
	lo, hi, step := r.lane(in.Args[0], 0).as(t), r.lane(in.Args[1], 0).as(t), r.lane(in.Args[2], 0).as(t)
	variables := make([][]operand, len(in.Results))
	for k, init := range in.Args[3:] {
		variables[k] = r.fresh(in.Body.Args[1+k], init)
	}
	i := operand{name: r.name(ctypes[t].prefix), t: t}
	r.set(index, []operand{i})
	r.line("#pragma unroll 1") // the plan has unrolled what it wants to
	r.begin("for (%s %s = %s; %s < %s; %s += %s)", t, i.name, lo, i.name, hi, i.name, step)
	if err := r.block(in.Body); err != nil {
		return err
	}
	r.yields(in.Body, variables)
	r.end("}")
	for k, v := range in.Results { // as their block arguments: nothing is known of either
		r.setStorage(v, variables[k])
	}
	return nil
}

func (r *renderer) branch(in *program.Instr) error {
	variables := make([][]operand, len(in.Results))
	for k, v := range in.Results {
		n := v.Type.Lanes
		if isPacked(v.Type) {
			n = wordsOf(v.Type)
		}
		for range n {
			variables[k] = append(variables[k], r.declare(r.storageType(v)))
		}
		r.setStorage(v, variables[k])
	}
	r.begin("if (%s)", r.lane(in.Args[0], 0).text())
	if err := r.block(in.Body); err != nil {
		return err
	}
	r.yields(in.Body, variables)
	if len(in.Results) == 0 && len(in.Else.Instrs) == 1 {
		r.end("}")
		return nil
	}
	r.scopes.Close()
	r.depth--
	r.begin("} else")
	if err := r.block(in.Else); err != nil {
		return err
	}
	r.yields(in.Else, variables)
	r.end("}")
	return nil
}

// grid runs the block's own unit or, persistent, every gridDim-th after it.
func (r *renderer) grid(in *program.Instr) error {
	index := in.Body.Args[0]
	if !r.opt.Persistent {
		r.set(index, []operand{r.let(int32Type, "(int)blockIdx.x")})
		return r.block(in.Body)
	}
	unit := operand{name: r.name("u"), t: uint32Type}
	r.begin("for (unsigned %s = blockIdx.x; %s < %du; %s += gridDim.x)", unit.name, unit.name, r.program.Units(), unit.name)
	r.set(index, []operand{r.let(int32Type, "(int)%s", unit.name)})
	if err := r.block(in.Body); err != nil {
		return err
	}
	if r.shared > 0 {
		r.line("__syncthreads();") // the next unit writes what this one reads
	}
	r.end("}")
	return nil
}
