package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"tgc/ir"
)

// evaluator computes a decode expression over a packed buffer. Unlike a device
// it evaluates both arms of a WHERE, because the rows promise that every index
// is in bounds in either.
type evaluator struct {
	format *Format
	place  Placement
	data   []byte
	order  []*ir.UOp
	slot   map[*ir.UOp]int
	value  []ir.Scalar
	vars   map[*ir.UOp]int64
	reads  map[string]int // FIELD reads per field
}

// newEvaluator prepares root, whose free variables are the keys of vars.
func newEvaluator(f *Format, place Placement, data []byte, root *ir.UOp) *evaluator {
	e := &evaluator{format: f, place: place, data: data, slot: map[*ir.UOp]int{}, vars: map[*ir.UOp]int64{}, reads: map[string]int{}}
	e.order = ir.Toposort(root)
	for i, u := range e.order {
		e.slot[u] = i
	}
	e.value = make([]ir.Scalar, len(e.order))
	return e
}

func (e *evaluator) run() (float64, error) {
	for i, u := range e.order {
		v, err := e.node(u)
		if err != nil {
			return 0, err
		}
		e.value[i] = v
	}
	return e.value[len(e.order)-1].F, nil
}

func (e *evaluator) of(u *ir.UOp) ir.Scalar { return e.value[e.slot[u]] }

func (e *evaluator) node(u *ir.UOp) (ir.Scalar, error) {
	switch u.Op {
	case ir.OpConst:
		s, _ := u.Scalar()
		return s, nil
	case ir.OpRange, ir.OpVar:
		return ir.IntScalar(e.vars[u]), nil
	case ir.OpParam, ir.OpTable:
		return ir.Scalar{}, nil
	case ir.OpField:
		return e.field(u)
	case ir.OpLoad:
		return e.load(u)
	}
	if !u.Op.IsElementwise() {
		return ir.Scalar{}, fmt.Errorf("unexpected %s in a decode expression", u.Op)
	}
	args := make([]ir.Scalar, len(u.Src))
	for i, s := range u.Src {
		args[i] = e.of(s)
	}
	return ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args), nil
}

func (e *evaluator) field(u *ir.UOp) (ir.Scalar, error) {
	arg := u.Arg.(ir.FieldArg)
	i, fd := -1, &Field{}
	for n := range e.format.Fields {
		if e.format.Fields[n].Name == arg.Field {
			i, fd = n, &e.format.Fields[n]
		}
	}
	j := e.of(u.Src[3]).I
	if i < 0 || fd.DType != u.DType || arg.Format != e.format.Name {
		return ir.Scalar{}, fmt.Errorf("field %q of %s as %s does not exist", arg.Field, arg.Format, u.DType)
	}
	if j < 0 || j >= int64(fd.Count) {
		return ir.Scalar{}, fmt.Errorf("field %s[%d], want below %d", fd.Name, j, fd.Count)
	}
	e.reads[fd.Name]++
	at := e.place.Fields[i].At(e.of(u.Src[1]).I, e.of(u.Src[2]).I, j)
	return loadScalar(e.data, at, fd.DType)
}

func (e *evaluator) load(u *ir.UOp) (ir.Scalar, error) {
	flat := int64(0)
	for i, x := range u.Indices() {
		extent, _ := u.Src[0].Src[i].Int()
		v := e.of(x).I
		if v < 0 || v >= extent {
			return ir.Scalar{}, fmt.Errorf("%s index %d is %d, want below %d", u.Src[0].Op, i, v, extent)
		}
		flat = flat*extent + v
	}
	data := e.data
	if u.Src[0].Op == ir.OpTable {
		data = []byte(u.Src[0].Arg.(ir.TableArg).Data)
	}
	return loadScalar(data, flat*int64(u.DType.Size()), u.DType)
}

// loadScalar reads one little-endian element.
func loadScalar(data []byte, at int64, dtype ir.DType) (ir.Scalar, error) {
	if at < 0 || at+int64(dtype.Size()) > int64(len(data)) {
		return ir.Scalar{}, fmt.Errorf("read of %s at %d, of %d bytes", dtype, at, len(data))
	}
	b := data[at:]
	switch dtype {
	case ir.U8:
		return ir.IntScalar(int64(b[0])), nil
	case ir.I8:
		return ir.IntScalar(int64(int8(b[0]))), nil
	case ir.U16:
		return ir.IntScalar(int64(binary.LittleEndian.Uint16(b))), nil
	case ir.U32:
		return ir.IntScalar(int64(binary.LittleEndian.Uint32(b))), nil
	case ir.F16, ir.BF16:
		word := []ir.Scalar{ir.IntScalar(int64(binary.LittleEndian.Uint16(b)))}
		return ir.EvalScalar(ir.OpBitcast, dtype, ir.U16, word), nil
	case ir.F32:
		return ir.FloatScalar(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), nil
	}
	return ir.Scalar{}, fmt.Errorf("no loads of %s", dtype)
}

// decodeAll evaluates the row's expression for every element.
func decodeAll(t *testing.T, f *Format, place Placement, data []byte, rows, length int64) []float32 {
	t.Helper()
	a := ir.NewArena()
	row, k := a.Range(0, a.Index(rows)), a.Range(1, a.Index(length))
	e := newEvaluator(f, place, data, f.Decode(a, bufferFor(a, f, rows, length), row, k))
	out := make([]float32, 0, rows*length)
	for r := range rows {
		for i := range length {
			e.vars[row], e.vars[k] = r, i
			v, err := e.run()
			if err != nil {
				t.Fatalf("%s row %d element %d: %v", f.Name, r, i, err)
			}
			out = append(out, float32(v))
		}
	}
	return out
}

// bufferFor is the PARAM that Decode reads.
func bufferFor(a *ir.Arena, f *Format, rows, length int64) *ir.UOp {
	if f.IsPlain() {
		return a.Make(ir.OpParam, f.Plain, ir.ParamArg{}, a.Index(rows), a.Index(length))
	}
	return a.Make(ir.OpParam, ir.U8, ir.ParamArg{Format: f.Name}, a.Index(rows), a.Index(length))
}

// DecodeAll is for tests outside of the package: those that read files.
var DecodeAll = decodeAll
