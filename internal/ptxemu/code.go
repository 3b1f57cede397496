package ptxemu

import "fmt"

const lanes = 32

// vector is a register in all lanes of a warp. Narrower registers are extended
// with zeros.
type vector [lanes]uint64

// code is a compiled kernel.
type code struct {
	steps []step
	data  int // slots of data registers, literals and special registers
	preds int
	// caches counts the instructions that remember an allocation.
	caches int
	// literals and special registers are slots that a warp fills once.
	literals []literal
	specials []special
	widths   map[int]int // bits of the data slots that are registers
}

type literal struct {
	slot int
	bits uint64
}

type special struct {
	slot int
	name string
}

// stepKind tells who executes a step: its closure, or the warp itself.
type stepKind uint8

const (
	plain stepKind = iota
	branch
	exit
	barrier
	gridWait
	clusterWait
)

// step is a compiled instruction.
type step struct {
	kind   stepKind
	line   int
	text   string
	guard  int // slot of a predicate; -1 without
	negate bool
	reads  []int // data slots that must be defined
	tests  []int // predicate slots that must be defined
	writes []int
	joins  []int // data slots that it reads and writes, and checks itself
	sets   []int // predicates
	full   bool  // all lanes of the warp must take part
	run    func(w *warp, active uint32) error
	target int // of a branch
	meet   int // of a branch: the step where its sides meet again
	warps  int // of a barrier: how many meet there; 0: all of the block
}

// compiler turns statements into steps.
type compiler struct {
	kernel *Kernel
	code   *code
	consts map[uint64]int
	named  map[string]int
	now    *step
	err    error // the first fault of the statement; what is compiled after it is not used
}

func (c *compiler) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (k *Kernel) compile() error {
	if err := k.layout(); err != nil {
		return err
	}
	c := &compiler{kernel: k, code: &code{widths: make(map[int]int)}, consts: make(map[uint64]int), named: make(map[string]int)}
	c.code.data = 1 // slot 0 is the sink `_`
	for i := range k.source {
		s := &k.source[i]
		c.code.steps = append(c.code.steps, step{line: s.line, text: s.String(), guard: -1})
		c.now = &c.code.steps[i]
		if c.statement(s); c.err != nil {
			return fmt.Errorf("line %d: `%s`: %w", s.line, c.now.text, c.err)
		}
	}
	g := findMeetings(c.code.steps)
	k.Registers = g.registers(c.code.widths)
	k.program = c.code
	k.source, k.regs = nil, nil
	return nil
}

// layout places the kernel's own variables.
func (k *Kernel) layout() error {
	place := func(v *variable, used *int) {
		align := max(v.align, 1)
		v.offset = (*used + align - 1) / align * align
		*used = v.offset + v.size
	}
	for _, v := range k.module.globals {
		if v.space == "shared" && !v.extern {
			place(v, &k.Shared)
		}
	}
	for _, v := range k.shared {
		place(v, &k.Shared)
	}
	for _, v := range k.locals {
		place(v, &k.local)
	}
	for _, v := range append(k.shared, k.module.globals...) {
		if v.space == "shared" && v.extern {
			k.extern = (k.Shared + max(v.align, 1) - 1) / max(v.align, 1) * max(v.align, 1)
			v.offset = k.extern
		}
	}
	if k.Shared > 1<<20 || k.local > 1<<20 {
		return fmt.Errorf("%d bytes of shared and %d of local memory", k.Shared, k.local)
	}
	return nil
}

// variable finds named memory of any space.
func (c *compiler) variable(name string) *variable {
	k := c.kernel
	for _, list := range [][]*variable{k.params, k.shared, k.locals, k.module.globals} {
		for _, v := range list {
			if v.name == name {
				return v
			}
		}
	}
	return nil
}

// Slots.

// literal is a slot that holds a constant in every lane.
func (c *compiler) literal(bits uint64) int {
	if slot, ok := c.consts[bits]; ok {
		return slot
	}
	slot := c.code.data
	c.code.data++
	c.consts[bits] = slot
	c.code.literals = append(c.code.literals, literal{slot, bits})
	return slot
}

var specialNames = map[string]bool{
	"%tid.x": true, "%tid.y": true, "%tid.z": true, "%ntid.x": true, "%ntid.y": true, "%ntid.z": true,
	"%ctaid.x": true, "%ctaid.y": true, "%ctaid.z": true, "%nctaid.x": true, "%nctaid.y": true, "%nctaid.z": true,
	"%laneid": true, "%warpid": true, "%nwarpid": true, "%lanemask_eq": true, "%lanemask_lt": true, "%lanemask_le": true,
	"%lanemask_gt": true, "%lanemask_ge": true, "%dynamic_smem_size": true, "%clock": true, "%clock64": true,
	"%globaltimer": true, "%smid": true, "%nsmid": true,
}

