package dep

import "tgc/ir/program"

// Memory knows what the pointers of a program lead into.
type Memory struct {
	root   map[*program.Value]*program.Value // of pointers that are computed
	params map[*program.Value]*program.Param // buffers and tables
}

// MemoryOf follows the pointers of a program.
func MemoryOf(p *program.Program) *Memory {
	m := &Memory{root: make(map[*program.Value]*program.Value), params: make(map[*program.Value]*program.Param)}
	for i := range p.Params {
		if x := &p.Params[i]; x.Kind != program.ParamVar {
			m.params[x.Value] = x
		}
	}
	p.Body.Each(func(in *program.Instr) {
		if in.Result != nil && in.Result.Type.Ptr && len(in.Args) > 0 {
			m.Derive(in.Result, in.Args[0])
		}
	})
	return m
}

// Derive notes a pointer that is computed from another one.
func (m *Memory) Derive(pointer, from *program.Value) {
	if from.Type.Ptr {
		m.root[pointer] = m.Root(from)
	}
}

// Root is the parameter or array that a pointer leads into.
func (m *Memory) Root(pointer *program.Value) *program.Value {
	if r := m.root[pointer]; r != nil {
		return r
	}
	return pointer
}

// Param is the buffer or table that a pointer leads into; nil for an array.
func (m *Memory) Param(pointer *program.Value) *program.Param { return m.params[m.Root(pointer)] }

// ReadOnly reports a pointer into a buffer or table that the program does not write.
func (m *Memory) ReadOnly(pointer *program.Value) bool {
	p := m.Param(pointer)
	return p != nil && !p.Write
}
