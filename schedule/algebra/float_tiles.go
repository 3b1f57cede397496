package algebra

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// activationTerms is how many terms hold an f32.
const activationTerms = 3

// termPoints is how many neighbours along the last axis lie together, before those of the next
// position: what a tile instruction takes of a row, so that the rows of a tile are one run of
// memory. Rows a power of two apart would meet in a few sets of the caches.
const termPoints = 32

// onFloatTiles reports a product of so many tokens that tile instructions sum it: of a group,
// which its scale leaves.
func onFloatTiles(s *state.State, v *state.Value) bool {
	p := &s.Opt.Profile
	return p.FloatTiles > 0 && s.WeightReuse(v) > p.PanelReuse && slices.ContainsFunc(ir.Toposort(v.Body), func(u *ir.UOp) bool {
		return analyse.IsFloatSum(u) && s.ReadsField(u)
	})
}

// TermBytes is the size of the terms of activations that a sum of v reads for each row of its
// weights, 0 where it reads none: tile instructions read them for each tile of rows.
func TermBytes(s *state.State, v *state.Value, u *ir.UOp) int64 {
	if s.Opt.Profile.FloatTiles == 0 || !s.ReadsField(u) || !slices.ContainsFunc(ir.Toposort(u), func(x *ir.UOp) bool {
		p, isRead := s.IsRead(x)
		return isRead && p.Node.DType == ir.BF16
	}) {
		return 0
	}
	points := make(map[*ir.UOp]int64) // of the sums in and around a node
	for _, x := range ir.Toposort(u) {
		n := int64(1)
		for _, y := range x.Src {
			n = max(n, points[y])
		}
		if analyse.IsFloatSum(x) && s.ReadsField(x) {
			n = expr.Saturate(n, s.Points([]*ir.UOp{x.ReduceRange()}))
		}
		points[x] = n
	}
	return expr.Saturate(points[u], s.WeightReuse(v)*activationTerms*int64(ir.BF16.Size()))
}

// tilesTake reports a contraction whose groups are what one tile instruction sums: at most as
// many points as a row of a tile has, a power of two of them, of codes that are one BF16.
func tilesTake(s *state.State, c *expr.Contraction) bool {
	for i := range c.Terms {
		last := c.Terms[i].Innermost()
		if n, constant := last.Range.Src[0].Int(); !constant || n > termPoints || n < termPoints/2 || n&(n-1) != 0 {
			return false
		}
		for _, f := range last.Factors {
			if s.ReadsField(f) && !isTileCode(s, f) {
				return false
			}
		}
	}
	return true
}

// isTileCode reports a stored code, or one with an offset or a scale, as a float: an integer that is one BF16.
func isTileCode(s *state.State, f *ir.UOp) bool {
	if s.RoleOf(f) == expr.OffsetCode {
		f = f.Src[0]
	}
	return f.Op == ir.OpCast && f.Src[0].DType.IsInt() && s.Bounds.Of(f.Src[0]).Within(-oneTerm, oneTerm)
}

// oneTerm bounds integers that are one BF16.
const oneTerm = 1 << 8

// isHalf reports a float widened from f16.
func isHalf(u *ir.UOp) bool { return u.Op == ir.OpCast && u.Src[0].DType == ir.F16 }
