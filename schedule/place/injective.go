package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// Injectivity by mixed radix: an index tuple over ranges hits every point at
// most once if its entries, taken apart into digits of the ranges, use every
// digit once, with weights that never overlap.

// digitTerm is weight * digit of a range in one index entry.
type digitTerm struct {
	r      *ir.UOp
	d      expr.Digit
	weight int64
	size   int64 // number of values of the digit; 0: symbolic
}

// digitTerms views an Idx expression as a constant plus weighted digits of the
// ranges; ok is false for anything else.
func digitTerms(s *expr.Exprs, u *ir.UOp, ranges []*ir.UOp) (terms []digitTerm, constant int64, ok bool) {
	form := s.Linear.Of(u)
	for _, t := range form.Terms {
		found := false
		for _, r := range ranges {
			d, isDigit := expr.DigitOf(t.Atom, r)
			if !isDigit {
				continue
			}
			terms = append(terms, digitTerm{r: r, d: d, weight: t.Coef, size: digitSize(d, r)})
			found = true
			break
		}
		if !found && s.DependsOn(t.Atom, ranges...) {
			return nil, 0, false
		}
	}
	return terms, form.Const, true
}

// digitSize is how many values a digit of r takes; 0 when it is symbolic.
func digitSize(d expr.Digit, r *ir.UOp) int64 {
	extent, isConst := r.Src[0].Int()
	switch {
	case d.Hi == 0 && !isConst:
		return 0
	case d.Hi == 0:
		return (extent + d.Lo - 1) / d.Lo
	case isConst && extent < d.Hi:
		return (extent + d.Lo - 1) / d.Lo
	}
	return (d.Hi + d.Lo - 1) / d.Lo
}

// injective proves that an index tuple over the ranges names each point at
// most once. A range that some entries determine is a constant to the others:
// (i-k, k) names each point once.
func injective(s *expr.Exprs, index, ranges []*ir.UOp) bool {
	used := make(map[*ir.UOp][]expr.Digit)
	done := make([]bool, len(index))
	for again := true; again; {
		again = false
		for k, x := range index {
			if done[k] {
				continue
			}
			terms, _, ok := digitTerms(s, x, ranges)
			if !ok {
				continue // an entry that is not understood separates nothing
			}
			terms = slices.DeleteFunc(terms, func(t digitTerm) bool { return covers(used[t.r], t.r) })
			if !separated(terms) {
				continue
			}
			for _, t := range terms {
				used[t.r] = append(used[t.r], t.d)
			}
			done[k], again = true, true
		}
	}
	return !slices.ContainsFunc(ranges, func(r *ir.UOp) bool { return !covers(used[r], r) })
}

// separated reports that the weights of terms are those of a mixed radix, so
// that the sum determines every digit.
func separated(terms []digitTerm) bool {
	list := slices.Clone(terms)
	abs := func(x int64) int64 { return max(x, -x) }
	slices.SortStableFunc(list, func(x, y digitTerm) int { return int(min(max(abs(x.weight)-abs(y.weight), -1), 1)) })
	reach := int64(1) // sums of the terms so far span less than this
	for i, t := range list {
		if abs(t.weight) < reach {
			return false
		}
		if t.size == 0 {
			return i == len(list)-1
		}
		reach += abs(t.weight) * (t.size - 1)
	}
	return true
}

// covers reports that the digits together determine the range.
func covers(digits []expr.Digit, r *ir.UOp) bool {
	extent, isConst := r.Src[0].Int()
	at := int64(1)
	for {
		next := int64(-1)
		for _, d := range digits {
			if d.Lo <= at && (d.Hi == 0 || d.Hi > at) && at%d.Lo == 0 {
				if d.Hi == 0 || isConst && d.Hi >= extent {
					return true
				}
				next = max(next, d.Hi)
			}
		}
		if next < 0 {
			return false
		}
		at = next
	}
}

// jointlyInjective proves that no point is read by two pairs of a use and a
// point of its consumer.
func jointlyInjective(s *state.Graph, list []state.PlacedUse) bool {
	for i, u := range list {
		if !injective(s.Exprs, u.Load.Indices(), s.Scope(u.Consumer, u.Use)) {
			return false
		}
		for _, other := range list[:i] {
			if !apart(s.Exprs, u.Load.Indices(), other.Load.Indices()) {
				return false
			}
		}
	}
	return true
}

// apart proves that two index tuples never name one point, each with its own
// values of the ranges.
func apart(s *expr.Exprs, x, y []*ir.UOp) bool {
	for k := range x {
		a, b := s.Bounds.Of(x[k]), s.Bounds.Of(y[k])
		if a.Hi < b.Lo || b.Hi < a.Lo {
			return true
		}
		if m := expr.Gcd(a.Mult, b.Mult); m > 1 && (a.Rem-b.Rem)%m != 0 {
			return true
		}
	}
	return false
}
