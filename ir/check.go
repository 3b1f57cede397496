package ir

import (
	"fmt"
	"slices"
)

// VerifyNode checks a node against its row of the op table, looking at the
// node and its direct sources only:
//
//   - op and dtype exist, the number of sources is the op's arity, the arg has
//     the op's kind and sensible contents;
//   - the dtype follows from the sources by the op's dtype rule, and the op
//     computes on that dtype;
//   - sources that must be RANGEs, PARAMs, CONSTs or Idx are.
//
// Whole-graph rules (shapes, free ranges, stores) belong to VerifyTensor and
// VerifyKernel.
func VerifyNode(u *UOp) error {
	if u.Op == OpInvalid || u.Op >= numOps {
		return fmt.Errorf("op %d does not exist", u.Op)
	}
	if u.DType >= numDTypes {
		return fmt.Errorf("%s: dtype %d does not exist", u.Op, u.DType)
	}
	info := u.Op.Info()
	if info.Arity >= 0 && len(u.Src) != info.Arity {
		return fmt.Errorf("%s has %d sources, want %d", u.Op, len(u.Src), info.Arity)
	}
	if got := argKindOf(u); got != info.Arg {
		return fmt.Errorf("%s has an arg of type %T", u.Op, u.Arg)
	}
	if err := checkTypes(u); err != nil {
		return fmt.Errorf("%s: %w", u.Op, err)
	}
	if check := nodeChecks[u.Op]; check != nil {
		if err := check(u); err != nil {
			return fmt.Errorf("%s: %w", u.Op, err)
		}
	}
	return nil
}

// checkTypes applies the dtype rule.
func checkTypes(u *UOp) error {
	rule := u.Op.Info().Type
	if rule == TypeVoid || rule == TypeIdx {
		want := Void
		if rule == TypeIdx {
			want = Idx
		}
		if u.DType != want {
			return fmt.Errorf("dtype is %s, want %s", u.DType, want)
		}
		return nil
	}
	if u.DType == Void {
		return fmt.Errorf("dtype void has no values")
	}
	if rule != TypeFree {
		if len(u.Src) == 0 {
			return fmt.Errorf("has no sources")
		}
		for i, s := range u.Src {
			want, checked := sourceType(u, rule, i)
			if checked && s.DType != want {
				return fmt.Errorf("source %d is %s, want %s", i, s.DType, want)
			}
		}
	}
	if rule == TypeCompare && u.DType != Bool {
		return fmt.Errorf("dtype is %s, want bool", u.DType)
	}
	if u.Op.IsElementwise() {
		d := u.DType
		if rule == TypeCompare {
			d = u.Src[0].DType
		}
		if !u.Op.Takes(d) {
			return fmt.Errorf("does not compute on %s", d)
		}
	}
	return nil
}

// sourceType is the dtype that source i must have; false where it is free.
func sourceType(u *UOp, rule DTypeRule, i int) (DType, bool) {
	switch rule {
	case TypeSame, TypeFloat, TypeShift:
		return u.DType, true
	case TypeSame0:
		return u.DType, i == 0
	case TypeCompare:
		return u.Src[0].DType, u.Src[0].DType != Void
	case TypeWhere:
		if i == 0 {
			return Bool, true
		}
		return u.DType, true
	}
	return Void, false
}

// Takes reports that an elementwise op computes on operands of dtype d. (CAST
// and WHERE take every dtype.)
func (o Op) Takes(d DType) bool {
	if d == Void {
		return false
	}
	switch o.Info().Type {
	case TypeFloat:
		return d.IsFloat()
	case TypeShift:
		return d.IsInt()
	}
	switch o {
	case OpFloorDiv, OpFloorMod:
		return d.IsInt() || d == Idx
	case OpAnd, OpOr, OpXor, OpNot:
		return d.IsInt() || d == Bool
	case OpPopc, OpClz:
		return d.IsInt()
	case OpNeg, OpAbs, OpSub:
		return d != Bool
	case OpRng:
		return d == U32
	case OpBitcast:
		return d.Size() > 0 && d != Bool
	}
	return true
}

