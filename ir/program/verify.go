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
//   - grid extents are at least 0, parameters have distinct values.
func Verify(p *Program) error {
	v := &verifier{program: p, defined: make(map[*Value]bool), ids: make(map[int]bool), root: make(map[*Value]*Param)}
	if err := v.run(); err != nil {
		return fmt.Errorf("program %s: %w", p.Name, err)
	}
	return nil
}

// MaxLanes bounds the lanes of a value.
const MaxLanes = 4096

type verifier struct {
	program *Program
	defined map[*Value]bool // in scope
	ids     map[int]bool
	root    map[*Value]*Param // of pointers into parameters
	grids   int
}

func (v *verifier) run() error {
	p := v.program
	if p.Body == nil {
		return fmt.Errorf("no body")
	}
	for _, g := range p.Grid {
		if g < 0 {
			return fmt.Errorf("grid extent %d, want at least 0", g)
		}
	}
	for i := range p.Params {
		if err := v.param(&p.Params[i]); err != nil {
			return fmt.Errorf("param %d: %w", i, err)
		}
	}
	if err := v.block(p.Body, blockTop); err != nil {
		return err
	}
	if v.grids != 1 {
		return fmt.Errorf("%d grid loops, want 1", v.grids)
	}
	return nil
}

func (v *verifier) param(p *Param) error {
	if p.Value == nil {
		return fmt.Errorf("no value")
	}
	t := p.Value.Type
	switch p.Kind {
	case ParamBuffer:
		if !t.Ptr || t.Space != GlobalSpace {
			return fmt.Errorf("buffer has type %s, want a global pointer", t)
		}
		if p.Bytes < 0 {
			return fmt.Errorf("buffer of %d bytes", p.Bytes)
		}
		v.root[p.Value] = p
	case ParamVar:
		if t != Scalar(ir.I64) {
			return fmt.Errorf("var has type %s, want i64", t)
		}
	case ParamTable:
		if !t.Ptr || t.Space != ConstSpace {
			return fmt.Errorf("table has type %s, want a const pointer", t)
		}
		v.root[p.Value] = p
	default:
		return fmt.Errorf("unknown kind %d", p.Kind)
	}
	if (p.Constant || p.Early) && p.Kind != ParamBuffer {
		return fmt.Errorf("only a buffer can be constant or early")
	}
	if p.Constant && p.Write {
		return fmt.Errorf("a constant buffer is written")
	}
	if p.Kind != ParamVar {
		if err := checkAlign(p.Align); err != nil {
			return err
		}
	}
	return v.define(p.Value)
}

func checkAlign(align int) error {
	if align < 1 || bits.OnesCount(uint(align)) != 1 {
		return fmt.Errorf("align %d, want a power of two", align)
	}
	return nil
}

func (v *verifier) define(val *Value) error {
	if val == nil {
		return fmt.Errorf("missing result")
	}
	if val.ID < 0 || val.ID >= v.program.Values {
		return fmt.Errorf("%s: id not in 0..%d", val, v.program.Values-1)
	}
	if v.ids[val.ID] {
		return fmt.Errorf("%s: defined twice", val)
	}
	t := val.Type
	if t.Elem.Size() == 0 {
		return fmt.Errorf("%s: type %s cannot be stored", val, t)
	}
	if t.Lanes < 1 || t.Lanes > MaxLanes || t.Ptr && t.Lanes != 1 {
		return fmt.Errorf("%s: %d lanes, want 1..%d (a pointer 1)", val, t.Lanes, MaxLanes)
	}
	if t.Space > ConstSpace || !t.Ptr && t.Space != GlobalSpace {
		return fmt.Errorf("%s: space %d of type %s", val, t.Space, t)
	}
	v.ids[val.ID] = true
	v.defined[val] = true
	return nil
}

type blockKind uint8

const (
	blockTop blockKind = iota
	blockGrid
	blockYields
)

// block checks the instructions; what they define leaves scope at the end.
func (v *verifier) block(b *Block, kind blockKind) error {
	var local []*Value
	for _, a := range b.Args {
		if err := v.define(a); err != nil {
			return err
		}
		local = append(local, a)
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		last := i == len(b.Instrs)-1
		if err := v.instr(in, kind, last); err != nil {
			return fmt.Errorf("`%s`: %w", PrintInstr(in), err)
		}
		if in.Result != nil {
			local = append(local, in.Result)
		}
		local = append(local, in.Results...)
	}
	if kind == blockYields && (len(b.Instrs) == 0 || b.Instrs[len(b.Instrs)-1].Op != Yield) {
		return fmt.Errorf("a block of a for or if does not end with a yield")
	}
	for _, a := range local {
		delete(v.defined, a)
	}
	return nil
}

