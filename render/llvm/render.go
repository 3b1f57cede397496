package llvm

import (
	"fmt"
	"strconv"
	"strings"

	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/ir/program/dep"
	"tgc/target"
)

// Render returns the text of a module and the name of its entry. The program
// must be verified, and what the target lacks expanded in it (pass expand-math).
func Render(p *program.Program, desc *target.Desc) (text, entry string, err error) {
	return render(p, desc, false)
}

// Annotated is the text with each instruction of the program as a comment before what
// is made of it.
func Annotated(p *program.Program, desc *target.Desc) (string, error) {
	text, _, err := render(p, desc, true)
	return text, err
}

// comment is a line between instructions.
type comment struct {
	llir.Instruction
	text string
}

// LLString is the line.
func (c *comment) LLString() string { return "; " + c.text }

func render(p *program.Program, desc *target.Desc, annotate bool) (text, entry string, err error) {
	r := &renderer{
		annotate:   annotate,
		program:    p,
		desc:       desc,
		module:     llir.NewModule(),
		values:     make([]value.Value, p.Values),
		consts:     make([]*program.Instr, p.Values),
		intrinsics: make(map[string]*llir.Func),
		made:       make([]*program.Instr, p.Values),
		buffers:    dep.MemoryOf(p),
	}
	if desc != nil && desc.BytePairs() {
		r.pairs = pairChains(p)
	}
	entry = entryName(p.Name)
	if err := r.function(entry); err != nil {
		return "", "", fmt.Errorf("render/llvm: kernel %s: %w", p.Name, err)
	}
	return r.module.String(), entry, nil
}

// entryName makes an identifier of a kernel's name.
func entryName(name string) string {
	clean := func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			return c
		}
		return '_'
	}
	return "k_" + strings.Map(clean, name)
}

type renderer struct {
	program    *program.Program
	annotate   bool
	desc       *target.Desc
	module     *llir.Module
	fn         *llir.Func
	entry      *llir.Block // allocas and parameters
	at         *llir.Block // where instructions go
	values     []value.Value
	consts     []*program.Instr // by value id, for ops that depend on constants
	intrinsics map[string]*llir.Func
	// nontemporal is the metadata of stores past the caches, nil without any.
	nontemporal *metadata.Tuple
	lo, hi      value.Value
	queue       value.Value // of units that are taken while the kernel runs; nil without one
	blocks      int
	tiles       map[tileShape]*tileSet
	made        []*program.Instr              // by value id, so far
	buffers     *dep.Memory                   // tells what is only read
	pairs       map[*program.Value]*pairChain // nil where dots are made otherwise
}

func (r *renderer) function(name string) error {
	args := llir.NewParam("args", types.NewPointer(types.I8Ptr))
	lo, hi := llir.NewParam("lo", types.I64), llir.NewParam("hi", types.I64)
	r.lo, r.hi = lo, hi
	r.fn = r.module.NewFunc(name, types.Void, args, lo, hi)
	if r.program.SharesUnits() {
		queue := llir.NewParam("queue", types.NewPointer(types.I64))
		r.fn.Params, r.queue = append(r.fn.Params, queue), queue
		r.fn.Sig.Params = append(r.fn.Sig.Params, queue.Typ)
	}
	r.fn.FuncAttrs = r.attributes()
	r.entry = r.fn.NewBlock("entry")
	r.at = r.fn.NewBlock("start")
	for i := range r.program.Params {
		r.param(args, i)
	}
	if err := r.configureTiles(); err != nil {
		return err
	}
	if err := r.block(r.program.Body); err != nil {
		return err
	}
	r.releaseTiles()
	if r.nontemporal != nil {
		r.at.NewFence(enum.AtomicOrderingSequentiallyConsistent)
	}
	r.at.NewRet(nil)
	r.entry.NewBr(r.fn.Blocks[1])
	return nil
}

// attributes: without builtins LLVM makes no memset out of a zeroing loop;
// the vector widths keep it from splitting our vectors on CPUs that it tunes
// for narrower ones.
func (r *renderer) attributes() []llir.FuncAttribute {
	attrs := []llir.FuncAttribute{llir.AttrString("no-builtins"), enum.FuncAttrNoUnwind}
	if r.desc != nil && r.desc.VectorBytes > 0 {
		bits := strconv.Itoa(8 * r.desc.VectorBytes)
		attrs = append(attrs,
			llir.AttrPair{Key: "prefer-vector-width", Value: bits},
			llir.AttrPair{Key: "min-legal-vector-width", Value: bits})
	}
	return attrs
}

