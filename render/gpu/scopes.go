package gpu

import "tgc/ir/program"

// Scopes keep what was computed on demand (a lane taken out of a word, a widened
// index, an address) for as long as the block is open that it was computed in:
// later blocks are not dominated by it.
type Scopes[T any] []map[string]T

// Open enters a block.
func (s *Scopes[T]) Open() { *s = append(*s, make(map[string]T)) }

// Close leaves the innermost block.
func (s *Scopes[T]) Close() { *s = (*s)[:len(*s)-1] }

// Once is the value of a key, computed in the innermost block if no open one has
// it.
func (s *Scopes[T]) Once(key string, compute func() T) T {
	for _, open := range *s {
		if o, ok := open[key]; ok {
			return o
		}
	}
	o := compute()
	(*s)[len(*s)-1][key] = o
	return o
}

// Sum is a value that is another one plus a constant.
type Sum struct {
	Of       *program.Value
	Constant int64
}

// Sums are what is known of indices, so that accesses around one of them share
// its address.
type Sums map[*program.Value]Sum

// Note remembers ADD of a constant, where alike says that both are held in one
// type, in which nothing wraps.
func (s Sums) Note(in *program.Instr, constants map[*program.Value]*program.Instr, alike func(x, y *program.Value) bool) {
	for i := range 2 {
		x, c := in.Args[i], constants[in.Args[1-i]]
		if c == nil || c.Op != program.Const || constants[x] != nil || !alike(x, in.Result) {
			continue
		}
		sum := s.Of(x)
		s[in.Result] = Sum{sum.Of, sum.Constant + c.Int}
		return
	}
}

// Of is a value as a sum; any other is itself plus 0.
func (s Sums) Of(v *program.Value) Sum {
	if sum, ok := s[v]; ok {
		return sum
	}
	return Sum{Of: v}
}