func (v *verifier) instr(in *Instr, kind blockKind, last bool) error {
	for i, a := range in.Args {
		if a == nil || !v.defined[a] {
			return fmt.Errorf("argument %d (%s) is not defined here", i, a)
		}
	}
	switch in.Op {
	case GridLoop:
		v.grids++
		if kind != blockTop || !last {
			return fmt.Errorf("a grid loop stands at the end of the program")
		}
	case Yield:
		if kind != blockYields || !last {
			return fmt.Errorf("a yield stands at the end of a for or if block")
		}
	}
	rule, ok := rules[in.Op]
	if !ok {
		return fmt.Errorf("unknown op %d", in.Op)
	}
	if rule.args >= 0 && len(in.Args) != rule.args {
		return fmt.Errorf("%d arguments, want %d", len(in.Args), rule.args)
	}
	if rule.result != (in.Result != nil) {
		return fmt.Errorf("result present: %t, want %t", in.Result != nil, rule.result)
	}
	if in.Op != For && in.Op != If && len(in.Results) != 0 {
		return fmt.Errorf("several results, want at most one")
	}
	if (in.Body != nil) != (in.Op == For || in.Op == If || in.Op == GridLoop) || (in.Else != nil) != (in.Op == If) {
		return fmt.Errorf("blocks do not fit the op")
	}
	if rule.aligned {
		if err := checkAlign(in.Align); err != nil {
			return err
		}
	}
	if err := rule.check(v, in); err != nil {
		return err
	}
	if in.Result != nil {
		return v.define(in.Result)
	}
	for _, r := range in.Results {
		if err := v.define(r); err != nil {
			return err
		}
	}
	return nil
}

type rule struct {
	args    int // -1 when it varies
	result  bool
	aligned bool
	check   func(v *verifier, in *Instr) error
}

func nothing(*verifier, *Instr) error { return nil }

var rules map[Op]rule

func init() {
	rules = map[Op]rule{
		Alu:         {-1, true, false, checkAlu},
		Const:       {0, true, false, checkConst},
		ConstLanes:  {0, true, false, checkConstLanes},
		Iota:        {0, true, false, checkIota},
		Broadcast:   {1, true, false, checkBroadcast},
		Extract:     {1, true, false, checkExtract},
		Insert:      {2, true, false, checkInsert},
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
		Barrier:     {0, false, false, nothing},
		ShuffleLane: {2, true, false, checkShuffleLane},
		WaitGrid:    {0, false, false, nothing},
		LaunchNext:  {0, false, false, nothing},
		SyncWarp:    {0, false, false, nothing},
		Fence:       {0, false, false, nothing},
		Atomic:      {2, true, true, checkAtomic},
		Mma:         {3, true, false, checkMma},
		AsyncCopy:   {2, false, false, checkAsyncCopy},
		AsyncCommit: {0, false, false, nothing},
		AsyncWait:   {0, false, false, checkAsyncWait},
		Dot4:        {3, true, false, checkDot4},
	}
}

// Types.

func want(what string, got, expected Type) error {
	if got != expected {
		return fmt.Errorf("%s has type %s, want %s", what, got, expected)
	}
	return nil
}

func wantValue(what string, t Type) error {
	if t.Ptr {
		return fmt.Errorf("%s has type %s, want a scalar or vector", what, t)
	}
	return nil
}

func checkAlu(v *verifier, in *Instr) error {
	op, t := in.Ir, in.Result.Type
	if !op.IsElementwise() {
		return fmt.Errorf("%s is no elementwise op", op)
	}
	if n := op.Info().Arity; len(in.Args) != n {
		return fmt.Errorf("%d arguments, want %d", len(in.Args), n)
	}
	for _, a := range in.Args {
		if a.Type.Ptr != t.Ptr || a.Type.Lanes != t.Lanes {
			return fmt.Errorf("%s of type %s does not fit the result type %s", a, a.Type, t)
		}
	}
	if t.Ptr {
		if op != ir.OpBitcast || in.Args[0].Type.Space != t.Space {
			return fmt.Errorf("only a bitcast within one space is legal on pointers")
		}
		v.derive(in.Args[0], in.Result)
		return nil
	}
	return checkAluTypes(op, t, in.Args)
}