// source is the slot of a data operand; a register must be defined when the
// step runs. bits is the width that the instruction reads.
func (c *compiler) source(a argument, bits int) int {
	r := c.kernel.regs[a.name]
	switch {
	case a.number:
		return c.literal(a.bits & mask(bits))
	case a.list != nil || a.memory || a.negated || a.pair != "":
		c.fail("operand %s is no register or number", a)
		return 0
	case r == nil && specialNames[a.name]:
		return c.special(a.name)
	case r == nil && a.name == "WARP_SZ":
		return c.literal(lanes)
	case r == nil:
		c.fail("unknown operand %s", a)
		return 0
	case r.bits == 1:
		c.fail("operand %s is a predicate", a)
	case r.bits < bits:
		c.fail("operand %s has %d bits, want %d", a, r.bits, bits)
	}
	slot := c.slot(r)
	c.now.reads = append(c.now.reads, slot)
	return slot
}

// special is the slot of a special register.
func (c *compiler) special(name string) int {
	slot, ok := c.named[name]
	if !ok {
		slot = c.code.data
		c.code.data++
		c.named[name] = slot
		c.code.specials = append(c.code.specials, special{slot, name})
	}
	return slot
}

func (c *compiler) slot(r *register) int {
	if r.slot < 0 {
		if r.bits == 1 {
			r.slot = c.code.preds
			c.code.preds++
		} else {
			r.slot = c.code.data
			c.code.data++
			c.code.widths[r.slot] = r.bits
		}
	}
	return r.slot
}

// destination is the slot of a data result and its width.
func (c *compiler) destination(a argument, bits int) (slot, width int) {
	if a.name == "_" {
		return 0, bits
	}
	r := c.kernel.regs[a.name]
	if r == nil || r.bits == 1 || a.number || a.memory || a.list != nil {
		c.fail("result %s is no register", a)
		return 0, bits
	}
	if r.bits < bits {
		c.fail("result %s has %d bits, want %d", a, r.bits, bits)
	}
	slot = c.slot(r)
	c.now.writes = append(c.now.writes, slot)
	return slot, r.bits
}

// predicateSource is a predicate operand, perhaps negated, or a number.
type predicateSource struct {
	slot   int
	negate bool
	number bool
	value  uint32
}

func (s predicateSource) read(w *warp) uint32 {
	switch {
	case s.number:
		return s.value
	case s.negate:
		return ^w.preds[s.slot]
	}
	return w.preds[s.slot]
}

func (c *compiler) predicateSource(a argument) predicateSource {
	if a.number {
		s := predicateSource{number: true}
		if a.bits != 0 {
			s.value = ^uint32(0)
		}
		return s
	}
	slot := c.predicate("operand", a.name)
	c.now.tests = append(c.now.tests, slot)
	return predicateSource{slot: slot, negate: a.negated}
}

func (c *compiler) predicateDestination(name string) int {
	slot := c.predicate("result", name)
	c.now.sets = append(c.now.sets, slot)
	return slot
}

// predicate is the slot of a predicate register.
func (c *compiler) predicate(what, name string) int {
	r := c.kernel.regs[name]
	if r == nil || r.bits != 1 {
		c.fail("%s %s is no predicate", what, name)
		return 0
	}
	return c.slot(r)
}

func mask(bits int) uint64 {
	if bits >= 64 {
		return ^uint64(0)
	}
	return 1<<bits - 1
}

// statement compiles one instruction.
func (c *compiler) statement(s *statement) {
	if s.guard != "" {
		c.now.guard, c.now.negate = c.predicate("guard", s.guard), s.negate
	}
	if s.has("ftz") && !s.has("approx") {
		c.fail("flushing of subnormals is not supported")
	}
	compile, ok := instructions[s.op]
	if !ok {
		c.fail("unknown instruction %s", s.op)
		return
	}
	compile(c, s)
}

// arity checks the number of operands; where some are missing, empty ones are
// added.
func (c *compiler) arity(s *statement, least, most int) {
	if len(s.args) < least || len(s.args) > most {
		c.fail("%d operands, want %d to %d", len(s.args), least, most)
	}
	for len(s.args) < least {
		s.args = append(s.args, argument{})
	}
}

// instructions by name: the table is filled by the files that have them.
var instructions = map[string]func(*compiler, *statement){}

func init() {
	for _, table := range []map[string]func(*compiler, *statement){
		controlInstructions, memoryInstructions, integerInstructions, floatInstructions, moveInstructions, warpInstructions,
	} {
		for name, f := range table {
			instructions[name] = f
		}
	}
}
