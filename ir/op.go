package ir

// Op is the operation of a UOp. Everything about an op stands in opTable.
type Op uint8

// The ops, grouped as in opTable.
const (
	OpInvalid Op = iota

	// Scalar arithmetic: legal in every form.
	OpConst
	OpAdd
	OpSub
	OpMul
	OpNeg
	OpFDiv
	OpRecip
	OpSqrt
	OpRsqrt
	OpExp2
	OpLog2
	OpSin
	OpFma
	OpFloorDiv
	OpFloorMod
	OpMin
	OpMax
	OpCmpLt
	OpCmpEq
	OpAnd
	OpOr
	OpXor
	OpNot
	OpShl
	OpShr
	OpWhere
	OpCast
	OpBitcast
	OpFloor
	OpTrunc
	OpRound
	OpAbs
	OpPopc
	OpClz
	OpMulHi
	OpRng
	OpVar
	OpTable

	// Tensor graph only.
	OpBuffer
	OpIota
	OpReshape
	OpPermute
	OpExpand
	OpPad
	OpShrink
	OpFlip
	OpReduceAxes
	OpScan
	OpGather
	OpScatterAdd
	OpDecode
	OpAssign
	OpCopy
	OpContiguous
	OpDetach

	// Kernels only.
	OpParam
	OpRange
	OpField
	OpLoad
	OpStore
	OpReduce
	OpProj
	OpArg
	OpStage
	OpAssume
	OpPar
	OpValue

	// Tensor graph (list of results) and kernels (list of stores).
	OpSink

	// Tensor graph only: recomputation, rows of a block. (Last, because the numbers of ops
	// take part in hashes, and those in orders.)
	OpAfter
	OpStageRow

	numOps
)

// Form is a set of pipeline forms.
type Form uint8

// The forms in which an op can be legal.
const (
	FormTensor Form = 1 << iota
	FormKernel
	FormAll = FormTensor | FormKernel
)

// DTypeRule says how an op's dtype follows from its sources.
type DTypeRule uint8

// The dtype rules.
const (
	TypeFree    DTypeRule = iota // stated by the node
	TypeSame                     // all sources and the result share one dtype
	TypeSame0                    // the result has the dtype of source 0
	TypeCompare                  // sources share one dtype, the result is Bool
	TypeWhere                    // Bool, then two of the result's dtype
	TypeFloat                    // as TypeSame, floats only
	TypeShift                    // as TypeSame, integers only
	TypeIdx                      // the result is Idx
	TypeVoid                     // the result is Void
)

// ArgKind is the type of Arg that an op carries.
type ArgKind uint8

// The kinds of Arg.
const (
	ArgNone  ArgKind = iota
	ArgConst         // IntArg or FloatArg, by dtype
	ArgInt
	ArgAxes
	ArgVar
	ArgBuffer
	ArgTable
	ArgParam
	ArgRange
	ArgField
	ArgReduce
	ArgStage
	ArgValue
)

// OpInfo is one row of the op table.
type OpInfo struct {
	Name  string
	Arity int // number of sources; -1 when it varies (Doc says how)
	Forms Form
	Type  DTypeRule
	Arg   ArgKind
	Doc   string // meaning with edge cases; generates docs/ops.md
}

// Info returns the op's row of the table.
func (o Op) Info() *OpInfo { return &opTable[o] }

// String returns the op's name in the text form.
func (o Op) String() string { return opTable[o].Name }

// IsElementwise reports an op that computes each element from the same element
// of its sources: what is legal in every form and has sources, a fixed number of them.
func (o Op) IsElementwise() bool { return opTable[o].Forms == FormAll && opTable[o].Arity > 0 }

// Commutative lists the ops whose two sources may be swapped bit for bit.
var Commutative = []Op{OpAdd, OpMul, OpMin, OpMax, OpCmpEq, OpAnd, OpOr, OpXor, OpMulHi}

// IsMovement reports a tensor op that only renames positions.
func (o Op) IsMovement() bool { return o >= OpReshape && o <= OpFlip }

