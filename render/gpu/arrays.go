package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
)

// maxRegisterArray bounds the elements: more would not stay in registers.
const maxRegisterArray = 128

// Array is a local Alloca that needs no memory: every access is at a constant
// place.
type Array struct {
	Elem  ir.DType
	Count int64
}

// Arrays finds such Allocas: their pointers are only moved by constants and
// used by loads and stores of their own type that stay inside.
func Arrays(p *program.Program) map[*program.Value]Array {
	f := &arrayFinder{
		arrays: make(map[*program.Value]Array),
		at:     make(map[*program.Value]place),
		consts: make(map[*program.Value]int64),
	}
	f.block(p.Body)
	return f.arrays
}

type place struct {
	alloca *program.Value
	index  int64
}

type arrayFinder struct {
	arrays map[*program.Value]Array
	at     map[*program.Value]place
	consts map[*program.Value]int64
}

func (f *arrayFinder) block(b *program.Block) {
	for i := range b.Instrs {
		f.instr(&b.Instrs[i])
	}
}

func (f *arrayFinder) instr(in *program.Instr) {
	switch in.Op {
	case program.Const:
		f.consts[in.Result] = in.Int
	case program.Alloca:
		if in.Result.Type.Space == program.LocalSpace && in.Count <= maxRegisterArray {
			f.arrays[in.Result] = Array{Elem: in.Result.Type.Elem, Count: in.Count}
			f.at[in.Result] = place{in.Result, 0}
		}
		return
	case program.PtrAdd:
		if p, ok := f.at[in.Args[0]]; ok {
			if n, known := f.consts[in.Args[1]]; known {
				f.at[in.Result] = place{p.alloca, p.index + n}
				return
			}
		}
	case program.Load:
		if f.inside(in.Args[0], in.Result.Type.Lanes) {
			return
		}
	case program.Store:
		if f.inside(in.Args[0], in.Args[1].Type.Lanes) {
			return
		}
	}
	for _, a := range in.Args { // any other use needs memory
		if p, ok := f.at[a]; ok {
			delete(f.arrays, p.alloca)
		}
	}
	if in.Body != nil {
		f.block(in.Body)
	}
	if in.Else != nil {
		f.block(in.Else)
	}
}

func (f *arrayFinder) inside(p *program.Value, lanes int) bool {
	at, ok := f.at[p]
	if !ok {
		return false
	}
	a, kept := f.arrays[at.alloca]
	return kept && at.index >= 0 && at.index+int64(lanes) <= a.Count
}
