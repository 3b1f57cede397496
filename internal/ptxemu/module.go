package ptxemu

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
)

// Module is a parsed PTX module.
type Module struct {
	Version string
	Target  string // sm_90a
	globals []*variable
	kernels []*Kernel
}

// Kernel finds an entry by name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	var names []string
	for _, k := range m.kernels {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("ptx: no kernel %q (there are: %s)", name, strings.Join(names, ", "))
}

// Kernels lists the entries in order of the text.
func (m *Module) Kernels() []*Kernel { return m.kernels }

// Kernel is an entry of a module, ready to be launched.
type Kernel struct {
	Name       string
	ParamSizes []int // bytes
	MaxThreads int   // of a block, from .maxntid or .reqntid; 0 is not stated
	Cluster    int   // blocks of a cluster, from .reqnctapercluster; 0 is not stated
	Shared     int   // bytes, static
	Registers  int   // words of 32 bits live at once in a thread, at most; an assembler needs about as many

	module  *Module
	params  []*variable
	shared  []*variable
	locals  []*variable
	local   int // bytes a thread
	extern  int // where dynamic shared memory begins
	regs    map[string]*register
	labels  map[string]int
	source  []statement
	program *code
}

// Local is the local memory of a thread in bytes.
func (k *Kernel) Local() int { return k.local }

// variable is named memory.
type variable struct {
	name    string
	space   string // global, const, shared, local, param
	align   int
	size    int
	offset  int // within its space
	extern  bool
	initial []byte
}

// register is a declared register: a slot of data or of predicates.
type register struct {
	bits int // 1 of a predicate
	slot int
}

// statement is an instruction before it is compiled.
type statement struct {
	line   int
	guard  string // predicate register, or empty
	negate bool
	op     string   // "ld"
	mods   []string // "global", "v4", "b32"
	args   []argument
}

func (s *statement) String() string {
	text := s.op
	switch {
	case s.guard != "" && s.negate:
		text = "@!" + s.guard + " " + s.op
	case s.guard != "":
		text = "@" + s.guard + " " + s.op
	}
	for _, m := range s.mods {
		text += "." + m
	}
	for i, a := range s.args {
		if i > 0 {
			text += ","
		}
		text += " " + a.String()
	}
	return text
}

// has reports a modifier.
func (s *statement) has(mod string) bool { return slices.Contains(s.mods, mod) }

// mod is the i-th modifier, last the i-th from the end, where types stand; empty
// where there are not that many.
func (s *statement) mod(i int) string {
	if i < 0 || i >= len(s.mods) {
		return ""
	}
	return s.mods[i]
}

func (s *statement) last(i int) string { return s.mod(len(s.mods) - 1 - i) }

// argument is an operand. Exactly one of the forms is set.
type argument struct {
	name    string // register, symbol, label or special register
	negated bool   // !%p
	number  bool
	bits    uint64 // of a number
	float   bool   // a number in floating-point notation
	single  bool   // written as 0f..: its bits are those of an f32, else of an f64
	list    []argument
	memory  bool // [name + offset], or [offset] with an empty name
	offset  int64
	pair    string // the second of %r|%p
}

func (a argument) String() string {
	switch {
	case a.memory && a.name == "":
		return fmt.Sprintf("[%d]", a.offset)
	case a.memory && a.offset != 0:
		return fmt.Sprintf("[%s+%d]", a.name, a.offset)
	case a.memory:
		return "[" + a.name + "]"
	case a.list != nil:
		parts := lists.Make(len(a.list), func(i int) string { return a.list[i].String() })
		return "{" + strings.Join(parts, ", ") + "}"
	case a.number:
		return fmt.Sprintf("%d", int64(a.bits))
	case a.pair != "":
		return a.name + "|" + a.pair
	case a.negated:
		return "!" + a.name
	}
	return a.name
}
