package testkit

import (
	"fmt"
	"math"
	"sort"

	"tgc/ir"
	"tgc/runtime/interp"
)

// Mismatch is a value outside its bound.
type Mismatch struct {
	Buffer int64
	At     int // element
	Got    ir.Scalar
	Want   Number
	DType  ir.DType
	Count  int // wrong elements of the buffer
	Of     int
}

// Error tells the first wrong element.
func (m *Mismatch) Error() string {
	if m.DType.IsFloat() {
		return fmt.Sprintf("buffer %d: element %d is %v, want %v within %.3g; %d of %d elements wrong",
			m.Buffer, m.At, m.Got.F, m.Want.F, m.Want.Error, m.Count, m.Of)
	}
	return fmt.Sprintf("buffer %d: element %d is %d, want %d within %.3g; %d of %d elements wrong",
		m.Buffer, m.At, m.Got.I, m.Want.I, m.Want.Error, m.Count, m.Of)
}

// Compare checks every expected buffer; nil when all elements lie in bounds.
func Compare(got map[int64]*interp.KernelBuffer, want map[int64]*Numbers) error {
	ids := make([]int64, 0, len(want))
	for id := range want {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	for _, id := range ids {
		if err := compareBuffer(id, got[id], want[id]); err != nil {
			return err
		}
	}
	return nil
}

func compareBuffer(id int64, got *interp.KernelBuffer, want *Numbers) error {
	if got == nil || len(got.Data) < len(want.Data) {
		return fmt.Errorf("buffer %d: no result of %d elements", id, len(want.Data))
	}
	var first *Mismatch
	for i, w := range want.Data {
		if within(want.DType, got.Data[i], w) {
			continue
		}
		if first == nil {
			first = &Mismatch{Buffer: id, At: i, Got: got.Data[i], Want: w, DType: want.DType, Of: len(want.Data)}
		}
		first.Count++
	}
	if first != nil {
		return first
	}
	return nil
}

// within reports whether a value lies in the bound of the expected one.
func within(dtype ir.DType, got ir.Scalar, want Number) bool {
	switch {
	case math.IsInf(want.Error, 1):
		return true
	case dtype.IsFloat():
		return got.F == want.F || math.Abs(got.F-want.F) <= want.Error
	case want.Error == 0:
		return got.I == want.I
	}
	return math.Abs(float64(got.I)-float64(want.I)) <= want.Error
}

// SameBits compares two runs for equality of every bit of every buffer.
func SameBits(a, b map[int64]*interp.KernelBuffer) error {
	for id, x := range a {
		y := b[id]
		if y == nil || len(x.Data) != len(y.Data) {
			return fmt.Errorf("buffer %d: %d elements against none or another number", id, len(x.Data))
		}
		for i := range x.Data {
			p, q := x.Data[i], y.Data[i]
			same := p.I == q.I
			if x.DType.IsFloat() {
				same = ir.FloatBits(x.DType, p.F) == ir.FloatBits(x.DType, q.F) || math.IsNaN(p.F) && math.IsNaN(q.F)
			}
			if !same {
				return fmt.Errorf("buffer %d: element %d is %v and %v", id, i, p, q)
			}
		}
	}
	return nil
}

// Unknown is the share of elements about which nothing is known.
func Unknown(n *Numbers) float64 {
	count := 0
	for _, v := range n.Data {
		if math.IsInf(v.Error, 1) {
			count++
		}
	}
	return float64(count) / float64(max(len(n.Data), 1))
}
