package gpu

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// definitions say how the values of a program are made and read, whichever block they are of.
type definitions struct {
	made    map[*program.Value]*program.Instr // by result
	readers map[*program.Value]int            // instructions that read it
	factors map[*program.Value]bool           // of products
}

func definitionsOf(p *program.Program) definitions {
	d := definitions{make(map[*program.Value]*program.Instr), make(map[*program.Value]int), make(map[*program.Value]bool)}
	p.Body.Each(func(in *program.Instr) {
		if in.Result != nil {
			d.made[in.Result] = in
		}
		for _, a := range distinct(in.Args) {
			d.readers[a]++
			if in.Op == program.Alu && in.Ir == ir.OpMul {
				d.factors[a] = true
			}
		}
	})
	return d
}

// distinct are the arguments of an instruction, each once.
func distinct(args []*program.Value) (list []*program.Value) {
	for _, a := range args {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// by is the instruction that makes v if its op is the given one, else nil.
func (d definitions) by(v *program.Value, op program.Op) *program.Instr {
	if in := d.made[v]; in != nil && in.Op == op {
		return in
	}
	return nil
}

// alu is the elementwise instruction that makes v if its op is the given one, else nil.
func (d definitions) alu(v *program.Value, op ir.Op) *program.Instr {
	if in := d.by(v, program.Alu); in != nil && in.Ir == op {
		return in
	}
	return nil
}

// integer is the whole number that every lane of v is, if it is a Const.
func (d definitions) integer(v *program.Value) (int64, bool) {
	in := d.by(v, program.Const)
	if in == nil || v.Type.Elem.IsFloat() {
		return 0, false
	}
	return in.Int, true
}
