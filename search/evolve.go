package search

import (
	"context"

	"tgc/kernel/plan"
)

// How a search by what is expected goes on: of so many plans, the better ones more often, what they become by a move, by
// drawing a part anew, or with a part of another one is tried, so many at once.
const (
	population = 48
	offspring  = 96
	tries      = 4 // of a plan's children, for each that is wanted
)

// evolve tries drafts, and then what becomes of the best, as long as there is time.
func (s *search) evolve(ctx context.Context) error {
	plans := s.fresh(append([]plan.Plan{{}}, s.drafts.draw(firstDrafts)...), firstDrafts)
	for len(plans) > 0 && s.inTime(ctx) {
		if err := s.try(ctx, plans); err != nil {
			return err
		}
		var err error
		if plans, err = s.children(); err != nil {
			return err
		}
	}
	return nil
}

// children are plans that come from the best; other drafts, where there is none.
func (s *search) children() (list []plan.Plan, err error) {
	if len(s.beam) == 0 {
		return s.fresh(s.drafts.draw(firstDrafts), firstDrafts), nil
	}
	parents := make([]plan.Plan, min(population, len(s.beam)))
	for i := range parents {
		if parents[i], err = plan.Parse(s.beam[i].Plan); err != nil {
			return nil, err
		}
	}
	for range tries * offspring {
		if len(list) == offspring {
			break
		}
		list = append(list, s.fresh(s.child(parents), 1)...)
	}
	return list, nil
}

// child is one of them; none where a move is not legal.
func (s *search) child(parents []plan.Plan) []plan.Plan {
	rng := s.drafts.rng
	likely := func() plan.Plan { // the better ones more often
		u := rng.Float64()
		return parents[int(u*u*float64(len(parents)))]
	}
	p := likely()
	switch rng.IntN(8) {
	case 0, 1, 2:
		p = s.drafts.redrawn(p)
	case 3:
		p = s.drafts.redrawn(s.drafts.redrawn(p))
	case 4, 5:
		mixed := s.moves.mixed(p, likely())
		if len(mixed) == 0 {
			return nil
		}
		p = mixed[rng.IntN(len(mixed))]
	default:
		for range 1 + rng.IntN(2) {
			opts := s.moves.any(p.Opts)
			if opts == nil {
				return nil
			}
			p = s.moves.reader.Keep(opts)
		}
	}
	if _, ok := s.moves.form(p); !ok || s.drafts.code(p) > draftCode {
		return nil
	}
	if _, err := plan.Parse(p.String()); err != nil {
		return nil
	}
	return []plan.Plan{p}
}
