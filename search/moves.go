package search

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/target"
)

// neighbours makes the plans that one or two moves make of a plan, each once however it is
// written, in an order that the seed chooses. All of them are legal: what no longer is after a move is left out, so that
// dropping PRELOAD drops what asks for it. All can be read back from their texts.
type neighbours struct {
	sink *ir.UOp
	desc *target.Desc
	axes []plan.Axis
	rng  *rand.Rand

	reader  *plan.Reader
	addable []plan.Opt
}

func newNeighbours(sink *ir.UOp, desc *target.Desc, seed uint64) *neighbours {
	n := &neighbours{sink: sink, desc: desc, axes: plan.Axes(sink), rng: rand.New(rand.NewPCG(seed, 3)), reader: plan.NewReader(sink, desc)}
	n.addable = n.allAdditions()
	return n
}

// pairsOfMoves is how many of the plans are made by two moves, for each by one.
const pairsOfMoves = 0.5

// of lists neighbours of a plan: those by one move, at most so many, and some by two.
func (n *neighbours) of(p plan.Plan, most int) []plan.Plan {
	form, _ := n.form(p)
	seen := map[string]bool{form: true}
	var list []plan.Plan
	add := func(opts []plan.Opt) {
		q := n.reader.Keep(opts)
		form, ok := n.form(q)
		if !ok || seen[form] {
			return
		}
		if _, err := plan.Parse(q.String()); err == nil {
			seen[form] = true
			list = append(list, q)
		}
	}
	single := n.single(p.Opts)
	n.rng.Shuffle(len(single), func(i, j int) { single[i], single[j] = single[j], single[i] })
	for _, opts := range single {
		if len(list) < most {
			add(opts)
		}
	}
	for range int(pairsOfMoves * float64(len(list))) {
		if opts := n.any(list[n.rng.IntN(len(list))].Opts); opts != nil {
			add(opts)
		}
	}
	n.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// mixed lists what a plan becomes with the Opts that another one has of one axis, or of one kind
// where they have none: what two candidates have won apart from one another is tried together.
func (n *neighbours) mixed(p, q plan.Plan) (list []plan.Plan) {
	var parts []string
	for _, o := range append(slices.Clone(p.Opts), q.Opts...) {
		if part := subjectOf(o); !slices.Contains(parts, part) && !slices.Equal(ofSubject(p.Opts, part), ofSubject(q.Opts, part)) {
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 {
		return nil // p with it is q
	}
	for _, part := range parts {
		r := n.reader.Keep(withSubject(p.Opts, part, ofSubject(q.Opts, part)))
		if _, ok := n.form(r); ok {
			list = append(list, r)
		}
	}
	return list
}

// subjectOf names the Opts that belong together: those of an axis, or of a kind without one.
func subjectOf(o plan.Opt) string {
	if buffer, _ := o.Kind.OfBuffer(); buffer || o.Axis == "" {
		return o.Kind.String() + " " + o.Axis
	}
	return o.Axis
}

// ofSubject are the Opts of a subject.
func ofSubject(opts []plan.Opt, part string) []plan.Opt {
	return lists.Filter(opts, func(o plan.Opt) bool { return subjectOf(o) == part })
}

// withSubject has other Opts of a part, where those that it had began.
func withSubject(opts []plan.Opt, part string, other []plan.Opt) []plan.Opt {
	at := slices.IndexFunc(opts, func(o plan.Opt) bool { return subjectOf(o) == part })
	rest := lists.Filter(opts, func(o plan.Opt) bool { return subjectOf(o) != part })
	if at < 0 {
		at = len(rest)
	}
	return slices.Insert(rest, at, other...)
}

// mostCopies bounds the copies of code that a plan asks for, before it is lowered: that takes
// as long as they are many.
const mostCopies = 1 << 10

// form is what a plan says, however it is written: its text, where the plan has no canonical form.
// ok is false of those, and of plans that make more copies.
func (n *neighbours) form(p plan.Plan) (text string, ok bool) {
	c, err := n.reader.Canonical(p)
	if err != nil {
		return p.String(), false
	}
	return c.Text, c.Copies <= mostCopies
}

// single lists what one move makes of Opts; some of it is not legal.
func (n *neighbours) single(opts []plan.Opt) (out [][]plan.Opt) {
	for _, move := range []func([]plan.Opt) [][]plan.Opt{n.amounts, transfers, n.kinds, places, drops, n.additions} {
		out = append(out, move(opts)...)
	}
	return out
}

// any is what some one move makes of Opts, which may not be legal; nil where a kind of moves has none. A list of
// all, of which one is taken, took most of the time of a search: thousands for each plan of 30 Opts.
func (n *neighbours) any(opts []plan.Opt) []plan.Opt {
	moves := []func([]plan.Opt) [][]plan.Opt{n.amounts, transfers, n.kinds, places, drops, n.addition}
	list := moves[n.rng.IntN(len(moves))](opts)
	if len(list) == 0 {
		return nil
	}
	return list[n.rng.IntN(len(list))]
}

// with is a list with another Opt in a place.
func with(opts []plan.Opt, i int, o plan.Opt) []plan.Opt {
	out := slices.Clone(opts)
	out[i] = o
	return out
}

// amounts changes one amount: to its double, half and neighbours, to any other word.
func (n *neighbours) amounts(opts []plan.Opt) (out [][]plan.Opt) {
	for i, o := range opts {
		if o.Kind == plan.SWAP || o.Amount == 0 {
			continue
		}
		values := []int64{2 * o.Amount, o.Amount / 2, o.Amount + 1, o.Amount - 1, 3 * o.Amount, o.Amount / 3, 4 * o.Amount, o.Amount / 4}
		if words := o.Kind.Words(); words != nil {
			values = nil
			for w := range words {
				values = append(values, int64(w+1))
			}
		}
		if list := o.Kind.Amounts(n.desc); list != nil {
			values = wide(list)
		}
		for _, v := range values {
			if o.Amount = v; v > 1 || v == 1 && !slices.Contains(splitting, o.Kind) { // of one element: as without it
				out = append(out, with(opts, i, o))
			}
		}
	}
	return out
}

// wide are amounts of a target as those of Opts.
func wide(list []int) []int64 { return lists.Map(list, func(n int) int64 { return int64(n) }) }

// transfers moves a factor of two or three from one Opt to another of the same axis, or between
// Opts of one kind: more threads a row and fewer rows a thread, lanes from digit to digit.
func transfers(opts []plan.Opt) (out [][]plan.Opt) {
	for i, from := range opts {
		for k, to := range opts {
			if i == k || from.Axis == "" || from.Kind.Words() != nil || to.Amount < 1 || from.Axis != to.Axis && from.Kind != to.Kind {
				continue
			}
			for _, factor := range []int64{2, 3} {
				if from.Amount < 1 || from.Amount%factor != 0 {
					continue
				}
				less, more := from, to
				less.Amount, more.Amount = from.Amount/factor, to.Amount*factor
				next := with(with(opts, i, less), k, more)
				if less.Amount == 1 {
					next = slices.Delete(next, i, i+1)
				}
				out = append(out, next)
			}
		}
	}
	return out
}

// splitting are the kinds that take a part of an axis, which may change for one another.
var splitting = []plan.OptKind{plan.VECTOR, plan.UNROLL, plan.UPCAST, plan.LOCAL, plan.WARP, plan.GROUP, plan.CLUSTER, plan.ROLL, plan.GRID}

// kinds gives the points of an Opt another role.
func (n *neighbours) kinds(opts []plan.Opt) (out [][]plan.Opt) {
	for i, o := range opts {
		if !slices.Contains(splitting, o.Kind) {
			continue
		}
		for _, kind := range splitting {
			if kind != o.Kind && kind.On(n.desc) {
				out = append(out, with(opts, i, plan.Opt{Kind: kind, Axis: o.Axis, Amount: o.Amount}))
			}
		}
	}
	return out
}

// places exchanges two Opts of one axis, and the axes of two Opts of one kind.
func places(opts []plan.Opt) (out [][]plan.Opt) {
	for i, x := range opts {
		for k := i + 1; k < len(opts); k++ {
			y := opts[k]
			switch {
			case x.Axis == "" || x == y:
			case x.Axis == y.Axis:
				out = append(out, with(with(opts, i, y), k, x))
			case x.Kind == y.Kind:
				out = append(out, with(with(opts, i, plan.Opt{Kind: x.Kind, Axis: y.Axis, Amount: x.Amount}), k, plan.Opt{Kind: y.Kind, Axis: x.Axis, Amount: y.Amount}))
			}
		}
	}
	return out
}

// drops leaves out one Opt, or all of a kind.
func drops(opts []plan.Opt) (out [][]plan.Opt) {
	for i, o := range opts {
		out = append(out, slices.Delete(slices.Clone(opts), i, i+1))
		out = append(out, slices.DeleteFunc(slices.Clone(opts), func(x plan.Opt) bool { return x.Kind == o.Kind }))
	}
	return out
}

// Amounts of Opts that are added: parts of an axis, bytes ahead.
var (
	splits = []int64{2, 3, 4, 8, 16, 32}
	ahead  = []int64{1 << 10, 1 << 12, 1 << 13, 1 << 14}
)

// additions adds an Opt, first or last of its axis.
func (n *neighbours) additions(opts []plan.Opt) (out [][]plan.Opt) {
	for _, o := range n.addable {
		out = append(out, added(opts, o)...)
	}
	return out
}

// addition adds any Opt.
func (n *neighbours) addition(opts []plan.Opt) [][]plan.Opt {
	return added(opts, n.addable[n.rng.IntN(len(n.addable))])
}

func added(opts []plan.Opt, o plan.Opt) (out [][]plan.Opt) {
	if slices.Contains(opts, o) {
		return nil
	}
	out = append(out, append(slices.Clone(opts), o))
	if slices.Contains(splitting, o.Kind) && slices.ContainsFunc(opts, func(x plan.Opt) bool { return x.Axis == o.Axis }) {
		out = append(out, append([]plan.Opt{o}, opts...))
	}
	return out
}

// allAdditions are the Opts that a plan of the kernel may have more.
func (n *neighbours) allAdditions() (list []plan.Opt) {
	for _, kind := range plan.OptKinds() {
		if !kind.On(n.desc) {
			continue
		}
		for _, axis := range n.axesFor(kind) {
			for _, amount := range n.amountsFor(kind, axis) {
				list = append(list, plan.Opt{Kind: kind, Axis: axis, Amount: amount})
			}
		}
	}
	return list
}

// axesFor lists what an Opt of a kind may name.
func (n *neighbours) axesFor(kind plan.OptKind) (names []string) {
	if !kind.TakesAxis() {
		return []string{""}
	}
	if buffer, _ := kind.OfBuffer(); buffer {
		for _, u := range ir.Toposort(n.sink) {
			if arg, ok := u.Arg.(ir.ParamArg); ok && u.Op == ir.OpParam {
				names = append(names, "p"+strconv.Itoa(arg.Slot))
			}
		}
		return names
	}
	for _, x := range n.axes {
		names = append(names, x.Name)
	}
	return names
}

// amountsFor lists amounts of an added Opt; 0 is all that is left, or none.
func (n *neighbours) amountsFor(kind plan.OptKind, axis string) (list []int64) {
	switch words := kind.Words(); {
	case words != nil:
		for w := range words {
			list = append(list, int64(w+1))
		}
		return list
	case !kind.TakesAmount():
		return []int64{0}
	case kind == plan.SWAP:
		for i, x := range n.axes {
			if x.Kind == plan.StoreAxis && x.Name != axis {
				list = append(list, int64(i))
			}
		}
		return list
	case kind == plan.TILE && n.desc.Kind == target.GPU:
		return []int64{0}
	case kind == plan.TILE:
		return []int64{0, 1}
	case kind == plan.PREFETCH:
		return ahead
	case kind.Amounts(n.desc) != nil:
		return wide(kind.Amounts(n.desc))
	case kind.Sets() != 0:
		usual := int64(max(kind.Sets().Usual(), 8))
		return []int64{usual / 4, usual / 2, 2 * usual, 4 * usual}
	}
	return append([]int64{0}, splits...)
}
