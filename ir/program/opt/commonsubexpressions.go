package opt

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// eliminateCommonSubexpressions lets equal instructions be one: what computes the same
// from the same values, and loads of the same bytes of a buffer that the program does not
// write. A value made in an outer block serves the blocks in it. Parts of a
// program that were written apart, such as the fills of several shared arrays
// from one row, then load and fold that row once.
func eliminateCommonSubexpressions(p *program.Program) {
	s := &sharer{memory: dep.MemoryOf(p), same: make(map[*program.Value]*program.Value), seen: make(map[expression][]available)}
	s.walk(p.Body)
}

type sharer struct {
	memory *dep.Memory
	same   map[*program.Value]*program.Value // the value that takes the place of an equal one
	seen   map[expression][]available
	open   []*program.Block
}

// available is an instruction's result in a block: it can be used while the block is
// open.
type available struct {
	block *program.Block
	value *program.Value
}

// expression tells instructions apart by what they compute; rest holds what seldom occurs.
type expression struct {
	op    program.Op
	ir    ir.Op
	typ   program.Type
	args  [3]int
	count int
	lane  int
	bits  int64
	rest  string
}

func (s *sharer) walk(b *program.Block) {
	s.open = append(s.open, b)
	out := b.Instrs[:0]
	for i := range b.Instrs {
		in := b.Instrs[i]
		for k, a := range in.Args {
			if v := s.same[a]; v != nil {
				in.Args[k] = v
			}
		}
		for inner := range in.Blocks() {
			s.walk(inner)
		}
		if s.shareable(&in) {
			key := keyOf(&in)
			if v := s.find(key); v != nil {
				s.same[in.Result] = v
				continue
			}
			s.seen[key] = append(s.seen[key], available{b, in.Result})
		}
		out = append(out, in)
	}
	clear(b.Instrs[len(out):])
	b.Instrs = out
	s.open = s.open[:len(s.open)-1]
}

// find is the value of an open block with this key.
func (s *sharer) find(key expression) *program.Value {
	for _, x := range s.seen[key] {
		for _, b := range s.open {
			if b == x.block {
				return x.value
			}
		}
	}
	return nil
}

// shareable reports an instruction whose result depends on its operands alone. Constants
// are one already.
func (s *sharer) shareable(in *program.Instr) bool {
	switch effects := dep.Of(in); effects {
	case dep.Reads:
		return in.Op != program.Guarded && s.memory.ReadOnly(in.Args[0])
	default:
		return effects&^dep.Exchanges == 0 && in.Op != program.Const
	}
}

func keyOf(in *program.Instr) expression {
	k := expression{op: in.Op, ir: in.Ir, typ: in.Result.Type, count: len(in.Args), lane: in.Lane, bits: in.Int}
	for i, a := range in.Args {
		if i < len(k.args) {
			k.args[i] = a.ID
		} else {
			k.rest += fmt.Sprint(" ", a.ID)
		}
	}
	if in.Mask != nil || in.Ints != nil || in.Cache != program.CacheDefault {
		k.rest += fmt.Sprint("|", in.Mask, in.Ints, in.Cache)
	}
	for _, f := range in.Floats {
		k.rest += fmt.Sprint(" ", math.Float64bits(f))
	}
	return k
}
