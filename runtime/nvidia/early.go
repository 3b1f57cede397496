package nvidia

import (
	"cmp"
	"slices"

	"tgc/ir/program"
)

// ReadsOfLastRun reports calls of which one reads ahead of its wait what another one, or
// itself, writes: all but the points written in the same run (package schedule sees to
// that: forward-stores), but those of the run before among them. That run must have ended
// then: a kernel's wait is for the kernel before it, and the ones before that one may all
// be waiting too.
func ReadsOfLastRun(calls []*Call) bool {
	type region struct{ from, to uint64 }
	var early, written []region
	for _, c := range calls {
		for at, i := range c.Rendered.Params {
			p := &c.Program.Params[i]
			if p.Kind != program.ParamBuffer {
				continue
			}
			r := region{c.Params[at], c.Params[at] + uint64(p.Bytes)}
			if p.Constant {
				early = append(early, r)
			}
			if p.Write {
				written = append(written, r)
			}
		}
	}
	slices.SortFunc(written, func(x, y region) int { return cmp.Compare(x.from, y.from) })
	end := uint64(0) // of those before
	for i := range written {
		end = max(end, written[i].to)
		written[i].to = end
	}

	return slices.ContainsFunc(early, func(r region) bool {
		n, _ := slices.BinarySearchFunc(written, r.to, func(w region, to uint64) int { return cmp.Compare(w.from, to) })
		return n > 0 && written[n-1].to > r.from
	})
}