// nodeChecks are the rules that the table's columns cannot say.
var nodeChecks = [numOps]func(*UOp) error{
	OpConst:   checkConst,
	OpCast:    func(u *UOp) error { return notVoid(u.Src[0]) },
	OpBitcast: checkBitcast,
	OpVar:     checkVar,
	OpTable:   checkTable,

	OpBuffer:     checkExtents,
	OpIota:       checkExtents,
	OpReshape:    checkIdxTail,
	OpExpand:     checkIdxTail,
	OpPad:        checkIdxTail,
	OpShrink:     checkIdxTail,
	OpReduceAxes: checkReduceAxes,
	OpScan:       checkAxisArg,
	OpGather:     checkGather,
	OpScatterAdd: checkScatterAdd,
	OpDecode:     checkDecode,
	OpAssign:     checkAssign,
	OpCopy:       checkAxisArg,
	OpAfter:      checkAfter,
	OpParam:      checkExtents,
	OpRange:      checkExtents,
	OpValue:      checkExtents,
	OpField:      checkField,
	OpLoad:       checkLoad,
	OpStore:      checkStore,
	OpReduce:     checkReduce,
	OpProj:       checkProj,
	OpArg:        checkAxisArg,
	OpStage:      checkStage,
	OpAssume:     checkAssume,
	OpPar:        func(u *UOp) error { return checkSources(u, 0, "a sink", func(s *UOp) bool { return s.Op == OpSink }) },
	OpSink: func(u *UOp) error {
		return checkSources(u, 0, "an assign or store", func(s *UOp) bool { return s.Op == OpAssign || s.Op == OpStore })
	},
}

// checkSources tests sources from index first on.
func checkSources(u *UOp, first int, want string, ok func(*UOp) bool) error {
	for i := first; i < len(u.Src); i++ {
		if !ok(u.Src[i]) {
			return fmt.Errorf("source %d is %s, want %s", i, NodeText(u.Src[i]), want)
		}
	}
	return nil
}

func isIdx(u *UOp) bool     { return u.DType == Idx }
func isInteger(u *UOp) bool { return u.DType == Idx || u.DType.IsInt() }

func checkExtents(u *UOp) error { return checkSources(u, 0, "an extent (idx)", isIdx) }

func checkIdxTail(u *UOp) error { return checkSources(u, 1, "idx", isIdx) }

func notVoid(u *UOp) error {
	if u.DType == Void {
		return fmt.Errorf("source has no value")
	}
	return nil
}

func checkConst(u *UOp) error {
	switch arg := u.Arg.(type) {
	case IntArg:
		if u.DType.IsFloat() || WrapInt(u.DType, int64(arg)) != int64(arg) {
			return fmt.Errorf("%d is no value of %s", arg, u.DType)
		}
	case FloatArg:
		v := arg.Value()
		if !u.DType.IsFloat() || v == v && RoundFloat(u.DType, v) != v {
			return fmt.Errorf("%s is no value of %s", floatText(F64, v), u.DType)
		}
	}
	return nil
}

func checkBitcast(u *UOp) error {
	if from := u.Src[0].DType; !OpBitcast.Takes(from) || from.Size() != u.DType.Size() {
		return fmt.Errorf("from %s to %s, want dtypes of one size", from, u.DType)
	}
	return nil
}

func checkVar(u *UOp) error {
	v := u.Arg.(VarArg)
	if v.Name == "" || v.Lo > v.Hi || v.Multiple < 1 {
		return fmt.Errorf("%q %d..%d multiple %d, want a name, lo <= hi and a positive multiple", v.Name, v.Lo, v.Hi, v.Multiple)
	}
	return nil
}

