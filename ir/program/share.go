package program

import (
	"fmt"
	"math"

	"tgc/ir"
)

// ShareValues lets equal instructions be one: what computes the same from the
// same values, and loads of the same bytes of a buffer that the program does not
// write. A value made in an outer block serves the blocks in it. Parts of a
// program that were written apart, such as the fills of several shared arrays
// from one row, then load and fold that row once.
func ShareValues(p *Program) {
	s := &sharer{constant: make(map[*Value]bool), same: make(map[*Value]*Value), seen: make(map[shareKey][]shared)}
	for _, param := range p.Params {
		s.constant[param.Value] = param.Kind == ParamTable || param.Kind == ParamBuffer && !param.Write
	}
	s.walk(p.Body)
}

type sharer struct {
	constant map[*Value]bool   // pointers into memory that nothing writes
	same     map[*Value]*Value // what stands for a value
	seen     map[shareKey][]shared
	open     []*Block
}

// shared is an instruction's result in a block: it serves while the block is
// open.
type shared struct {
	block *Block
	value *Value
}

// shareKey tells instructions apart; rest holds what seldom occurs.
type shareKey struct {
	op    Op
	ir    ir.Op
	typ   Type
	args  [3]int
	count int
	lane  int
	bits  int64
	rest  string
}

func (s *sharer) walk(b *Block) {
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
func (s *sharer) find(key shareKey) *Value {
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
func (s *sharer) shareable(in *Instr) bool {
	switch in.Op {
	case Alu, ConstLanes, Iota, Broadcast, Extract, Insert, Shuffle, Concat, FoldLanes, Dot4, ThreadIndex, ShuffleLane:
		if in.Result.Type.Ptr {
			s.constant[in.Result] = s.constant[in.Args[0]]
		}
		return true
	case PtrAdd:
		s.constant[in.Result] = s.constant[in.Args[0]]
		return true
	case Load, Gather:
		return s.constant[in.Args[0]]
	}
	return false
}

func keyOf(in *Instr) shareKey {
	k := shareKey{op: in.Op, ir: in.Ir, typ: in.Result.Type, count: len(in.Args), lane: in.Lane, bits: in.Int}
	for i, a := range in.Args {
		if i < len(k.args) {
			k.args[i] = a.ID
		} else {
			k.rest += fmt.Sprint(" ", a.ID)
		}
	}
	if in.Mask != nil || in.Ints != nil || in.Cache != CacheDefault {
		k.rest += fmt.Sprint("|", in.Mask, in.Ints, in.Cache)
	}
	for _, f := range in.Floats {
		k.rest += fmt.Sprint(" ", math.Float64bits(f))
	}
	return k
}
