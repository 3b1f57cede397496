package program

import (
	"fmt"
	"math"
	"math/bits"

	"tgc/ir"
)

// Verify checks that a program is well formed. The contract:
//
//   - every value has one definition and an id below Values; a use stands after
//     its definition, in the same block or in a block around it (dominance by
//     structure);
//   - the body of the program ends with its one GridLoop; every GridLoop
//     stands there, with one I64 argument; For and If blocks end with a Yield
//     that matches the results, and Yield stands nowhere else;
//   - dtypes are storable (neither Void nor Idx), lanes are 1..MaxLanes;
//   - operand and result types of each instruction are those its Op documents;
//     integer constants are wrapped to and float constants are values of their
//     dtype;
//   - a pointer's element type is that of what is loaded or stored; constant
//     tables and buffers not marked Write are never written, those not marked
//     Read never read;
//   - alignments are powers of two, at least 1 (they may be below the element's
//     size: packed weights have odd addresses);
//   - only buffers are marked Constant or Early, and what is Constant is not
//     marked Write;
//   - grid extents are at least 0, parameters have distinct values;
//   - a cluster has 1, 2, 4 or 8 work units, and the grid whole clusters.
func Verify(p *Program) error {
	v := &verifier{program: p, defined: make(map[*Value]bool), ids: make(map[int]bool), root: make(map[*Value]*Param), array: make(map[*Value]*Instr)}
	if v.run(); v.err != nil {
		return fmt.Errorf("program %s: %w", p.Name, v.err)
	}
	return nil
}

// MaxLanes bounds the lanes of a value.
const MaxLanes = 4096

func (v *verifier) run() {
	p := v.program
	if p.Body == nil {
		v.fail("no body")
		return
	}
	for _, g := range p.Grid {
		if g < 0 {
			v.fail("grid extent %d, want at least 0", g)
			return
		}
	}
	if v.cluster(); v.err != nil {
		return
	}
	for i := range p.Params {
		if v.param(&p.Params[i]); v.err != nil {
			v.err = fmt.Errorf("param %d: %w", i, v.err)
			return
		}
	}
	v.block(p.Body, blockTop)
	if v.grids != 1 {
		v.fail("%d grid loops, want 1", v.grids)
	}
}

func (v *verifier) param(p *Param) {
	if p.Value == nil {
		v.fail("no value")
		return
	}
	t := p.Value.Type
	switch p.Kind {
	case ParamBuffer:
		if !t.Ptr || t.Space != GlobalSpace {
			v.fail("buffer has type %s, want a global pointer", t)
		}
		if p.Bytes < 0 {
			v.fail("buffer of %d bytes", p.Bytes)
		}
		v.root[p.Value] = p
	case ParamVar:
		if t != Scalar(ir.I64) {
			v.fail("var has type %s, want i64", t)
		}
	case ParamTable:
		if !t.Ptr || t.Space != ConstSpace {
			v.fail("table has type %s, want a const pointer", t)
		}
		v.root[p.Value] = p
	default:
		v.fail("unknown kind %d", p.Kind)
	}
	if (p.Constant || p.Early) && p.Kind != ParamBuffer {
		v.fail("only a buffer can be constant or early")
	}
	if p.Constant && p.Write {
		v.fail("a constant buffer is written")
	}
	if p.Kind != ParamVar {
		v.checkAlign(p.Align)
	}
	v.define(p.Value)
}

func (v *verifier) checkAlign(align int) {
	if align < 1 || bits.OnesCount(uint(align)) != 1 {
		v.fail("align %d, want a power of two", align)
	}
}

func (v *verifier) define(val *Value) {
	if val == nil {
		v.fail("missing result")
		return
	}
	if val.ID < 0 || val.ID >= v.program.Values {
		v.fail("%s: id not in 0..%d", val, v.program.Values-1)
	}
	if v.ids[val.ID] {
		v.fail("%s: defined twice", val)
	}
	t := val.Type
	if t.Elem.Size() == 0 {
		v.fail("%s: type %s cannot be stored", val, t)
	}
	if t.Lanes < 1 || t.Lanes > MaxLanes || t.Ptr && t.Lanes != 1 {
		v.fail("%s: %d lanes, want 1..%d (a pointer 1)", val, t.Lanes, MaxLanes)
	}
	if t.Space > PeerSpace || !t.Ptr && t.Space != GlobalSpace {
		v.fail("%s: space %d of type %s", val, t.Space, t)
	}
	v.ids[val.ID] = true
	v.defined[val] = true
}