func checkTable(u *UOp) error {
	bytes := int64(u.DType.Size())
	for i, s := range u.Src {
		n, ok := s.Int()
		if !ok || s.DType != Idx || n < 0 {
			return fmt.Errorf("extent %d is %s, want an idx const", i, NodeText(s))
		}
		if bytes, ok = CheckedMul(bytes, n); !ok {
			return fmt.Errorf("extents overflow")
		}
	}
	if got := int64(len(u.Arg.(TableArg).Data)); got != bytes || u.DType.Size() == 0 {
		return fmt.Errorf("data is %d bytes, want %d (%s)", got, bytes, u.DType)
	}
	return nil
}

func checkReduceAxes(u *UOp) error {
	if arg := u.Arg.(ReduceArg); arg.N != 1 || !isFoldOp(arg.Op) {
		return fmt.Errorf("folds with %q, want add, mul, max or min", argText(arg))
	}
	return checkSources(u, 1, "an axis (idx const)", func(s *UOp) bool {
		_, ok := s.Int()
		return ok && s.DType == Idx
	})
}

func isFoldOp(op Op) bool { return op == OpAdd || op == OpMul || op == OpMax || op == OpMin }

func checkAxisArg(u *UOp) error {
	if v := int64(u.Arg.(IntArg)); v < 0 || v > maxID {
		return fmt.Errorf("arg is %d, want 0 or more", v)
	}
	return nil
}

func checkGather(u *UOp) error {
	if !isInteger(u.Src[1]) {
		return fmt.Errorf("index is %s, want integers", u.Src[1].DType)
	}
	return checkAxisArg(u)
}

func checkScatterAdd(u *UOp) error {
	if len(u.Src) < 2 || u.Src[1].DType != u.DType {
		return fmt.Errorf("want a target and values of %s", u.DType)
	}
	return checkSources(u, 2, "integer coordinates", isInteger)
}

// checkAfter: only what is stored can be read again.
func checkAfter(u *UOp) error {
	if len(u.Src) == 0 {
		return fmt.Errorf("has no source")
	}
	switch s := u.Src[0]; s.Op {
	case OpBuffer, OpAssign, OpContiguous, OpCopy:
		return nil
	default:
		return fmt.Errorf("source 0 is %s, want a buffer, assign, contiguous or copy", NodeText(s))
	}
}

func checkDecode(u *UOp) error {
	if b, ok := u.Src[0].Arg.(BufferArg); !ok || u.Src[0].Op != OpBuffer || b.Format == "" || u.DType != F32 {
		return fmt.Errorf("of %s to %s, want a buffer with a packed format, to f32", NodeText(u.Src[0]), u.DType)
	}
	return nil
}

func checkAssign(u *UOp) error {
	if len(u.Src) < 2 || u.Src[0].Op != OpBuffer && u.Src[0].Op != OpAssign {
		return fmt.Errorf("want a buffer or its last assign, then values")
	}
	if u.Src[1].DType != u.DType {
		return fmt.Errorf("stores %s into %s", u.Src[1].DType, u.DType)
	}
	return checkSources(u, 2, "integer coordinates", isInteger)
}

func checkField(u *UOp) error {
	arg := u.Arg.(FieldArg)
	param, ok := u.Src[0].Arg.(ParamArg)
	if !ok && u.Src[0].Op != OpBuffer {
		return fmt.Errorf("reads %s, want a packed param", NodeText(u.Src[0]))
	}
	if ok && param.Format != arg.Format || arg.Format == "" || arg.Field == "" {
		return fmt.Errorf("is %s of a buffer of format %q", argText(arg), param.Format)
	}
	return checkSources(u, 1, "idx", isIdx)
}

// rankOf is the number of indices that a LOAD of u needs; -1 if u cannot be
// read with LOAD.
func rankOf(u *UOp) int {
	switch u.Op {
	case OpParam:
		if u.Arg.(ParamArg).Format != "" {
			return -1
		}
		return len(u.Src)
	case OpTable, OpValue, OpBuffer:
		return len(u.Src)
	case OpStage:
		return len(u.Src) - 1
	}
	return -1
}

