package lower

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Sums of products of integers. The instruction multiplies bytes and sums words. An integer is the
// sum of its bytes, each times the power of 256 of its place, and of a product only the bytes of
// its type are wanted:
//
//	x*y mod 2^32 = sum over places p < 4 of 256^p * (sum over i+j = p of x_i*y_j)
//
// So two integers of four bytes take ten instructions, one of four and a byte four, two bytes one.
// All that is left out is a multiple of 2^32, and nothing is rounded: sums are those of any order. The
// bytes of an integer are unsigned, or the highest one has the sign where bounds say that the bytes
// above it only repeat that.

// wordBytes are those of a register.
const wordBytes = 4

// bytesOf are the bytes of the points of an integer factor, a vector for each place.
func bytesOf(b *program.Builder, bounds *ir.Bounds, points *program.Value, u *ir.UOp) []*program.Value {
	if u.DType.Size() == 1 {
		return []*program.Value{points}
	}
	n, signed := places(bounds.Of(u), u.DType)
	all, half := b.Bitcast(points, ir.U8), wordBytes/2
	var pairs []int // of two points: both lowest bytes, both of the next place; the two places above
	for first := 0; first < all.Type.Lanes; first += 2 * wordBytes {
		for place := range wordBytes {
			pairs = append(pairs, first+place, first+wordBytes+place)
		}
	}
	all = b.Shuffle(all, all, pairs...)
	return lists.Make(n, func(place int) *program.Value {
		var lanes []int
		for pair := 0; pair < all.Type.Lanes; pair += half * wordBytes {
			lanes = append(lanes, pair+half*place, pair+half*place+1)
		}
		out := b.Shuffle(all, all, lanes...)
		if signed && place == n-1 {
			out = b.Bitcast(out, ir.I8)
		}
		return out
	})
}

// places is how many bytes hold the integers within bounds, and whether the highest one is signed; those of
// the dtype hold all that matters.
func places(b ir.Interval, dtype ir.DType) (n int, signed bool) {
	for n = 1; n < dtype.Size(); n++ {
		switch full := int64(1) << (8 * n); {
		case b.Within(0, full-1):
			return n, false
		case b.Within(-full/2, full/2-1):
			return n, true
		}
	}
	return n, false
}