type blockKind uint8

const (
	blockTop blockKind = iota
	blockGrid
	blockYields
)

// block checks the instructions; what they define leaves scope at the end.
func (v *verifier) block(b *Block, kind blockKind) {
	var local []*Value
	for _, a := range b.Args {
		v.define(a)
		local = append(local, a)
	}
	if v.err != nil {
		return
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		last := i == len(b.Instrs)-1
		if v.instr(in, kind, last); v.err != nil {
			v.err = fmt.Errorf("`%s`: %w", PrintInstr(in), v.err)
			return
		}
		if in.Result != nil {
			local = append(local, in.Result)
		}
		local = append(local, in.Results...)
	}
	if kind == blockYields && (len(b.Instrs) == 0 || b.Instrs[len(b.Instrs)-1].Op != Yield) {
		v.fail("a block of a for or if does not end with a yield")
	}
	for _, a := range local {
		delete(v.defined, a)
	}
}

func (v *verifier) instr(in *Instr, kind blockKind, last bool) {
	for i, a := range in.Args {
		if a == nil || !v.defined[a] {
			v.fail("argument %d (%s) is not defined here", i, a)
		}
	}
	switch in.Op {
	case GridLoop:
		v.grids++
		if kind != blockTop || !last {
			v.fail("a grid loop stands at the end of the program")
		}
	case Yield:
		if kind != blockYields || !last {
			v.fail("a yield stands at the end of a for or if block")
		}
	}
	rule, ok := rules[in.Op]
	if !ok {
		v.fail("unknown op %d", in.Op)
	}
	if rule.args >= 0 && len(in.Args) != rule.args {
		v.fail("%d arguments, want %d", len(in.Args), rule.args)
	}
	if rule.result != (in.Result != nil) {
		v.fail("result present: %t, want %t", in.Result != nil, rule.result)
	}
	if in.Op != For && in.Op != If && len(in.Results) != 0 {
		v.fail("several results, want at most one")
	}
	if (in.Body != nil) != (in.Op == For || in.Op == If || in.Op == GridLoop) || (in.Else != nil) != (in.Op == If) {
		v.fail("blocks do not fit the op")
	}
	if rule.aligned {
		v.checkAlign(in.Align)
	}
	if v.err != nil {
		return
	}
	rule.check(v, in)
	if in.Result != nil {
		v.define(in.Result)
	}
	for _, r := range in.Results {
		v.define(r)
	}
}

type rule struct {
	args    int // -1 when it varies
	result  bool
	aligned bool
	check   func(v *verifier, in *Instr)
}

func nothing(*verifier, *Instr) {}

var rules map[Op]rule

func init() {
	rules = map[Op]rule{
		Alu:         {-1, true, false, checkAlu},
		Const:       {0, true, false, checkConst},
		ConstLanes:  {0, true, false, checkConstLanes},
		Broadcast:   {1, true, false, checkBroadcast},
		Extract:     {1, true, false, checkExtract},
		Shuffle:     {2, true, false, checkShuffle},
		Concat:      {-1, true, false, checkConcat},
		FoldLanes:   {1, true, false, checkFold},
		PtrAdd:      {2, true, false, checkPtrAdd},
		Load:        {1, true, true, checkLoad},
		Store:       {2, false, true, checkStore},
		Gather:      {2, true, true, checkGather},
		Scatter:     {3, false, true, checkScatter},
		Guarded:     {3, true, true, checkGuarded},
		Prefetch:    {1, false, false, checkPrefetch},
		Alloca:      {0, true, true, checkAlloca},
		For:         {-1, false, false, checkFor},
		If:          {1, false, false, checkIf},
		Yield:       {-1, false, false, nothing},
		GridLoop:    {0, false, false, checkGridLoop},
		ThreadIndex: {0, true, false, checkThreadIndex},
		Barrier:     {0, false, false, checkBarrier},
		ShuffleLane: {2, true, false, checkShuffleLane},
		WaitGrid:    {0, false, false, nothing},
		LaunchNext:  {0, false, false, nothing},

		PeerPtr:       {2, true, false, checkPeerPtr},
		ClusterArrive: {0, false, false, nothing},
		ClusterWait:   {0, false, false, nothing},

		SyncWarp: {0, false, false, nothing},
		Fence:    {0, false, false, nothing},
		Atomic:   {2, true, true, checkAtomic},
		Mma:      {3, true, false, checkMma},
		GroupMma: {3, true, false, checkGroupMma},
		TileDot:  {-1, false, false, checkTileDot},

		CopyAsync:  {2, false, false, checkCopyAsync},
		WaitCopies: {0, false, false, nothing},

		Dot4: {3, true, false, checkDot4},
	}
}