func checkLoad(u *UOp) error {
	rank := rankOf(u.Src[0])
	if rank < 0 {
		return fmt.Errorf("reads %s, want a plain param, table, stage or value", NodeText(u.Src[0]))
	}
	if len(u.Src)-1 != rank {
		return fmt.Errorf("has %d indices, want %d (%s)", len(u.Src)-1, rank, NodeText(u.Src[0]))
	}
	return checkSources(u, 1, "idx", isIdx)
}

func checkStore(u *UOp) error {
	n := int64(u.Arg.(IntArg))
	if n < 0 || n > int64(len(u.Src)-2) {
		return fmt.Errorf("has %d sources, want at least %d", len(u.Src), 2+max(n, 0))
	}
	target := u.Src[0]
	if target.Op != OpParam && target.Op != OpValue {
		return fmt.Errorf("writes %s, want a param", NodeText(target))
	}
	if rank := rankOf(target); int64(rank) != n {
		return fmt.Errorf("has %d indices, want %d (%s)", n, rank, NodeText(target))
	}
	if u.Src[1].DType != target.DType {
		return fmt.Errorf("stores %s into %s", u.Src[1].DType, target.DType)
	}
	if i := slices.IndexFunc(u.Indices(), func(s *UOp) bool { return s.DType != Idx }); i >= 0 {
		return fmt.Errorf("index %d is %s, want idx", i, u.Indices()[i].DType)
	}
	return checkSources(u, 2+int(n), "a range", isRange)
}

func isRange(u *UOp) bool { return u.Op == OpRange }

func checkReduce(u *UOp) error {
	arg := u.Arg.(ReduceArg)
	tuple := arg.Op == OpInvalid
	want := arg.N + 1
	if tuple {
		want = 3*arg.N + 1
	} else if arg.N != 1 || !isFoldOp(arg.Op) {
		return fmt.Errorf("folds with %q, want add, mul, max, min or tuple", argText(arg))
	}
	if arg.N < 1 || len(u.Src) != want {
		return fmt.Errorf("has %d sources, want %d", len(u.Src), want)
	}
	if !isRange(u.ReduceRange()) {
		return fmt.Errorf("folds over %s, want a range", NodeText(u.ReduceRange()))
	}
	if u.DType != u.Src[0].DType {
		return fmt.Errorf("dtype is %s, want %s", u.DType, u.Src[0].DType)
	}
	if !tuple {
		return nil
	}
	for i := range arg.N {
		value, identity, combine := u.Src[i].DType, u.Src[arg.N+1+i].DType, u.Src[2*arg.N+1+i].DType
		if identity != value || combine != value {
			return fmt.Errorf("component %d is %s, its identity %s, its combine %s: want one dtype", i, value, identity, combine)
		}
	}
	return nil
}

func checkProj(u *UOp) error {
	tuple := u.Src[0]
	if tuple.Op != OpReduce || tuple.Arg.(ReduceArg).Op != OpInvalid {
		return fmt.Errorf("of %s, want a tuple reduce", NodeText(tuple))
	}
	i, n := int64(u.Arg.(IntArg)), int64(tuple.Arg.(ReduceArg).N)
	if i < 0 || i >= n {
		return fmt.Errorf("component %d, want 0..%d", i, n-1)
	}
	if want := tuple.Src[i].DType; u.DType != want {
		return fmt.Errorf("dtype is %s, want %s", u.DType, want)
	}
	return nil
}

func checkStage(u *UOp) error {
	if len(u.Src) == 0 {
		return fmt.Errorf("has no value")
	}
	return checkSources(u, 1, "a range", isRange)
}

func checkAssume(u *UOp) error {
	if !isInteger(u) {
		return fmt.Errorf("of %s, want integers", u.DType)
	}
	return nil
}
