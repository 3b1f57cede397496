package tensor_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"tgc/ir"
)

// vectorCase is one case of the operator vectors: see the oracle's README.
type vectorCase struct {
	Name        string
	Op          string
	Attrs       map[string]json.RawMessage
	Steps       []vectorStep
	Inputs      []vectorTensor
	Outputs     []vectorTensor
	Grads       []*vectorTensor
	GradOutput  *vectorTensor   `json:"grad_output"`
	GradOutputs []*vectorTensor `json:"grad_outputs"`
	GradRtol    number          `json:"grad_rtol"`
	GradAtol    number          `json:"grad_atol"`
	Rtol, Atol  number
	Bitwise     bool
	Tags        []string

	group             string
	forward, backward error // outcomes
}

// vectorStep is one operation of a case of op "program".
type vectorStep struct {
	Out   nameList
	Op    string
	In    []string
	Attrs map[string]json.RawMessage
}

// nameList is one name or several.
type nameList []string

func (l *nameList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = nameList{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// number is a JSON number, or "inf" or "-inf".
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	v, err := strconv.ParseFloat(text, 64)
	*n = number(v)
	return err
}

// vectorTensor is a tensor of a case: raw is little-endian and row-major.
type vectorTensor struct {
	Name  string
	Type  string `json:"dtype"`
	Shape []int
	Raw   []byte `json:"data"`

	dtype ir.DType
}

// vectorTypes are the dtypes of the vectors.
var vectorTypes = map[string]ir.DType{
	"float64": ir.F64, "float32": ir.F32, "float16": ir.F16, "bfloat16": ir.BF16,
	"float8_e4m3fn": ir.F8E4M3, "float8_e5m2": ir.F8E5M2,
	"int8": ir.I8, "uint8": ir.U8, "int16": ir.I16, "int32": ir.I32, "int64": ir.I64, "bool": ir.Bool,
}

func (v *vectorTensor) UnmarshalJSON(data []byte) error {
	type plain vectorTensor
	if err := json.Unmarshal(data, (*plain)(v)); err != nil {
		return err
	}
	if v.dtype = vectorTypes[v.Type]; v.dtype == ir.Void {
		return nil // the case counts as missing
	}
	if want := v.count() * v.dtype.Size(); len(v.Raw) != want {
		return fmt.Errorf("tensor %q has %d bytes (%d of base64), want %d", v.Name, len(v.Raw), base64.StdEncoding.EncodedLen(len(v.Raw)), want)
	}
	return nil
}

func (v *vectorTensor) count() int {
	n := 1
	for _, extent := range v.Shape {
		n *= extent
	}
	return n
}

func (c *vectorCase) hasGradient() bool { return c.Grads != nil }

// cotangents lists the gradient of each output, nil for those without.
func (c *vectorCase) cotangents() []*vectorTensor {
	if c.GradOutputs != nil {
		return c.GradOutputs
	}
	return []*vectorTensor{c.GradOutput}
}

// readVectors reads every file of a folder.
func readVectors(t *testing.T, dir string) []*vectorCase {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s holds no vectors (%v)", dir, err)
	}
	var cases []*vectorCase
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Format int
			Group  string
			Cases  []*vectorCase
		}
		if err := json.Unmarshal(data, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if file.Format != 1 {
			t.Fatalf("%s: format %d, want 1", path, file.Format)
		}
		for _, c := range file.Cases {
			c.group = file.Group
			cases = append(cases, c)
		}
	}
	return cases
}

// element is one value of raw bits: floats widened, integers and Bool as they
// are (no unsigned 64-bit dtype occurs).
func element(dtype ir.DType, bits uint64) (f float64, i int64) {
	if dtype.IsFloat() {
		return ir.FloatFromBits(dtype, bits), 0
	}
	if dtype == ir.Bool {
		return 0, int64(bits)
	}
	return 0, ir.WrapInt(dtype, int64(bits))
}

// bitsAt is element i of raw little-endian memory.
func bitsAt(raw []byte, size, i int) (bits uint64) {
	for b := range size {
		bits |= uint64(raw[i*size+b]) << (8 * b)
	}
	return bits
}

// tolerance is how far floats may be apart.
type tolerance struct {
	rtol, atol float64
	bitwise    bool
}

// compare reports the first element in which got differs from want. got may
// have another integer dtype where want holds indices.
func compare(gotType ir.DType, got []byte, want *vectorTensor, tol tolerance) error {
	for i := range want.count() {
		gotBits, wantBits := bitsAt(got, gotType.Size(), i), bitsAt(want.Raw, want.dtype.Size(), i)
		gf, gi := element(gotType, gotBits)
		wf, wi := element(want.dtype, wantBits)
		if !want.dtype.IsFloat() {
			if gi != wi {
				return fmt.Errorf("element %d: got %d, want %d", i, gi, wi)
			}
			continue
		}
		if !tol.near(gf, wf) || tol.bitwise && wf == wf && gotBits != wantBits {
			return fmt.Errorf("element %d: got %v, want %v (off by %.3g, rtol %g, atol %g)", i, gf, wf, gf-wf, tol.rtol, tol.atol)
		}
	}
	return nil
}

func (tol tolerance) near(got, want float64) bool {
	switch {
	case want != want || got != got:
		return want != want && got != got
	case math.IsInf(want, 0) || math.IsInf(got, 0):
		return got == want
	}
	return math.Abs(got-want) <= tol.atol+tol.rtol*math.Abs(want)
}