// Types.

func checkAlu(v *verifier, in *Instr) {
	op, t := in.Ir, in.Result.Type
	if !op.IsElementwise() {
		v.fail("%s is no elementwise op", op)
	}
	if n := op.Info().Arity; len(in.Args) != n {
		v.fail("%d arguments, want %d", len(in.Args), n)
	}
	for _, a := range in.Args {
		if a.Type.Ptr != t.Ptr || a.Type.Lanes != t.Lanes && op != ir.OpBitcast {
			v.fail("%s of type %s does not fit the result type %s", a, a.Type, t)
		}
	}
	if v.err != nil {
		return
	}
	if t.Ptr {
		if op != ir.OpBitcast || in.Args[0].Type.Space != t.Space {
			v.fail("only a bitcast within one space is legal on pointers")
		}
		v.derive(in.Args[0], in.Result)
		return
	}
	v.checkAluTypes(op, t, in.Args)
}

func (v *verifier) checkAluTypes(op ir.Op, t Type, args []*Value) {
	first := args[0].Type
	switch op.Info().Type {
	case ir.TypeFree: // casts
		if op == ir.OpBitcast && (first.Lanes*first.Elem.Size() != t.Lanes*t.Elem.Size() || t.Lanes < first.Lanes || first.Elem == ir.Bool != (t.Elem == ir.Bool)) {
			v.fail("bitcast of %s to %s", first, t)
		}
		return
	case ir.TypeCompare:
		if t.Elem != ir.Bool {
			v.fail("result has type %s, want bool", t)
		}
		v.want("argument 1", args[1].Type, first)
		return
	case ir.TypeWhere:
		if first.Elem != ir.Bool {
			v.fail("condition has type %s, want bool", first)
		}
		args = args[1:]
	}
	for i, a := range args {
		v.want(fmt.Sprintf("operand %d", i), a.Type, t)
	}
	if !op.Takes(t.Elem) {
		v.fail("%s of %s has no meaning", op, t.Elem)
	}
}

func checkConst(v *verifier, in *Instr) {
	v.wantValue("result", in.Result.Type)
	v.checkLiteral(in.Result.Type.Elem, in.Int, in.Float)
}

func (v *verifier) checkLiteral(elem ir.DType, n int64, f float64) {
	if elem.IsFloat() {
		if !math.IsNaN(f) && floatBits(ir.RoundFloat(elem, f)) != floatBits(f) {
			v.fail("%g is no value of %s", f, elem)
		}
	} else if ir.WrapInt(elem, n) != n {
		v.fail("%d is no value of %s", n, elem)
	}
}

func checkConstLanes(v *verifier, in *Instr) {
	t := in.Result.Type
	v.wantValue("result", t)
	if t.Elem.IsFloat() && (len(in.Floats) != t.Lanes || len(in.Ints) != 0) ||
		!t.Elem.IsFloat() && (len(in.Ints) != t.Lanes || len(in.Floats) != 0) {
		v.fail("%d integers and %d floats for %s", len(in.Ints), len(in.Floats), t)
	}
	for _, n := range in.Ints {
		v.checkLiteral(t.Elem, n, 0)
	}
	for _, f := range in.Floats {
		v.checkLiteral(t.Elem, 0, f)
	}
}