func checkAluTypes(op ir.Op, t Type, args []*Value) error {
	first := args[0].Type
	switch op.Info().Type {
	case ir.TypeFree: // casts
		if op == ir.OpBitcast && (first.Elem.Size() != t.Elem.Size() || first.Elem == ir.Bool != (t.Elem == ir.Bool)) {
			return fmt.Errorf("bitcast of %s to %s", first, t)
		}
		return nil
	case ir.TypeCompare:
		if t.Elem != ir.Bool {
			return fmt.Errorf("result has type %s, want bool", t)
		}
		return want("argument 1", args[1].Type, first)
	case ir.TypeWhere:
		if first.Elem != ir.Bool {
			return fmt.Errorf("condition has type %s, want bool", first)
		}
		args = args[1:]
	case ir.TypeFloat:
		if !t.Elem.IsFloat() {
			return fmt.Errorf("%s of %s, want a float", op, t)
		}
	case ir.TypeShift:
		if !t.Elem.IsInt() {
			return fmt.Errorf("%s of %s, want an integer", op, t)
		}
	}
	for i, a := range args {
		if err := want(fmt.Sprintf("operand %d", i), a.Type, t); err != nil {
			return err
		}
	}
	return checkAluDomain(op, t.Elem)
}

// checkAluDomain is what the op table's documentation says beyond dtype rules.
func checkAluDomain(op ir.Op, elem ir.DType) error {
	ok := true
	switch op {
	case ir.OpFloorDiv, ir.OpFloorMod, ir.OpPopc, ir.OpClz:
		ok = elem.IsInt()
	case ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpNot:
		ok = !elem.IsFloat()
	case ir.OpSub, ir.OpNeg, ir.OpAbs:
		ok = elem != ir.Bool
	case ir.OpRng:
		ok = elem == ir.U32
	}
	if !ok {
		return fmt.Errorf("%s of %s has no meaning", op, elem)
	}
	return nil
}

func checkConst(_ *verifier, in *Instr) error {
	if err := wantValue("result", in.Result.Type); err != nil {
		return err
	}
	return checkLiteral(in.Result.Type.Elem, in.Int, in.Float)
}

func checkLiteral(elem ir.DType, n int64, f float64) error {
	if elem.IsFloat() {
		if !math.IsNaN(f) && floatBits(ir.RoundFloat(elem, f)) != floatBits(f) {
			return fmt.Errorf("%g is no value of %s", f, elem)
		}
		return nil
	}
	if ir.WrapInt(elem, n) != n {
		return fmt.Errorf("%d is no value of %s", n, elem)
	}
	return nil
}

func checkConstLanes(_ *verifier, in *Instr) error {
	t := in.Result.Type
	if err := wantValue("result", t); err != nil {
		return err
	}
	if t.Elem.IsFloat() && (len(in.Floats) != t.Lanes || len(in.Ints) != 0) ||
		!t.Elem.IsFloat() && (len(in.Ints) != t.Lanes || len(in.Floats) != 0) {
		return fmt.Errorf("%d integers and %d floats for %s", len(in.Ints), len(in.Floats), t)
	}
	for _, n := range in.Ints {
		if err := checkLiteral(t.Elem, n, 0); err != nil {
			return err
		}
	}
	for _, f := range in.Floats {
		if err := checkLiteral(t.Elem, 0, f); err != nil {
			return err
		}
	}
	return nil
}

func checkIota(_ *verifier, in *Instr) error {
	if t := in.Result.Type; t.Ptr || !t.Elem.IsInt() {
		return fmt.Errorf("result has type %s, want integers", t)
	}
	return nil
}

func checkBroadcast(_ *verifier, in *Instr) error {
	t := in.Result.Type
	if err := wantValue("result", t); err != nil {
		return err
	}
	return want("argument", in.Args[0].Type, Scalar(t.Elem))
}

func checkLane(lane, lanes int) error {
	if lane < 0 || lane >= lanes {
		return fmt.Errorf("lane %d, want 0..%d", lane, lanes-1)
	}
	return nil
}

func checkExtract(_ *verifier, in *Instr) error {
	t := in.Args[0].Type
	if err := wantValue("argument", t); err != nil {
		return err
	}
	if err := want("result", in.Result.Type, Scalar(t.Elem)); err != nil {
		return err
	}
	return checkLane(in.Lane, t.Lanes)
}

func checkInsert(_ *verifier, in *Instr) error {
	t := in.Result.Type
	if err := wantValue("result", t); err != nil {
		return err
	}
	if err := want("argument 0", in.Args[0].Type, t); err != nil {
		return err
	}
	if err := want("argument 1", in.Args[1].Type, Scalar(t.Elem)); err != nil {
		return err
	}
	return checkLane(in.Lane, t.Lanes)
}

