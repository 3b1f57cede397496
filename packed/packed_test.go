package packed

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
	"tgc/ir"
)

// TestTable checks that rows are found by name and number, and that the fields of a
// block fill it without a gap or an overlap.
func TestTable(t *testing.T) {
	for _, f := range All() {
		if got, ok := ByGGUF(f.GGUF); !ok || got != f {
			t.Errorf("ByGGUF(%d) does not find %s", f.GGUF, f.Name)
		}
		if got, ok := Lookup(f.Name); !ok || got != f {
			t.Errorf("Lookup(%q) does not find its row", f.Name)
		}
		if f.IsPlain() {
			continue
		}
		used := make([]int, f.BlockBytes)
		place := Identity.Place(f, 1, 1)
		for i, fd := range f.Fields {
			markBytes(used, place.Fields[i], int64(fd.Count), 1, 1)
		}
		for at, n := range used {
			if n != 1 {
				t.Errorf("%s: byte %d belongs to %d fields, want 1", f.Name, at, n)
			}
		}
	}
}

// markBytes counts the uses of every byte.
func markBytes(used []int, p FieldPlace, count, rows, blocks int64) {
	for row := range rows {
		for block := range blocks {
			for j := range count {
				at := p.At(row, block, j)
				for b := range p.Size {
					used[at+b]++
				}
			}
		}
	}
}

// TestLayouts enumerates small tensors: no byte is used twice, the expression
// of an address has its value, and a copy to the other layout and back is the
// identity.
func TestLayouts(t *testing.T) {
	for _, f := range All() {
		if f.IsPlain() {
			continue
		}
		for _, layout := range []Layout{Identity, Planes, Records} {
			const rows, blocks = 3, 5
			place := layout.Place(f, rows, blocks)
			used := make([]int, place.Bytes)
			for i, fd := range f.Fields {
				markBytes(used, place.Fields[i], int64(fd.Count), rows, blocks)
				checkAddress(t, f, layout, &f.Fields[i], place.Fields[i], rows, blocks)
			}
			for at, n := range used {
				if n > 1 || n == 0 && layout == Identity {
					t.Fatalf("%s %s: byte %d is used %d times", f.Name, layout.Name(), at, n)
				}
			}
		}
		data := RandomBlocks(f, 15, rand.New(rand.NewPCG(1, uint64(f.GGUF))))
		back := Convert(f, 3, 5, Planes, Identity, Convert(f, 3, 5, Identity, Planes, data))
		if string(back) != string(data) {
			t.Errorf("%s: planes and back changed the data", f.Name)
		}
	}
}

// checkAddress compares both expressions of an address with its number.
func checkAddress(t *testing.T, f *Format, layout Layout, fd *Field, p FieldPlace, rows, blocks int64) {
	t.Helper()
	a := ir.NewArena()
	row, block, j := a.Range(0, a.Index(rows)), a.Range(1, a.Index(blocks)), a.Range(2, a.Index(int64(fd.Count)))
	exprs := []*ir.UOp{p.Address(a, row, block, j)}
	if layout == Identity {
		exprs = append(exprs, f.Address(a, fd.Name, row, block, j, a.Index(blocks)))
	}
	for _, expr := range exprs {
		e := newEvaluator(f, Placement{}, nil, expr)
		for r := range rows {
			for b := range blocks {
				for i := range int64(fd.Count) {
					e.vars[row], e.vars[block], e.vars[j] = r, b, i
					if _, err := e.run(); err != nil {
						t.Fatal(err)
					}
					if got, want := e.of(expr).I, p.At(r, b, i); got != want {
						t.Fatalf("%s %s %s: address of row %d block %d element %d is %d, want %d",
							f.Name, layout.Name(), fd.Name, r, b, i, got, want)
					}
				}
			}
		}
	}
}

// TestPlanesAlign: every row of every plane starts at a multiple of 16 bytes.
func TestPlanesAlign(t *testing.T) {
	for _, f := range All() {
		for i, p := range Planes.Place(f, 4, 7).Fields {
			if p.Base%16 != 0 || p.RowStride%16 != 0 {
				t.Errorf("%s: plane %s starts at %d with rows of %d bytes", f.Name, f.Fields[i].Name, p.Base, p.RowStride)
			}
		}
	}
	q6, _ := Lookup("Q6_K")
	if got := Identity.Place(q6, 4, 7).Fields[0].Align(16, 64); got != 2 {
		t.Errorf("16 bytes of ql in GGUF's order: alignment %d, want 2", got)
	}
	if got := Planes.Place(q6, 4, 7).Fields[0].Align(16, 64); got != 16 {
		t.Errorf("16 bytes of ql in a plane: alignment %d, want 16", got)
	}
}

// TestRandomBlocks: generated data decodes to finite values of moderate size,
// not all of them equal.
func TestRandomBlocks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom(All()).Draw(rt, "format")
		seed := rapid.Uint64().Draw(rt, "seed")
		n := int64(4)
		data := RandomBlocks(f, int(n), rand.New(rand.NewPCG(seed, 1)))
		values := decodeAll(t, f, Identity.Place(f, 1, n), data, 1, n*int64(f.BlockElems))
		largest := 0.0
		for _, v := range values {
			if largest = max(largest, math.Abs(float64(v))); math.IsNaN(float64(v)) || largest > 1e4 {
				rt.Fatalf("%s seed %d: value %g", f.Name, seed, v)
			}
		}
		if largest == 0 {
			rt.Fatalf("%s seed %d: all values are zero", f.Name, seed)
		}
	})
}

// TestBoundsProven: interval analysis alone shows that every FIELD and table
// index is in bounds, so that no kernel has to clamp one.
func TestBoundsProven(t *testing.T) {
	for _, f := range All() {
		a := ir.NewArena()
		row, k := a.Range(0, a.Index(8)), a.Range(1, a.Index(1024))
		root := f.Decode(a, bufferFor(a, f, 8, 1024), row, k)
		if root.DType != ir.F32 {
			t.Errorf("%s decodes to %s", f.Name, root.DType)
		}
		bounds := ir.NewBounds()
		for _, u := range ir.Toposort(root) {
			switch u.Op {
			case ir.OpField:
				fd, _ := f.Field(u.Arg.(ir.FieldArg).Field)
				checkBounds(t, f, bounds, u.Src[2], 1024/int64(f.BlockElems))
				checkBounds(t, f, bounds, u.Src[3], int64(fd.Count))
			case ir.OpLoad:
				for i, x := range u.Indices() {
					extent, _ := u.Src[0].Src[i].Int()
					checkBounds(t, f, bounds, x, extent)
				}
			}
		}
	}
}

func checkBounds(t *testing.T, f *Format, bounds *ir.Bounds, x *ir.UOp, extent int64) {
	t.Helper()
	if v := bounds.Of(x); v.Lo < 0 || v.Hi >= extent {
		t.Errorf("%s: an index is known to lie in %d..%d, want 0..%d", f.Name, v.Lo, v.Hi, extent-1)
	}
}
