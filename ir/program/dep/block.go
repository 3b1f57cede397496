package dep

import (
	"slices"
	"tgc/ir/program"
)

// Makers tells which instruction of a block makes a value.
type Makers map[*program.Value]int

// Carried is the maker of what a loop carries from one iteration to the next.
const Carried = -1

// MakersOf lists what the instructions of a block make: results of control flow too,
// values made in inner blocks not.
func MakersOf(b *program.Block) Makers {
	m := make(Makers, len(b.Instrs))
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Result != nil {
			m[in.Result] = i
		}
		for _, r := range in.Results {
			m[r] = i
		}
	}
	return m
}

// LastUses tells which instruction of a block is the last to use a value, in blocks
// within it too.
func LastUses(b *program.Block) map[*program.Value]int {
	last := make(map[*program.Value]int)
	for i := range b.Instrs {
		b.Instrs[i].EachUse(func(v *program.Value) { last[v] = i })
	}
	return last
}

// Slice collects instructions of a block with all that they need of it.
type Slice struct {
	Block  *program.Block
	Makers Makers
	In     map[int]bool                 // instructions that were taken
	may    func(in *program.Instr) bool // what can be taken along
	can    map[int]bool                 // what Reaches found so far
}

// NewSlice is an empty slice of a block. may tells which instructions can be taken
// because another needs them.
func NewSlice(b *program.Block, may func(in *program.Instr) bool) *Slice {
	return &Slice{Block: b, Makers: MakersOf(b), In: make(map[int]bool), may: may, can: make(map[int]bool)}
}

// NewLoopSlice is an empty slice of a loop's body, for another iteration: of what the
// loop hands to its body only the index is known there.
func NewLoopSlice(loop *program.Instr, may func(in *program.Instr) bool) *Slice {
	s := NewSlice(loop.Body, may)
	for _, a := range loop.Body.Args[1:] {
		s.Makers[a] = Carried
	}
	return s
}

// Reaches reports that all that an instruction needs of the block can be taken.
func (s *Slice) Reaches(in *program.Instr) bool {
	return !slices.ContainsFunc(in.Args, func(a *program.Value) bool { return !s.reaches(a) })
}

func (s *Slice) reaches(v *program.Value) bool {
	i, inside := s.Makers[v]
	if !inside || i >= 0 && s.In[i] {
		return true
	}
	if i == Carried {
		return false
	}
	if can, known := s.can[i]; known {
		return can
	}
	in := &s.Block.Instrs[i]
	s.can[i] = s.may(in) && s.Reaches(in)
	return s.can[i]
}

// Take takes what an instruction needs of the block.
func (s *Slice) Take(in *program.Instr) {
	for _, a := range in.Args {
		if i, inside := s.Makers[a]; inside && i >= 0 && !s.In[i] {
			s.In[i] = true
			s.Take(&s.Block.Instrs[i])
		}
	}
}

// Pressure is the most registers that hold values between two instructions of a block,
// values made before and used after. counts leaves out results of instructions.
func Pressure(b *program.Block, counts func(in *program.Instr) bool) int {
	return pressure(b, counts, nil)
}

func pressure(b *program.Block, counts func(in *program.Instr) bool, args []*program.Value) (most int) {
	last := LastUses(b)
	live := 0
	ends := make([]int, len(b.Instrs))
	begin := func(v *program.Value) {
		if end, used := last[v]; used {
			live += v.Type.Registers()
			ends[end] += v.Type.Registers()
		}
	}
	for _, v := range args {
		begin(v)
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		inner := 0
		if in.Body != nil {
			inner = pressure(in.Body, counts, in.Body.Args)
		}
		most = max(most, live+inner)
		live -= ends[i]
		if in.Result != nil && counts(in) {
			begin(in.Result)
		}
		for _, r := range in.Results {
			begin(r)
		}
	}
	return most
}
