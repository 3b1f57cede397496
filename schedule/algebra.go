package schedule

import "tgc/ir"

// algebraStep is one row of the algebra: a rule applied once to every value.
type algebraStep struct {
	rule Rule
	run  func(*scheduler, *value)
}

// algebraSteps in order. A before B, because:
//   - R1h before R2: the one term may be a factor that leaves the sums around it;
//   - R2m before R3: a sum of two packed terms has no coarse factor;
//   - R3 before R2c: the distributed constant's sum is then per group;
//   - R2d between them: both digits' sums get the offset;
//   - R2c before the second R2, which takes the constant out, with look-through
//     off: another look would move a decode into every row;
//   - R2 before R3i: what remains in the sum is then integers alone;
//   - R3i before R2g, which knows sums of activations by their integers;
//   - R2 before R5: else the sum of the softmax would stand inside its own
//     tuple.
var algebraSteps = []algebraStep{
	{OneHit, (*scheduler).oneHit},
	{Hoist, func(s *scheduler, v *value) { s.hoist(v, true) }},
	{Distribute, (*scheduler).distributeFields},
	{GroupSplit, (*scheduler).groupSplit},
	{Digits, (*scheduler).distributeDigits},
	{IntConstant, (*scheduler).distributeConstant},
	{Hoist, func(s *scheduler, v *value) { s.hoist(v, false) }},
	{OffsetApart, (*scheduler).offsetsApart},
	{IntegerSum, (*scheduler).integerSums},
	{GroupSum, (*scheduler).groupSums},
	{Cascade, (*scheduler).cascade},
	{Chan, (*scheduler).chanMoments},
}

// algebra runs every step over the values, those made on the way included.
func (s *scheduler) algebra(*ir.UOp) {
	for _, step := range algebraSteps {
		if !s.opt.Rules.Has(step.rule) {
			continue
		}
		if step.rule == Cascade || step.rule == Chan {
			s.markDead()
			s.indexUses() // these follow readers
		}
		for i := 0; i < len(s.values); i++ {
			if v := s.values[i]; !v.dead && s.height(v.body) > 0 {
				step.run(s, v)
			}
		}
	}
}