func checkShuffle(_ *verifier, in *Instr) error {
	t := in.Args[0].Type
	if err := wantValue("argument", t); err != nil {
		return err
	}
	if err := want("argument 1", in.Args[1].Type, t); err != nil {
		return err
	}
	if err := want("result", in.Result.Type, Vector(t.Elem, len(in.Mask))); err != nil {
		return err
	}
	for _, m := range in.Mask {
		if m < -1 || m >= 2*t.Lanes {
			return fmt.Errorf("mask lane %d, want -1..%d", m, 2*t.Lanes-1)
		}
	}
	return nil
}

func checkConcat(_ *verifier, in *Instr) error {
	if len(in.Args) == 0 {
		return fmt.Errorf("no arguments")
	}
	lanes := 0
	for _, a := range in.Args {
		if a.Type.Ptr || a.Type.Elem != in.Args[0].Type.Elem {
			return fmt.Errorf("%s has type %s, want elements %s", a, a.Type, in.Args[0].Type.Elem)
		}
		lanes += a.Type.Lanes
	}
	return want("result", in.Result.Type, Vector(in.Args[0].Type.Elem, lanes))
}

func checkFold(_ *verifier, in *Instr) error {
	t := in.Args[0].Type
	switch in.Ir {
	case ir.OpAdd, ir.OpMul, ir.OpMax, ir.OpMin:
	default:
		return fmt.Errorf("fold with %s, want add, mul, max or min", in.Ir)
	}
	if err := wantValue("argument", t); err != nil {
		return err
	}
	if err := checkAluDomain(in.Ir, t.Elem); err != nil {
		return err
	}
	return want("result", in.Result.Type, Scalar(t.Elem))
}

func checkDot4(_ *verifier, in *Instr) error {
	n := in.Result.Type.Lanes
	if err := want("result", in.Result.Type, Vector(ir.I32, n)); err != nil {
		return err
	}
	if err := want("accumulator", in.Args[0].Type, in.Result.Type); err != nil {
		return err
	}
	for i, a := range in.Args[1:] {
		if a.Type != Vector(ir.U8, 4*n) && a.Type != Vector(ir.I8, 4*n) {
			return fmt.Errorf("argument %d has type %s, want %s or %s", i+1, a.Type, Vector(ir.U8, 4*n), Vector(ir.I8, 4*n))
		}
	}
	return nil
}

func checkThreadIndex(v *verifier, in *Instr) error {
	if n := max(len(v.program.Block), 1); in.Lane < 0 || in.Lane >= n {
		return fmt.Errorf("axis %d of a block of %d", in.Lane, n)
	}
	return want("result", in.Result.Type, Scalar(ir.I32))
}

func checkShuffleLane(_ *verifier, in *Instr) error {
	if err := want("mask", in.Args[1].Type, Scalar(ir.I32)); err != nil {
		return err
	}
	return want("result", in.Result.Type, in.Args[0].Type)
}

// Memory.

func wantPointer(a *Value) error {
	if !a.Type.Ptr {
		return fmt.Errorf("%s has type %s, want a pointer", a, a.Type)
	}
	return nil
}

func (v *verifier) access(p *Value, t Type, write bool) error {
	if err := wantPointer(p); err != nil {
		return err
	}
	if err := wantValue("value", t); err != nil {
		return err
	}
	if p.Type.Elem != t.Elem {
		return fmt.Errorf("%s accessed through a pointer to %s", t, p.Type.Elem)
	}
	if write && p.Type.Space == ConstSpace {
		return fmt.Errorf("write into constant space")
	}
	root := v.root[p]
	if root == nil || root.Kind != ParamBuffer {
		return nil
	}
	if write && !root.Write {
		return fmt.Errorf("buffer %s (slot %d) is written but not marked write", root.Value, root.Slot)
	}
	if !write && !root.Read {
		return fmt.Errorf("buffer %s (slot %d) is read but not marked read", root.Value, root.Slot)
	}
	return nil
}

func (v *verifier) derive(from, to *Value) {
	if r := v.root[from]; r != nil {
		v.root[to] = r
	}
}

func checkPtrAdd(v *verifier, in *Instr) error {
	if err := wantPointer(in.Args[0]); err != nil {
		return err
	}
	if err := want("offset", in.Args[1].Type, Scalar(ir.I64)); err != nil {
		return err
	}
	v.derive(in.Args[0], in.Result)
	return want("result", in.Result.Type, in.Args[0].Type)
}

