package search

import (
	"slices"

	"tgc/kernel/plan"
)

// idle learns which Opts of a kernel change nothing: those with and without which a plan gave the
// same source, and never another one. Plans that have one more of them than the plan from which
// they come are tried last; what is tried does not change otherwise.
type idle struct {
	sources map[string]string // by plan
	same    map[string]int    // by Opt without its amount
	other   map[string]int
}

// leastSame is how often an Opt must have changed nothing.
const leastSame = 2

func newIdle() *idle {
	return &idle{make(map[string]string), make(map[string]int), make(map[string]int)}
}

// learn compares outcomes with those of plans that have one Opt less.
func (d *idle) learn(list []Outcome) {
	for _, o := range list {
		if o.Source != "" {
			d.sources[o.Plan] = o.Source
		}
	}
	for _, o := range list {
		p, err := plan.Parse(o.Plan)
		if o.Source == "" || err != nil {
			continue
		}
		for i, opt := range p.Opts {
			without := plan.Plan{Opts: slices.Delete(slices.Clone(p.Opts), i, i+1)}
			switch source, ok := d.sources[without.String()]; {
			case !ok:
			case source == o.Source:
				d.same[family(opt)]++
			default:
				d.other[family(opt)]++
			}
		}
	}
}

// family is an Opt without its amount: "PREFETCH p0", "CHUNK".
func family(o plan.Opt) string { return o.Kind.String() + " " + o.Axis }

// last moves plans back that have more Opts which change nothing than another one.
func (d *idle) last(list []plan.Plan, from plan.Plan) []plan.Plan {
	most := d.count(from)
	var first, then []plan.Plan
	for _, p := range list {
		if d.count(p) > most {
			then = append(then, p)
		} else {
			first = append(first, p)
		}
	}
	return append(first, then...)
}

func (d *idle) count(p plan.Plan) (n int) {
	for _, o := range p.Opts {
		if name := family(o); d.same[name] >= leastSame && d.other[name] == 0 {
			n++
		}
	}
	return n
}