func checkBroadcast(v *verifier, in *Instr) {
	t := in.Result.Type
	v.wantValue("result", t)
	v.want("argument", in.Args[0].Type, Scalar(t.Elem))
}

func (v *verifier) checkLane(lane, lanes int) {
	if lane < 0 || lane >= lanes {
		v.fail("lane %d, want 0..%d", lane, lanes-1)
	}
}

func checkExtract(v *verifier, in *Instr) {
	t := in.Args[0].Type
	v.wantValue("argument", t)
	v.want("result", in.Result.Type, Scalar(t.Elem))
	v.checkLane(in.Lane, t.Lanes)
}

func checkShuffle(v *verifier, in *Instr) {
	t := in.Args[0].Type
	v.wantValue("argument", t)
	v.want("argument 1", in.Args[1].Type, t)
	v.want("result", in.Result.Type, Vector(t.Elem, len(in.Mask)))
	for _, m := range in.Mask {
		if m < -1 || m >= 2*t.Lanes {
			v.fail("mask lane %d, want -1..%d", m, 2*t.Lanes-1)
		}
	}
}

func checkConcat(v *verifier, in *Instr) {
	if len(in.Args) == 0 {
		v.fail("no arguments")
		return
	}
	lanes := 0
	for _, a := range in.Args {
		if a.Type.Ptr || a.Type.Elem != in.Args[0].Type.Elem {
			v.fail("%s has type %s, want elements %s", a, a.Type, in.Args[0].Type.Elem)
		}
		lanes += a.Type.Lanes
	}
	v.want("result", in.Result.Type, Vector(in.Args[0].Type.Elem, lanes))
}

func checkFold(v *verifier, in *Instr) {
	t := in.Args[0].Type
	switch in.Ir {
	case ir.OpAdd, ir.OpMul, ir.OpMax, ir.OpMin:
	default:
		v.fail("fold with %s, want add, mul, max or min", in.Ir)
	}
	v.wantValue("argument", t)
	v.want("result", in.Result.Type, Scalar(t.Elem))
}

func checkDot4(v *verifier, in *Instr) {
	n := in.Result.Type.Lanes
	v.want("result", in.Result.Type, Vector(ir.I32, n))
	v.want("accumulator", in.Args[0].Type, in.Result.Type)
	for i, a := range in.Args[1:] {
		if a.Type != Vector(ir.U8, 4*n) && a.Type != Vector(ir.I8, 4*n) {
			v.fail("argument %d has type %s, want %s or %s", i+1, a.Type, Vector(ir.U8, 4*n), Vector(ir.I8, 4*n))
		}
	}
}

func checkThreadIndex(v *verifier, in *Instr) {
	if n := max(len(v.program.Block), 1); in.Lane < 0 || in.Lane >= n {
		v.fail("axis %d of a block of %d", in.Lane, n)
	}
	v.want("result", in.Result.Type, Scalar(ir.I32))
}

func checkShuffleLane(v *verifier, in *Instr) {
	v.want("mask", in.Args[1].Type, Scalar(ir.I32))
	v.want("result", in.Result.Type, in.Args[0].Type)
}

// Memory.

func (v *verifier) derive(from, to *Value) {
	if r := v.root[from]; r != nil {
		v.root[to] = r
	}
	if a := v.array[from]; a != nil {
		v.array[to] = a
	}
}

func checkPtrAdd(v *verifier, in *Instr) {
	v.wantPointer(in.Args[0])
	v.want("offset", in.Args[1].Type, Scalar(ir.I64))
	v.derive(in.Args[0], in.Result)
	v.want("result", in.Result.Type, in.Args[0].Type)
}

func checkLoad(v *verifier, in *Instr) {
	v.access(in.Args[0], in.Result.Type, false)
}

func checkStore(v *verifier, in *Instr) {
	v.access(in.Args[0], in.Args[1].Type, true)
}

func (v *verifier) checkOffsets(t Type, lanes int) {
	if t.Ptr || t.Elem != ir.I32 && t.Elem != ir.I64 || t.Lanes != lanes {
		v.fail("offsets have type %s, want %d lanes of i32 or i64", t, lanes)
	}
}

