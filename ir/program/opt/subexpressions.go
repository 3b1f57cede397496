package opt

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/ir/program"
)

// eliminateCommonSubexpressions lets equal instructions be one: what computes the same from the
// same values, and loads of the same bytes of a buffer that the program does not
// write. A value made in an outer block serves the blocks in it. Parts of a
// program that were written apart, such as the fills of several shared arrays
// from one row, then load and fold that row once.
func eliminateCommonSubexpressions(p *program.Program) {
	s := &sharer{constant: make(map[*program.Value]bool), same: make(map[*program.Value]*program.Value), seen: make(map[shareKey][]shared)}
	for _, param := range p.Params {
		s.constant[param.Value] = param.Kind == program.ParamTable || param.Kind == program.ParamBuffer && !param.Write
	}
	s.walk(p.Body)
}

type sharer struct {
	constant map[*program.Value]bool           // pointers into memory that nothing writes
	same     map[*program.Value]*program.Value // what stands for a value
	seen     map[shareKey][]shared
	open     []*program.Block
}

// shared is an instruction's result in a block: it serves while the block is
// open.
type shared struct {
	block *program.Block
	value *program.Value
}

// shareKey tells instructions apart; rest holds what seldom occurs.
type shareKey struct {
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
		if in.Body != nil {
			s.walk(in.Body)
		}
		if in.Else != nil {
			s.walk(in.Else)
		}
		if s.shareable(&in) {
			key := keyOf(&in)
			if v := s.find(key); v != nil {
				s.same[in.Result] = v
				continue
			}
			s.seen[key] = append(s.seen[key], shared{b, in.Result})
		}
		out = append(out, in)
	}
	clear(b.Instrs[len(out):])
	b.Instrs = out
	s.open = s.open[:len(s.open)-1]
}

// find is the value of an open block with this key.
func (s *sharer) find(key shareKey) *program.Value {
	for _, x := range s.seen[key] {
		for _, b := range s.open {
			if b == x.block {
				return x.value
			}
		}
	}
	return nil
}

// shareable reports an instruction whose result depends on its operands alone.
func (s *sharer) shareable(in *program.Instr) bool {
	switch in.Op {
	case program.Alu, program.ConstLanes, program.Iota, program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat, program.FoldLanes, program.Dot4, program.ThreadIndex, program.ShuffleLane:
		if in.Result.Type.Ptr {
			s.constant[in.Result] = s.constant[in.Args[0]]
		}
		return true
	case program.PtrAdd:
		s.constant[in.Result] = s.constant[in.Args[0]]
		return true
	case program.Load, program.Gather:
		return s.constant[in.Args[0]]
	}
	return false
}

func keyOf(in *program.Instr) shareKey {
	k := shareKey{op: in.Op, ir: in.Ir, typ: in.Result.Type, count: len(in.Args), lane: in.Lane, bits: in.Int}
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
