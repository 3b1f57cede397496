package opt

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir/program"
)

// pack are the lanes of several values one after the other, in registers: one that has just these lanes, or
// several of a packer's width. What a last register has beyond them is not read.
type pack struct {
	registers []*program.Value
	lanes     int
}

// packer writes what packs are made of, to the current block of a builder.
type packer struct {
	*program.Builder
	width int // lanes of a register
}

// chunk is how many lanes a register of a pack has.
func (p packer) chunk(lanes int) int { return min(lanes, p.width) }

// concat puts the lanes of values one after the other; a register has room for a whole number of them, or
// they are registers.
func (p packer) concat(values []*program.Value) pack {
	lanes := values[0].Type.Lanes
	out := pack{lanes: len(values) * lanes}
	each := max(p.chunk(out.lanes)/lanes, 1)
	for part := range slices.Chunk(values, each) {
		out.registers = append(out.registers, p.Concat(filled(part, each)...))
	}
	return out
}

// repeat is a pack of one value so many times.
func (p packer) repeat(v *program.Value, times int) pack {
	n := v.Type.Lanes
	return p.pick(pack{[]*program.Value{v}, n}, lists.Make(times*n, func(k int) int { return k % n }))
}

// pick is a pack of lanes of another one.
func (p packer) pick(of pack, lanes []int) pack {
	width, chunk := of.registers[0].Type.Lanes, p.chunk(len(lanes))
	if width == chunk && slices.Equal(lanes, lists.Upto(of.lanes)) {
		return of
	}
	out := pack{lanes: len(lanes)}
	for part := range slices.Chunk(lanes, chunk) {
		out.registers = append(out.registers, p.pickRegister(of, width, filled(part, chunk)))
	}
	return out
}

// pickRegister is a register of lanes of a pack: of two of its registers, or of halves made so.
func (p packer) pickRegister(of pack, width int, lanes []int) *program.Value {
	var used []int
	for _, lane := range lanes {
		used = lists.Union(used, lane/width)
	}
	if len(used) > 2 {
		half := len(lanes) / 2
		return p.Concat(p.pickRegister(of, width, lanes[:half]), p.pickRegister(of, width, lanes[half:]))
	}
	x, y := of.registers[used[0]], of.registers[used[len(used)-1]]
	if width == 1 && x == y {
		return p.Broadcast(x, len(lanes))
	}
	return p.Shuffle(x, y, lists.Map(lanes, func(lane int) int {
		if lane/width == used[0] {
			return lane % width
		}
		return width + lane%width
	})...)
}

// operate is an operation of packs, lane by lane: like gives its kind, and the type of an element of the result.
func (p packer) operate(like *program.Instr, args []pack) pack {
	out := pack{lanes: args[0].lanes}
	for r := range args[0].registers {
		list := lists.Map(args, func(a pack) *program.Value { return a.registers[r] })
		v := p.NewValue(program.Vector(like.Result.Type.Elem, list[0].Type.Lanes))
		v.Origin = like.Result.Origin
		p.Emit(program.Instr{Op: program.Alu, Ir: like.Ir, Result: v, Args: list})
		out.registers = append(out.registers, v)
	}
	return out
}

// take is lanes of a pack that lie in one register, as a value.
func (p packer) take(of pack, from, lanes int) *program.Value {
	register, lane := p.at(of, from)
	if lanes == 1 {
		return p.Extract(register, lane)
	}
	return p.Slice(register, lane, lanes)
}

// at is the register that has a lane of a pack, and which of its lanes that is.
func (p packer) at(of pack, lane int) (*program.Value, int) {
	width := of.registers[0].Type.Lanes
	return of.registers[lane/width], lane % width
}

// filled is a list of n elements, of which those that a part lacks are its first.
func filled[E any](part []E, n int) []E {
	part = slices.Clone(part)
	for len(part) < n {
		part = append(part, part[0])
	}
	return part
}
