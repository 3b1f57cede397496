package shape

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
)

// The text form of a kernel between two steps: the kernel in the text form of
// package ir, after comments that say what is known of its ranges. Before the
// first step there is the plan alone:
//
//	# plan: VECTOR r0 32; STAGE s0 64
//	# shaped threads 1 next 9
//	# options fma prefetch p2 8192
//	# axis s0 store %3 rest grid segments unroll 4 local 8 stage 64
//	# axis r0 reduce %5 rest serial tile 1 limit %17
//	# split %7 32 serial, %6 1 lane tile 32 gated
//	# range %7 serial 0 1 rising
//	# gate 0 %21
//	# tile %8 %9 %10 %11 %12
//	# rows staged %8 1 local, %9 8 unroll
//
// A split line belongs to the axis line before it. A range line gives the role, the
// place in the order of ranges (number of the axis, high sub-axes first) and flags;
// a gate line the number of the store. The nodes of a tile are row lane, row copy,
// column lane, column copy and the lane's elements.

// Text prints a kernel between two steps; Parse reads it back.
func Text(st *State) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# plan: %s\n", st.Plan)
	p := &printer{st: st}
	p.findRoots()
	var body strings.Builder
	var err error
	if p.names, err = st.Arena.PrintNodes(&body, append(p.roots, st.Sink)...); err != nil {
		return err.Error()
	}
	if st.Axes != nil {
		p.header(&out)
	}
	return out.String() + body.String()
}

type printer struct {
	st    *State
	roots []*ir.UOp // that are not in the kernel, before it
	names map[*ir.UOp]int
}

// findRoots lists what the comments mention.
func (p *printer) findRoots() {
	st := p.st
	add := func(list ...*ir.UOp) {
		for _, u := range list {
			if u != nil && !slices.Contains(p.roots, u) {
				p.roots = append(p.roots, u)
			}
		}
	}
	for _, x := range st.Axes {
		add(x.Axis.Range, x.Limit)
		if x.Split != nil {
			for _, d := range x.Split.SubAxes {
				add(d.Range)
			}
		}
	}
	for _, swap := range st.Options.Swaps {
		add(swap[:]...)
	}
	for _, gates := range st.gates {
		add(gates...)
	}
	if t := st.Tile; t != nil {
		add(t.RowLane, t.RowCopy, t.ColumnLane, t.ColumnCopy, t.Point)
		if g := t.Group; g != nil {
			add(append(g.ColumnTiles, g.Warp)...)
		}
	}
}

func (p *printer) name(u *ir.UOp) string { return fmt.Sprintf("%%%d", p.names[u]) }

func (p *printer) header(out *strings.Builder) {
	st := p.st
	fmt.Fprintf(out, "# shaped threads %d next %d", st.Threads, st.next)
	if st.Kernel != nil {
		out.WriteString(" ordered")
	}
	out.WriteString("\n# options" + p.options() + "\n")
	for _, x := range st.Axes {
		out.WriteString("# axis " + p.axis(x) + "\n")
		if s := x.Split; s != nil {
			fmt.Fprintf(out, "# split %stile %d%s\n", p.subAxes(s.SubAxes), s.Tile, flag(" gated", s.Gated))
		}
	}
	for _, r := range p.ranges() {
		at := st.order[r]
		fmt.Fprintf(out, "# range %s %s %d %d%s%s\n", p.name(r), st.roles[r], at.axis, at.subAxis, flag(" dot", st.dots[r]), flag(" rising", st.rising[r]))
	}
	for i, gates := range st.gates {
		for _, g := range gates {
			fmt.Fprintf(out, "# gate %d %s\n", i, p.name(g))
		}
	}
	t := st.Tile
	if t == nil {
		return
	}
	fmt.Fprintf(out, "# tile %s %s %s %s %s\n", p.name(t.RowLane), p.name(t.RowCopy), p.name(t.ColumnLane), p.name(t.ColumnCopy), p.name(t.Point))
	if g := t.Group; g != nil {
		fmt.Fprintf(out, "# warpgroup %s %s\n", p.name(g.Warp), strings.Join(lists.Map(g.ColumnTiles, p.name), " "))
	}
	for k, side := range []*TileSide{t.Rows, t.Columns, t.Points} {
		if side != nil {
			fmt.Fprintf(out, "# %s %s%s\n", sideNames[k], flag("staged ", side.Staged), strings.TrimSuffix(p.subAxes(side.SubAxes), " "))
		}
	}
}

var sideNames = [...]string{"rows", "columns", "elements"}

func flag(text string, on bool) string {
	if on {
		return text
	}
	return ""
}

// ranges are those that have roles and are still mentioned.
func (p *printer) ranges() []*ir.UOp {
	var out []*ir.UOp
	for u := range p.names {
		if u.Op == ir.OpRange && p.st.roles[u] != plan.NoRole {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(x, y *ir.UOp) int { return p.names[x] - p.names[y] })
	return out
}

func (p *printer) options() string {
	o := p.st.Options
	s := flag(" fma", o.FMA) + flag(" wgmma", o.Groups)
	for _, opt := range o.BufferOpts() {
		s += fmt.Sprintf(" %s p%d", strings.ToLower(opt.Kind.String()), opt.Slot)
		if _, amount := opt.Kind.OfBuffer(); amount {
			s += fmt.Sprintf(" %d", o.Buffers[opt])
		}
	}
	if options := o.Program.String(); options != "" {
		s += " " + options
	}
	for _, swap := range o.Swaps {
		s += fmt.Sprintf(" swap %s %s", p.name(swap[0]), p.name(swap[1]))
	}
	return s
}

func (p *printer) axis(x Axis) string {
	s := fmt.Sprintf("%s %s %s rest %s", x.Axis.Name, x.Axis.Kind, p.name(x.Axis.Range), x.Rest)
	s += flag(" segments", len(x.Segments) > 0)
	for _, seg := range x.Segments {
		s += fmt.Sprintf(" %s %d", seg.Role, seg.Size)
	}
	s += flag(" scatter", x.Scatter)
	s += flag(fmt.Sprintf(" stage %d", x.StageAmount), x.Stage) + flag(" fragment", x.Fragment) + flag(" dot", x.Dot)
	s += flag(fmt.Sprintf(" pack %d", x.PackWords), x.Pack) + flag(fmt.Sprintf(" tile %d", x.Tile), x.Tile != 0)
	if x.Limit != nil {
		s += " limit " + p.name(x.Limit)
	}
	return s
}

func (p *printer) subAxes(list []SubAxis) string {
	var s strings.Builder
	for i, d := range list {
		fmt.Fprintf(&s, "%s %d %s%s ", p.name(d.Range), d.Stride, d.Role, flag(",", i < len(list)-1))
	}
	return s.String()
}