func (r *renderer) param(args value.Value, i int) {
	p := &r.program.Params[i]
	slot := r.pointerAdd(r.entry, types.I8Ptr, args, intOf(types.I64, int64(i)))
	raw := r.entry.NewLoad(types.I8Ptr, slot)
	raw.Align = 8
	var v value.Value
	if p.Kind == program.ParamVar {
		v = r.entry.NewPtrToInt(raw, types.I64)
	} else {
		v = raw
		if t := valueType(p.Value.Type); !t.Equal(types.I8Ptr) {
			v = r.entry.NewBitCast(raw, t)
		}
	}
	r.values[p.Value.ID] = v
}

// pointerAdd is getelementptr with one index, scalar or vector.
func (r *renderer) pointerAdd(at *llir.Block, elem types.Type, p, index value.Value) value.Value {
	var t types.Type = types.NewPointer(elem)
	if v, ok := index.Type().(*types.VectorType); ok {
		t = types.NewVector(v.Len, t)
	}
	in := &llir.InstGetElementPtr{ElemType: elem, Src: p, Indices: []value.Value{index}, Typ: t}
	at.Insts = append(at.Insts, in)
	return in
}

func (r *renderer) value(v *program.Value) value.Value { return r.values[v.ID] }

func (r *renderer) set(in *program.Instr, v value.Value) {
	r.values[in.Result.ID], r.made[in.Result.ID] = v, in
}

func (r *renderer) newBlock(role string) *llir.Block {
	r.blocks++
	return r.fn.NewBlock(role + strconv.Itoa(r.blocks))
}

// block renders the instructions of a block; yields are left to the caller.
func (r *renderer) block(b *program.Block) error {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if r.annotate {
			r.at.Insts = append(r.at.Insts, &comment{text: program.PrintInstr(in)})
		}
		if err := r.instr(in); err != nil {
			return fmt.Errorf("`%s`: %w", program.PrintInstr(in), err)
		}
	}
	return nil
}

func (r *renderer) instr(in *program.Instr) error {
	switch in.Op {
	case program.Const, program.ConstLanes:
		r.constant(in)
	case program.Alu:
		return r.alu(in)
	case program.Dot4, program.Broadcast, program.Extract, program.Shuffle, program.Concat, program.FoldLanes:
		r.lanes(in)
	case program.Store, program.Scatter:
		r.forgetTiles()
		r.memory(in)
	case program.PtrAdd, program.Load, program.Gather, program.Guarded, program.Prefetch, program.Alloca:
		r.memory(in)
	case program.TileDot:
		return r.tileDot(in)
	case program.For:
		return r.loop(in)
	case program.If:
		return r.branch(in)
	case program.GridLoop:
		return r.grid(in)
	case program.Yield:
	default:
		return fmt.Errorf("a CPU has no %s", in.Op)
	}
	return nil
}

func (r *renderer) constant(in *program.Instr) {
	t := in.Result.Type
	r.consts[in.Result.ID] = in
	lane := func(i int) string {
		switch {
		case in.Op == program.ConstLanes && t.Elem.IsFloat():
			return elementLiteral(t.Elem, 0, in.Floats[i])
		case in.Op == program.ConstLanes:
			return elementLiteral(t.Elem, in.Ints[i], 0)
		}
		return elementLiteral(t.Elem, in.Int, in.Float)
	}
	if v, ok := valueType(t).(*types.VectorType); ok {
		r.set(in, vectorLiteral(v, lane))
		return
	}
	r.set(in, &literal{valueType(t), lane(0)})
}

// constInt is the value of an integer constant with equal lanes.
func (r *renderer) constInt(v *program.Value) (int64, bool) {
	c := r.consts[v.ID]
	if c == nil || c.Op != program.Const || v.Type.Elem.IsFloat() {
		return 0, false
	}
	return c.Int, true
}

// constFloat is the value of a float constant with equal lanes.
func (r *renderer) constFloat(v *program.Value) (float64, bool) {
	c := r.consts[v.ID]
	if c == nil || c.Op != program.Const || !v.Type.Elem.IsFloat() {
		return 0, false
	}
	return c.Float, true
}

// Control flow. Loops are rotated: test, then bodies that end with the test.