// NumOps is the number of ops, for tests that walk the table.
const NumOps = int(numOps)

// ParseOp is the inverse of Op.String; ok is false for an unknown name.
func ParseOp(name string) (op Op, ok bool) {
	op, ok = opByName[name]
	return op, ok
}

var opByName = func() map[string]Op {
	m := make(map[string]Op, numOps)
	for o := OpConst; o < numOps; o++ {
		m[opTable[o].Name] = o
	}
	return m
}()

var opTable = [numOps]OpInfo{
	OpInvalid: {Name: "invalid"},

	OpConst:    {"const", 0, FormAll, TypeFree, ArgConst, "a constant. In the tensor graph its shape is []"},
	OpAdd:      {"add", 2, FormAll, TypeSame, ArgNone, "a+b; integers wrap, Idx does not. On Bool: or"},
	OpSub:      {"sub", 2, FormAll, TypeSame, ArgNone, "a-b; integers wrap"},
	OpMul:      {"mul", 2, FormAll, TypeSame, ArgNone, "a*b; integers wrap. On Bool: and"},
	OpNeg:      {"neg", 1, FormAll, TypeSame, ArgNone, "-a; integers wrap"},
	OpFDiv:     {"fdiv", 2, FormAll, TypeFloat, ArgNone, "a/b, correctly rounded; IEEE infinities and NaN"},
	OpRecip:    {"recip", 1, FormAll, TypeFloat, ArgNone, "1/a, correctly rounded"},
	OpSqrt:     {"sqrt", 1, FormAll, TypeFloat, ArgNone, "square root, correctly rounded; NaN below -0"},
	OpRsqrt:    {"rsqrt", 1, FormAll, TypeFloat, ArgNone, "1/sqrt(a), within 2 ULP"},
	OpExp2:     {"exp2", 1, FormAll, TypeFloat, ArgNone, "2**a, within 2 ULP; 0 at -inf, inf past the range, NaN kept"},
	OpLog2:     {"log2", 1, FormAll, TypeFloat, ArgNone, "log2(a), within 2 ULP; -inf at 0, NaN below"},
	OpSin:      {"sin", 1, FormAll, TypeFloat, ArgNone, "sin(a) of radians, absolute error 2e-7 for |a| <= 1e5"},
	OpFma:      {"fma", 3, FormAll, TypeFloat, ArgNone, "a*b+c rounded once"},
	OpFloorDiv: {"floordiv", 2, FormAll, TypeSame, ArgNone, "floor(a/b) of integers; b = 0 gives 0"},
	OpFloorMod: {"floormod", 2, FormAll, TypeSame, ArgNone, "a - b*floor(a/b) of integers, sign of b; b = 0 gives 0"},
	OpMin:      {"min", 2, FormAll, TypeSame, ArgNone, "the smaller; NaN if either is NaN; -0 below +0. On Bool: and"},
	OpMax:      {"max", 2, FormAll, TypeSame, ArgNone, "the larger; NaN if either is NaN; +0 above -0. On Bool: or"},
	OpCmpLt:    {"cmplt", 2, FormAll, TypeCompare, ArgNone, "a < b; false with NaN"},
	OpCmpEq:    {"cmpeq", 2, FormAll, TypeCompare, ArgNone, "a == b; false with NaN"},
	OpAnd:      {"and", 2, FormAll, TypeSame, ArgNone, "bitwise and of integers or Bool"},
	OpOr:       {"or", 2, FormAll, TypeSame, ArgNone, "bitwise or of integers or Bool"},
	OpXor:      {"xor", 2, FormAll, TypeSame, ArgNone, "bitwise exclusive or of integers or Bool"},
	OpNot:      {"not", 1, FormAll, TypeSame, ArgNone, "bitwise complement; on Bool: logical not"},
	OpShl:      {"shl", 2, FormAll, TypeShift, ArgNone, "a << b; b at or past the width gives 0"},
	OpShr:      {"shr", 2, FormAll, TypeShift, ArgNone, "a >> b, arithmetic on signed; b at or past the width gives 0 or -1"},
	OpWhere:    {"where", 3, FormAll, TypeWhere, ArgNone, "c ? a : b; only the chosen arm is evaluated, so it guards a LOAD"},
	OpCast:     {"cast", 1, FormAll, TypeFree, ArgNone, "value conversion: int to int wraps, float to int truncates and saturates with NaN to 0, to float rounds to nearest even, to Bool is a != 0"},
	OpBitcast:  {"bitcast", 1, FormAll, TypeFree, ArgNone, "same bits, dtype of the same size"},
	OpFloor:    {"floor", 1, FormAll, TypeFloat, ArgNone, "round toward minus infinity"},
	OpTrunc:    {"trunc", 1, FormAll, TypeFloat, ArgNone, "round toward zero"},
	OpRound:    {"round", 1, FormAll, TypeFloat, ArgNone, "round to nearest, ties to even"},
	OpAbs:      {"abs", 1, FormAll, TypeSame, ArgNone, "absolute value; the least integer wraps to itself"},
	OpPopc:     {"popc", 1, FormAll, TypeSame, ArgNone, "number of set bits"},
	OpClz:      {"clz", 1, FormAll, TypeSame, ArgNone, "number of leading zero bits; the width at 0"},
	OpMulHi:    {"mulhi", 2, FormAll, TypeShift, ArgNone, "upper half of the double-width product"},
	OpRng:      {"rng", 2, FormAll, TypeSame, ArgNone, "u32 hash of (seed, counter): Threefry-2x32, 20 rounds, first word, key (seed, 0), counter (counter, 0)"},
	OpVar:      {"var", 0, FormAll, TypeIdx, ArgVar, "a symbolic integer, bounds and binding in its arg. In the tensor graph its shape is []"},
	OpTable:    {"table", -1, FormAll, TypeFree, ArgTable, "constant data; sources are its extents (CONST). Read with LOAD in kernels"},

	OpBuffer:     {"buffer", -1, FormTensor, TypeFree, ArgBuffer, "a user's buffer; sources are its extents. With a Format the dtype is u8 and only DECODE reads it: the extents are those of the decoded tensor"},
	OpIota:       {"iota", 1, FormTensor, TypeFree, ArgNone, "0..n-1 as a vector of the node's dtype; source 0 is the extent n"},
	OpReshape:    {"reshape", -1, FormTensor, TypeSame0, ArgNone, "same elements, row-major, new extents: source 0, then the extents"},
	OpPermute:    {"permute", 1, FormTensor, TypeSame0, ArgAxes, "result axis k is source axis arg[k]"},
	OpExpand:     {"expand", -1, FormTensor, TypeSame0, ArgNone, "axes of extent 1 repeat: source 0, then the new extents (same rank)"},
	OpPad:        {"pad", -1, FormTensor, TypeSame0, ArgNone, "zeros around: source 0, then (before, after) per axis, none negative"},
	OpShrink:     {"shrink", -1, FormTensor, TypeSame0, ArgNone, "a box: source 0, then (offset, extent) per axis"},
	OpFlip:       {"flip", 1, FormTensor, TypeSame0, ArgAxes, "the listed axes reversed"},
	OpReduceAxes: {"reduce_axes", -1, FormTensor, TypeSame0, ArgReduce, "fold over axes: source 0, then one Idx CONST per axis; the axes keep extent 1. Only plain ops (add, mul, max, min); floats below f32 must be cast up first"},
	OpScan:       {"scan", 1, FormTensor, TypeSame0, ArgInt, "inclusive running sum along axis arg"},
	OpGather:     {"gather", 2, FormTensor, TypeSame0, ArgInt, "slices of source 0 along axis arg at the integers of source 1: shape = s0[:arg] + s1 + s0[arg+1:]. Indices are clamped into range"},
	OpScatterAdd: {"scatter_add", -1, FormTensor, TypeSame0, ArgNone, "source 0 plus, for each point of value (source 1), that value at integer coordinates sources 2..; order unspecified for integers, sequential for floats"},
	OpDecode:     {"decode", 1, FormTensor, TypeFree, ArgNone, "the values (f32) of a BUFFER with a packed format, shape of the buffer"},
	OpAssign:     {"assign", -1, FormTensor, TypeSame0, ArgNone, "the next version of a buffer: source 0 the previous version (BUFFER or ASSIGN), source 1 the values, sources 2.. one integer coordinate tensor per axis of source 0, broadcast to the values' shape; points not named keep their value, coordinates must be distinct, those out of range are not written"},
	OpCopy:       {"copy", 1, FormTensor, TypeSame0, ArgInt, "the same values on device arg; always a buffer"},
	OpContiguous: {"contiguous", 1, FormTensor, TypeSame0, ArgNone, "the same values, always a buffer of its own"},
	OpStageRow:   {"stage_row", 1, FormTensor, TypeSame0, ArgNone, "the same values: rows of the last axis are stages of what reads them"},
	OpDetach:     {"detach", 1, FormTensor, TypeSame0, ArgNone, "the same values; no gradient flows through"},

	OpParam:  {"param", -1, FormKernel, TypeFree, ArgParam, "a buffer argument; sources are its extents, row-major. With a Format only FIELD reads it"},
	OpRange:  {"range", 1, FormKernel, TypeIdx, ArgRange, "a loop index 0..n-1; source 0 is the extent n"},
	OpField:  {"field", 4, FormKernel, TypeFree, ArgField, "field of a packed PARAM: sources buffer, row, block, element j of the field within the block"},
	OpLoad:   {"load", -1, FormKernel, TypeSame0, ArgNone, "element of a PARAM, TABLE, STAGE or VALUE: source 0, then one index per axis, all in bounds wherever the LOAD is evaluated"},
	OpStore:  {"store", -1, FormKernel, TypeVoid, ArgInt, "sources PARAM, value, arg index expressions, then the ranges in loop order: one write per point of the ranges. An index out of bounds is not written. A LOAD of what another STORE of the SINK writes at the same point of the same ranges comes before that write"},
	OpReduce: {"reduce", -1, FormKernel, TypeFree, ArgReduce, "fold over one RANGE. Plain: sources value, range. Tuple of N: sources v0..vN-1, range, N identities, N combine expressions over ARG 0..N-1 (accumulator) and N..2N-1 (element); read through PROJ; dtype that of v0. An empty range gives the identities"},
	OpProj:   {"proj", 1, FormKernel, TypeFree, ArgInt, "component arg of a tuple REDUCE"},
	OpArg:    {"arg", 0, FormKernel, TypeFree, ArgInt, "operand of a combine lambda"},
	OpStage:  {"stage", -1, FormKernel, TypeSame0, ArgStage, "array of computed values: source 0 the value, then the RANGEs that index it; computed once per enclosing scope; read with LOAD"},
	OpAssume: {"assume", 3, FormKernel, TypeSame, ArgNone, "source 0, known to lie in source 1 .. source 2 (both inclusive); checked in debug runs"},
	OpPar:    {"par", -1, FormKernel, TypeVoid, ArgNone, "grid concatenation of the SINKs of independent kernels: one launch"},
	OpValue:  {"value", -1, FormKernel, TypeFree, ArgValue, "another value of a schedule; sources are its extents; read with LOAD"},

	OpAfter: {"after", -1, FormTensor, TypeSame0, ArgNone, "the values of source 0 (a BUFFER, ASSIGN, CONTIGUOUS or COPY) once sources 1.. are known. What is made of it is not shared with what is made of source 0: a value can be forgotten and made again. Without sources 1.. it marks a value to begin again from"},

	OpSink: {"sink", -1, FormAll, TypeVoid, ArgNone, "the list of results (tensor graph) or stores (kernel)"},
}
