package gpu

import (
	"slices"

	"tgc/ir/program"
	"tgc/ir/program/bounds"
)

// oddBytes finds bytes that are odd in every lane: those of tables that have no others, of arrays that such
// bytes are copied to, and what moves them. The negative of an odd byte is what has all bits but the last
// turned over: there is nothing to carry.
func oddBytes(p *program.Program) map[*program.Value]bool {
	odd, root, mixed := make(map[*program.Value]bool), bounds.FilledFirst(p), make(map[*program.Value]bool)
	for i := range p.Params {
		if q := &p.Params[i]; q.Kind == program.ParamTable && q.Value.Type.Elem.Size() == 1 {
			root[q.Value] = q.Value
			mixed[q.Value] = slices.ContainsFunc([]byte(q.Table), func(b byte) bool { return b&1 == 0 })
		}
	}
	p.Body.Each(func(in *program.Instr) {
		switch in.Op {
		case program.PtrAdd:
			if root[in.Args[0]] != nil {
				root[in.Result] = root[in.Args[0]]
			}
		case program.Store, program.Scatter:
			if array := root[in.Args[0]]; array != nil && !odd[in.Args[len(in.Args)-1]] {
				mixed[array] = true
			}
		case program.Load, program.Gather:
			if array := root[in.Args[0]]; array != nil && !mixed[array] {
				odd[in.Result] = true
			}
		case program.Shuffle, program.Extract, program.Concat, program.Broadcast:
			if !slices.ContainsFunc(in.Args, func(v *program.Value) bool { return !odd[v] }) {
				odd[in.Result] = true
			}
		}
	})
	return odd
}