// counted renders a loop from lo below hi. carry makes the phis at the head of
// the body, next the values for another round (nil, nil for a grid).
func (r *renderer) counted(body *program.Block, lo, hi, step value.Value, inits []value.Value) ([]value.Value, error) {
	before := r.at
	head := r.newBlock("loop")
	exit := llir.NewBlock("done" + strconv.Itoa(r.blocks))
	before.NewCondBr(before.NewICmp(enum.IPredSLT, lo, hi), head, exit)

	r.at = head
	index := head.NewPhi(llir.NewIncoming(lo, before))
	r.values[body.Args[0].ID] = index
	phis := make([]*llir.InstPhi, len(inits))
	for i, init := range inits {
		phis[i] = head.NewPhi(llir.NewIncoming(init, before))
		r.values[body.Args[1+i].ID] = phis[i]
	}
	if err := r.block(body); err != nil {
		return nil, err
	}
	latch := r.at
	next := latch.NewAdd(index, step)
	index.Incs = append(index.Incs, llir.NewIncoming(next, latch))
	latch.NewCondBr(latch.NewICmp(enum.IPredSLT, next, hi), head, exit)

	exit.Parent = r.fn
	r.fn.Blocks = append(r.fn.Blocks, exit)
	r.at = exit
	results := make([]value.Value, len(inits))
	for i, init := range inits {
		v := r.value(body.Instrs[len(body.Instrs)-1].Args[i])
		phis[i].Incs = append(phis[i].Incs, llir.NewIncoming(v, latch))
		results[i] = exit.NewPhi(llir.NewIncoming(init, before), llir.NewIncoming(v, latch))
	}
	return results, nil
}

func (r *renderer) loop(in *program.Instr) error {
	inits := lists.Map(in.Args[3:], r.value)
	results, err := r.counted(in.Body, r.value(in.Args[0]), r.value(in.Args[1]), r.value(in.Args[2]), inits)
	if err != nil {
		return err
	}
	for i, v := range results {
		r.values[in.Results[i].ID] = v
	}
	return nil
}

func (r *renderer) grid(in *program.Instr) error {
	if r.queue != nil {
		return r.sharedGrid(in)
	}
	_, err := r.counted(in.Body, r.lo, r.hi, intOf(types.I64, 1), nil)
	return err
}

// sharedGrid runs the worker's own units, and then what it takes out of the queue (package
// runtime/cpu/native has its words: the first unit that is left, how many are taken at once, and their end).
func (r *renderer) sharedGrid(in *program.Instr) error {
	before, one := r.at, intOf(types.I64, 1)
	word := func(at *llir.Block, i int64) value.Value {
		in := at.NewLoad(types.I64, r.pointerAdd(at, types.I64, r.queue, intOf(types.I64, i)))
		in.Align = 8
		return in
	}
	take := r.newBlock("take")
	before.NewBr(take)
	lo, hi := take.NewPhi(llir.NewIncoming(r.lo, before)), take.NewPhi(llir.NewIncoming(r.hi, before))
	r.at = take
	if _, err := r.counted(in.Body, lo, hi, one, nil); err != nil {
		return err
	}
	again := r.at
	chunk, end := word(again, 1), word(again, 2)
	first := again.NewAtomicRMW(enum.AtomicOpAdd, r.queue, chunk, enum.AtomicOrderingMonotonic)
	last := again.NewAdd(first, chunk)
	lo.Incs = append(lo.Incs, llir.NewIncoming(first, again))
	hi.Incs = append(hi.Incs, llir.NewIncoming(again.NewSelect(again.NewICmp(enum.IPredSLT, last, end), last, end), again))
	done := r.newBlock("taken")
	again.NewCondBr(again.NewICmp(enum.IPredSLT, first, end), take, done)
	r.at = done
	return nil
}

func (r *renderer) branch(in *program.Instr) error {
	before := r.at
	then := r.newBlock("then")
	r.at = then
	if err := r.block(in.Body); err != nil {
		return err
	}
	thenEnd := r.at
	other := r.newBlock("else")
	r.at = other
	if err := r.block(in.Else); err != nil {
		return err
	}
	otherEnd := r.at
	before.NewCondBr(r.value(in.Args[0]), then, other)
	join := r.newBlock("join")
	thenEnd.NewBr(join)
	otherEnd.NewBr(join)
	r.at = join
	yes := in.Body.Instrs[len(in.Body.Instrs)-1].Args
	no := in.Else.Instrs[len(in.Else.Instrs)-1].Args
	for i, v := range in.Results {
		r.values[v.ID] = join.NewPhi(llir.NewIncoming(r.value(yes[i]), thenEnd), llir.NewIncoming(r.value(no[i]), otherEnd))
	}
	return nil
}

// intrinsic calls llvm.NAME.suffixes, declaring it at first use.
func (r *renderer) intrinsic(name string, result types.Type, args ...value.Value) value.Value {
	f := r.intrinsics[name]
	if f == nil {
		params := lists.Map(args, func(a value.Value) *llir.Param { return llir.NewParam("", a.Type()) })
		f = r.module.NewFunc(name, result, params...)
		r.intrinsics[name] = f
	}
	return r.at.NewCall(f, args...)
}