func checkLoad(v *verifier, in *Instr) error {
	return v.access(in.Args[0], in.Result.Type, false)
}

func checkStore(v *verifier, in *Instr) error {
	return v.access(in.Args[0], in.Args[1].Type, true)
}

func checkOffsets(t Type, lanes int) error {
	if t.Ptr || t.Elem != ir.I32 && t.Elem != ir.I64 || t.Lanes != lanes {
		return fmt.Errorf("offsets have type %s, want %d lanes of i32 or i64", t, lanes)
	}
	return nil
}

func checkGather(v *verifier, in *Instr) error {
	if err := checkOffsets(in.Args[1].Type, in.Result.Type.Lanes); err != nil {
		return err
	}
	return v.access(in.Args[0], in.Result.Type, false)
}

func checkScatter(v *verifier, in *Instr) error {
	if err := checkOffsets(in.Args[1].Type, in.Args[2].Type.Lanes); err != nil {
		return err
	}
	return v.access(in.Args[0], in.Args[2].Type, true)
}

func checkGuarded(v *verifier, in *Instr) error {
	if err := want("guard", in.Args[0].Type, Scalar(ir.Bool)); err != nil {
		return err
	}
	if err := want("argument 2", in.Args[2].Type, in.Result.Type); err != nil {
		return err
	}
	return v.access(in.Args[1], in.Result.Type, false)
}

func checkPrefetch(_ *verifier, in *Instr) error { return wantPointer(in.Args[0]) }

func checkAlloca(_ *verifier, in *Instr) error {
	t := in.Result.Type
	if !t.Ptr || t.Space != LocalSpace && t.Space != SharedSpace {
		return fmt.Errorf("result has type %s, want a local or shared pointer", t)
	}
	if in.Count < 1 || in.Count > 1<<32 {
		return fmt.Errorf("count %d, want 1..2^32", in.Count)
	}
	return nil
}

// Control flow.

func checkFor(v *verifier, in *Instr) error {
	if len(in.Args) < 3 {
		return fmt.Errorf("%d arguments, want at least lo, hi, step", len(in.Args))
	}
	for i, name := range []string{"lo", "hi", "step"} {
		if err := want(name, in.Args[i].Type, Scalar(ir.I64)); err != nil {
			return err
		}
	}
	inits := in.Args[3:]
	if len(in.Body.Args) != 1+len(inits) || len(in.Results) != len(inits) {
		return fmt.Errorf("%d initial values, %d block arguments, %d results", len(inits), len(in.Body.Args), len(in.Results))
	}
	if err := want("index", in.Body.Args[0].Type, Scalar(ir.I64)); err != nil {
		return err
	}
	for i, init := range inits {
		if init.Type.Ptr {
			return fmt.Errorf("%s: a pointer cannot be carried", init)
		}
		if err := want("block argument", in.Body.Args[1+i].Type, init.Type); err != nil {
			return err
		}
		if err := want("result", in.Results[i].Type, init.Type); err != nil {
			return err
		}
	}
	if err := v.block(in.Body, blockYields); err != nil {
		return err
	}
	return checkYield(in.Body, in.Results)
}

func checkIf(v *verifier, in *Instr) error {
	if err := want("condition", in.Args[0].Type, Scalar(ir.Bool)); err != nil {
		return err
	}
	for _, r := range in.Results {
		if r.Type.Ptr {
			return fmt.Errorf("%s: a pointer cannot be yielded", r)
		}
	}
	for b := range in.Blocks() {
		if len(b.Args) != 0 {
			return fmt.Errorf("an if block has no arguments")
		}
		if err := v.block(b, blockYields); err != nil {
			return err
		}
		if err := checkYield(b, in.Results); err != nil {
			return err
		}
	}
	return nil
}

func checkYield(b *Block, results []*Value) error {
	yield := &b.Instrs[len(b.Instrs)-1]
	if len(yield.Args) != len(results) {
		return fmt.Errorf("yield of %d values, want %d", len(yield.Args), len(results))
	}
	for i, a := range yield.Args {
		if a.Type != results[i].Type {
			return fmt.Errorf("yield %d has type %s, want %s", i, a.Type, results[i].Type)
		}
	}
	return nil
}

func checkGridLoop(v *verifier, in *Instr) error {
	if len(in.Body.Args) != 1 || in.Body.Args[0].Type != Scalar(ir.I64) {
		return fmt.Errorf("a grid loop has one i64 argument")
	}
	return v.block(in.Body, blockGrid)
}
