package engine

import (
	"errors"
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
)

// errFreed is the error of a step that Free was called on.
var errFreed = errors.New("engine: the step has been freed")

// variablesOf lists the symbolic variables of a graph that the host gives values to.
func variablesOf(sink *ir.UOp) (list []ir.VarArg) {
	for _, u := range ir.Toposort(sink) {
		if v, ok := u.Arg.(ir.VarArg); ok && u.Op == ir.OpVar && !v.Device {
			list = append(list, v)
		}
	}
	return list
}

// check refuses values that variables were not declared for: kernels rely on their
// bounds, and a value outside of them would read and write past the ends of buffers. The
// values are kept for Last.
func (s *Step) check(vars map[string]int64) error {
	if s.recording == nil {
		return errFreed
	}
	for _, v := range s.Compiled.Variables {
		value, ok := vars[v.Name]
		switch {
		case !ok:
			return fmt.Errorf("engine: variable %q has no value, want %s", v.Name, rangeText(v))
		case value < v.Lo || value > v.Hi || v.Multiple > 1 && value%v.Multiple != 0:
			return fmt.Errorf("engine: variable %q is %d, want %s", v.Name, value, rangeText(v))
		}
	}
	values := lists.Map(s.Compiled.Variables, func(v ir.VarArg) int64 { return vars[v.Name] })
	s.last.Store(&values)
	return nil
}

// Last are the values of the variables in the last run; ran says whether there was one.
func (s *Step) Last() (vars map[string]int64, ran bool) {
	values := s.last.Load()
	if values == nil {
		return nil, false
	}
	vars = make(map[string]int64, len(*values))
	for i, v := range s.Compiled.Variables {
		vars[v.Name] = (*values)[i]
	}
	return vars, true
}

func rangeText(v ir.VarArg) string {
	text := fmt.Sprintf("%d to %d", v.Lo, v.Hi)
	if v.Multiple > 1 {
		text += fmt.Sprintf(", a multiple of %d", v.Multiple)
	}
	return text
}
