package ir

import (
	"fmt"
	"math"

	"tgc/internal/lists"
)

// Arg is the constant argument of a UOp. Every Arg type is comparable and
// holds only values, so that two nodes with the same op, dtype, arg and
// sources are one node.
type Arg interface{ isArg() }

// IntArg is the value of an integer, Bool (0 or 1) or Idx CONST; the axis of a
// GATHER, IOTA or SCAN; the component of a PROJ; the number of an ARG.
type IntArg int64

// FloatArg holds the bits of a float64: the value of a float CONST, already
// rounded to the node's dtype. Bits, so that NaN and -0 intern correctly.
type FloatArg uint64

// AxesArg is a list of axes (PERMUTE, FLIP, REDUCE_AXES), built with Axes.
type AxesArg string

// VarArg names a symbolic integer with bounds Lo..Hi (both inclusive) that is
// a multiple of Multiple. A host-bound VAR is a kernel argument given at each
// run; a device-bound one is read from the step-state buffer on the device.
type VarArg struct {
	Name     string
	Lo, Hi   int64
	Multiple int64 // at least 1
	Device   bool
}

// BufferArg identifies a user's buffer in the tensor graph. ID is unique in a
// graph and given by who builds it. Format names a packed format, empty for a
// plain buffer of the node's dtype.
type BufferArg struct {
	ID     int64
	Format string
}

// TableArg holds the little-endian bytes of a constant table.
type TableArg struct{ Data string }

// ParamArg is the slot of a kernel's buffer argument. Format as in BufferArg.
type ParamArg struct {
	Slot   int
	Format string
	// Constant says that no kernel of the step writes what is read here: it may be read
	// before the kernel before has ended. Marked for targets that start kernels so early.
	Constant bool
}

// RangeArg tells ranges of one kernel apart. Equal IDs mean one loop.
type RangeArg struct{ ID int }

// FieldArg selects a field of a packed format.
type FieldArg struct{ Format, Field string }

// ReduceArg tells what a REDUCE folds with. Op is OpAdd, OpMul, OpMax or OpMin
// for a plain reduce, and OpInvalid for a tuple reduce of N components.
type ReduceArg struct {
	Op Op
	N  int // components; 1 for a plain reduce
}

// StageArg says where a STAGE lives.
type StageArg struct{ Space Space }

// ValueArg refers to another value of a schedule (package schedule, between
// rangeify and placement; no kernel holds one).
type ValueArg struct{ ID int }

// Space is a memory a STAGE can live in; the plan may widen it.
type Space uint8

// The spaces, narrowest first.
const (
	SpaceAuto Space = iota // the plan decides
	SpaceRegister
	SpaceWarp
	SpaceShared
	SpaceCluster
)

var spaceNames = [...]string{"auto", "register", "warp", "shared", "cluster"}

// String returns the space's name in the text form.
func (s Space) String() string {
	if int(s) < len(spaceNames) {
		return spaceNames[s]
	}
	return fmt.Sprintf("space(%d)", uint8(s))
}

// Value is the float itself.
func (f FloatArg) Value() float64 { return math.Float64frombits(uint64(f)) }

func (IntArg) isArg()    {}
func (FloatArg) isArg()  {}
func (AxesArg) isArg()   {}
func (VarArg) isArg()    {}
func (BufferArg) isArg() {}
func (TableArg) isArg()  {}
func (ParamArg) isArg()  {}
func (RangeArg) isArg()  {}
func (FieldArg) isArg()  {}
func (ReduceArg) isArg() {}
func (StageArg) isArg()  {}
func (ValueArg) isArg()  {}

// Axes packs a list of axes (0..255) into a comparable Arg.
func Axes(axes ...int) AxesArg {
	b := lists.Map(axes, func(a int) byte { return byte(a) })
	return AxesArg(b)
}

// List unpacks the axes.
func (a AxesArg) List() []int {
	return lists.Make(len(a), func(i int) int { return int(a[i]) })
}
