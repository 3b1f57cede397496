package program

import "fmt"

type verifier struct {
	program *Program
	defined map[*Value]bool // in scope
	ids     map[int]bool
	root    map[*Value]*Param // of pointers into parameters
	array   map[*Value]*Instr // of pointers into arrays
	grids   int
	err     error // the first fault, after which not all that is checked makes sense
}

func (v *verifier) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

func (v *verifier) want(what string, got, expected Type) {
	if got != expected {
		v.fail("%s has type %s, want %s", what, got, expected)
	}
}

func (v *verifier) access(p *Value, t Type, write bool) {
	v.wantPointer(p)
	v.wantValue("value", t)
	if p.Type.Elem != t.Elem {
		v.fail("%s accessed through a pointer to %s", t, p.Type.Elem)
	}
	if write && p.Type.Space == ConstSpace {
		v.fail("write into constant space")
	}
	switch root := v.root[p]; {
	case root == nil || root.Kind != ParamBuffer:
	case write && !root.Write:
		v.fail("buffer %s (slot %d) is written but not marked write", root.Value, root.Slot)
	case !write && !root.Read:
		v.fail("buffer %s (slot %d) is read but not marked read", root.Value, root.Slot)
	}
}

func (v *verifier) wantValue(what string, t Type) {
	if t.Ptr {
		v.fail("%s has type %s, want a scalar or vector", what, t)
	}
}

func (v *verifier) wantPointer(a *Value) {
	if !a.Type.Ptr {
		v.fail("%s has type %s, want a pointer", a, a.Type)
	}
}