func checkGather(v *verifier, in *Instr) {
	v.checkOffsets(in.Args[1].Type, in.Result.Type.Lanes)
	v.access(in.Args[0], in.Result.Type, false)
}

func checkScatter(v *verifier, in *Instr) {
	v.checkOffsets(in.Args[1].Type, in.Args[2].Type.Lanes)
	v.access(in.Args[0], in.Args[2].Type, true)
}

func checkGuarded(v *verifier, in *Instr) {
	if guard := in.Args[0].Type; guard.Lanes > 1 {
		v.want("guard", guard, Vector(ir.Bool, in.Result.Type.Lanes))
	} else {
		v.want("guard", guard, Scalar(ir.Bool))
	}
	v.want("argument 2", in.Args[2].Type, in.Result.Type)
	v.access(in.Args[1], in.Result.Type, false)
}

func checkBarrier(v *verifier, in *Instr) {
	if in.Int < 0 || in.Int%warpSize != 0 || in.Int >= max(v.program.Threads(), 1) {
		v.fail("the first %d threads of %d, want whole warps and not all", in.Int, v.program.Threads())
	}
}

func checkPrefetch(v *verifier, in *Instr) {
	v.wantPointer(in.Args[0])
	if in.Int < 0 || in.Int > SecondLevel {
		v.fail("prefetch into level %d, want 0 to %d", in.Int, SecondLevel)
	}
}

func checkAlloca(v *verifier, in *Instr) {
	t := in.Result.Type
	if !t.Ptr || t.Space != LocalSpace && t.Space != SharedSpace {
		v.fail("result has type %s, want a local or shared pointer", t)
	}
	if in.Count < 1 || in.Count > 1<<32 {
		v.fail("count %d, want 1..2^32", in.Count)
	}
	v.array[in.Result] = in
}

// Control flow.

func checkFor(v *verifier, in *Instr) {
	if len(in.Args) < 3 {
		v.fail("%d arguments, want at least lo, hi, step", len(in.Args))
		return
	}
	for i, name := range []string{"lo", "hi", "step"} {
		v.want(name, in.Args[i].Type, Scalar(ir.I64))
	}
	inits := in.Args[3:]
	if len(in.Body.Args) != 1+len(inits) || len(in.Results) != len(inits) {
		v.fail("%d initial values, %d block arguments, %d results", len(inits), len(in.Body.Args), len(in.Results))
		return
	}
	v.want("index", in.Body.Args[0].Type, Scalar(ir.I64))
	for i, init := range inits {
		if init.Type.Ptr {
			v.fail("%s: a pointer cannot be carried", init)
		}
		v.want("block argument", in.Body.Args[1+i].Type, init.Type)
		v.want("result", in.Results[i].Type, init.Type)
	}
	v.yielding(in.Body, in.Results)
}

func checkIf(v *verifier, in *Instr) {
	v.want("condition", in.Args[0].Type, Scalar(ir.Bool))
	for _, r := range in.Results {
		if r.Type.Ptr {
			v.fail("%s: a pointer cannot be yielded", r)
		}
	}
	for b := range in.Blocks() {
		if len(b.Args) != 0 {
			v.fail("an if block has no arguments")
		}
		v.yielding(b, in.Results)
	}
}

// yielding checks a block that yields results.
func (v *verifier) yielding(b *Block, results []*Value) {
	if v.block(b, blockYields); v.err != nil {
		return
	}
	yield := &b.Instrs[len(b.Instrs)-1]
	if len(yield.Args) != len(results) {
		v.fail("yield of %d values, want %d", len(yield.Args), len(results))
		return
	}
	for i, a := range yield.Args {
		if a.Type != results[i].Type {
			v.fail("yield %d has type %s, want %s", i, a.Type, results[i].Type)
		}
	}
}

func checkGridLoop(v *verifier, in *Instr) {
	if len(in.Body.Args) != 1 || in.Body.Args[0].Type != Scalar(ir.I64) {
		v.fail("a grid loop has one i64 argument")
	}
	v.block(in.Body, blockGrid)
}
