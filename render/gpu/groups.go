package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// Products of warpgroups (program.GroupMma). They run on while the instructions behind them are printed: what they
// give is waited for where it is used first, and where threads meet or control flow parts. A product changes its
// accumulators in place, so that a chain of them needs no moves.

// groups knows the products of a program, and those that run at the place that is printed.
type groups struct {
	inPlace map[*program.Instr][]bool // lanes of accumulators that the product may change where they are
	running [][]Operand               // the accumulators of each product since the last wait
}

// groupsOf is nil for a program without such products.
func groupsOf(p *program.Program) *groups {
	if !HasOp(p.Body, program.GroupMma) {
		return nil
	}
	u := &laneUses{made: make(map[*program.Value]*program.Instr), of: make(map[lane]int), owners: make(map[*program.Value]*program.Block)}
	u.walk(p.Body)
	g := &groups{inPlace: make(map[*program.Instr][]bool)}
	u.decide(p.Body, g.inPlace)
	return g
}

// lane is one lane of a value that is not made of lanes of others.
type lane struct {
	value *program.Value
	at    int
}

// laneUses counts how often lanes of f32 are used, whatever values pass them on.
type laneUses struct {
	made   map[*program.Value]*program.Instr // values that only pass on lanes of others
	of     map[lane]int
	owners map[*program.Value]*program.Block // values with variables of their own: the block that they are of
}

// passesLanes reports an instruction whose result consists of lanes of its operands, in the same variables.
func passesLanes(in *program.Instr) bool { return dep.MovesLanes(in) && isSum(in.Result.Type) }

// isSum reports the elements of accumulators.
func isSum(t program.Type) bool { return !t.Ptr && t.Elem == ir.F32 }

// source is where a lane comes from.
func (u *laneUses) source(v *program.Value, at int) lane {
	for in := u.made[v]; in != nil; in = u.made[v] {
		switch in.Op {
		case program.Extract:
			v, at = in.Args[0], in.Lane
		case program.Broadcast:
			v, at = in.Args[0], 0
		default:
			v, at = LaneSource(in)(at)
		}
	}
	return lane{v, at}
}

// walk counts the uses in a block and notes which values it owns.
func (u *laneUses) walk(b *program.Block) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Result != nil && passesLanes(in) {
			u.made[in.Result] = in
			continue
		}
		for _, a := range in.Args {
			for at := 0; isSum(a.Type) && at < a.Type.Lanes; at++ {
				u.of[u.source(a, at)]++
			}
		}
		if in.Op == program.For {
			for _, a := range in.Body.Args[1:] {
				u.owners[a] = in.Body
			}
		}
		for inner := range in.Blocks() {
			u.walk(inner)
		}
		for _, r := range in.Results {
			u.owners[r] = b
		}
		if in.Op == program.GroupMma {
			u.owners[in.Result] = b
		}
	}
}

// decide lists for each product the lanes that nothing else uses and that are made in its own block: those of
// another one are needed again when this block runs again.
func (u *laneUses) decide(b *program.Block, inPlace map[*program.Instr][]bool) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		for inner := range in.Blocks() {
			u.decide(inner, inPlace)
		}
		if in.Op != program.GroupMma {
			continue
		}
		lanes := make([]bool, in.Args[0].Type.Lanes)
		for at := range lanes {
			from := u.source(in.Args[0], at)
			lanes[at] = u.of[from] == 1 && u.owners[from.value] == b
		}
		inPlace[in] = lanes
	}
}
