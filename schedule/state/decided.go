package state

import (
	"fmt"
	"slices"
	"tgc/ir"
)

// DecisionOn is what was decided of a rule and a value. It counts as used.
func (s *State) DecisionOn(v *Value, rule Rule) (choice Choice, ok bool) {
	if s.Opt.Decisions.Len() == 0 {
		return 0, false
	}
	key := decisionKey{rule, v.Key}
	choice, ok = s.Opt.Decisions.of[key]
	if _, known := s.Used.of[key]; ok && !known {
		s.Used = s.Used.With(Decision{rule, key.value, choice})
	}
	return choice, ok
}

// Insist runs f with wider limits, and without regard to prices. Prices that depend on limits are
// forgotten afterwards.
func (s *State) Insist(f func() bool) bool {
	profile, prices := s.Opt.Profile, s.priceMemo
	s.Opt.Profile, s.priceMemo, s.insists = profile.loosened(), make(map[formKey]int64), true
	defer func() { s.Opt.Profile, s.priceMemo, s.insists = profile, prices, false }()
	return f()
}

// loosened has wider limits, where there are any; 0 is none, or that a rule is off.
func (p Profile) loosened() Profile {
	for _, limit := range []*int64{
		&p.StageCap, &p.StageWork, &p.StageOps, &p.StageReads, &p.TileCap, &p.TileReuse,
		&p.InlineOps, &p.RepeatOps, &p.RepeatCap, &p.BodyOps, &p.TableOps,
	} {
		*limit *= loosened
	}
	p.MinBlocks = max(p.MinBlocks/loosened, 1)
	return p
}

// NameValues gives keys to values that have none yet, where decisions or records ask for them: by what a
// value computes, over which ranges, and by what its readers compute. Names of buffers take no part, and rows of
// caches are those of their class (ir.ClassHash). Passes call it before they decide, and nothing else
// does: a key depends on when it is made.
func (s *State) NameValues() {
	if !s.Opt.Explain && s.Opt.Decisions.Len() == 0 {
		return
	}
	own := make([]uint64, len(s.Values))
	var fresh []*Value
	for i, v := range s.Values {
		if !v.Dead {
			own[i] = s.ownHash(v)
			if v.Key == "" {
				fresh = append(fresh, v)
			}
		}
	}
	for _, v := range fresh {
		var readers []uint64
		if v.ID < len(s.Users) {
			for _, id := range s.Users[v.ID] {
				readers = append(readers, own[id])
			}
		}
		slices.Sort(readers)
		v.Key = fmt.Sprintf("%016x", ir.MixHashes(append([]uint64{own[v.ID]}, slices.Compact(readers)...)...))
	}
}

// ownHash is that of what a value computes and stores, by itself.
func (s *State) ownHash(v *Value) uint64 {
	roots := append([]*ir.UOp{v.Body}, v.StoreIndex()...)
	whole := s.A.Make(ir.OpSink, ir.Void, nil, roots...)
	if hash, ok := s.hashMemo[whole]; ok {
		return hash
	}
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(roots...) {
		if u.Op == ir.OpValue {
			with[u] = s.A.Make(ir.OpParam, u.DType, ir.ParamArg{Slot: s.slotOf(u)}, u.Src...)
		}
	}
	hash := ir.ClassHash(s.A.Substitute(whole, with))
	s.hashMemo[whole] = hash
	return hash
}

// slotOf is that of a PARAM in the place of a value, after those of the versions.
func (s *State) slotOf(value *ir.UOp) int { return len(s.Versions) + value.Arg.(ir.ValueArg).ID }
