package shape

import (
	"errors"
	"strconv"
	"strings"

	"tgc/ir"
	"tgc/ir/words"
	"tgc/kernel/plan"
	"tgc/target"
)

// Parse reads the text form of a kernel between two steps into an arena: one that
// Text has printed, or a kernel with a line "# plan: ..", of which nothing has been
// done. The kernel is verified.
func Parse(a *ir.Arena, text string, desc *target.Desc) (*State, error) {
	sink, nodes, err := ir.ParseNodes(a, text)
	if err != nil {
		return nil, err
	}
	p := &parser{Reader: words.Reader{Form: "shape", Nodes: nodes}}
	if sink == nil || sink.Op != ir.OpSink {
		return nil, errors.New("shape: the last node is no sink")
	}
	p.st = NewState(a, sink, plan.Plan{}, desc)
	for number, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !ok {
			continue
		}
		p.Line(number+1, comment)
		if p.statement(comment); p.Err != nil {
			return nil, p.Err
		}
	}
	if t := p.st.Tile; t != nil && (t.Rows == nil || t.Columns == nil) {
		return nil, errors.New("shape: a tile without rows or columns")
	}
	if err := Verify(p.st); err != nil {
		return nil, err
	}
	if p.ordered {
		return p.st, orderRanges(p.st)
	}
	return p.st, nil
}

type parser struct {
	words.Reader
	st      *State
	ordered bool
}

// statement reads one comment; one that starts with no known word is a comment.
func (p *parser) statement(text string) {
	if rest, ok := strings.CutPrefix(text, "plan: "); ok {
		var err error
		if p.st.Plan, err = plan.Parse(rest); err != nil {
			p.Fail("%v", err)
		}
		return
	}
	switch word := p.Next(); word {
	case "shaped":
		p.shaped()
	case "options":
		p.options()
	case "axis":
		p.axis()
	case "split":
		p.split()
	case "range":
		p.rangeLine()
	case "gate":
		p.gate()
	case "tile":
		p.st.Tile = &MatrixTile{RowLane: p.rng(), RowCopy: p.rng(), ColumnLane: p.rng(), ColumnCopy: p.rng(), Point: p.rng()}
	case "warpgroup":
		p.warpgroup()
	case sideNames[0], sideNames[1], sideNames[2]:
		p.side(word)
	default:
		return
	}
	p.End()
}

func (p *parser) rng() *ir.UOp {
	u := p.Node()
	if u != nil && u.Op != ir.OpRange {
		p.Fail("a %s, want a range", u.Op)
	}
	return u
}

func (p *parser) role() plan.Role {
	role, ok := plan.ParseRole(strings.TrimSuffix(p.Peek(), ","))
	if !ok {
		p.Fail("expected a role, got %q", p.Peek())
	}
	p.Next()
	return role
}

func (p *parser) slot() int {
	digits, ok := strings.CutPrefix(p.Peek(), "p")
	n, err := strconv.Atoi(digits)
	if err != nil || !ok {
		p.Fail("expected p<slot>, got %q", p.Peek())
	}
	p.Next()
	return n
}

func (p *parser) shaped() {
	p.Expect("threads")
	p.st.Threads = p.Int64()
	p.Expect("next")
	p.st.next = int(p.Int64())
	p.ordered = p.Take("ordered")
	p.st.Axes = []Axis{}
}

func (p *parser) options() {
	o := &p.st.Options
	*o = plan.Global{Buffers: make(map[plan.BufferOpt]int64)}
	for p.More() {
		switch w := p.Next(); w {
		case "fma":
			o.FMA = true
		case "wgmma":
			o.Groups = true
		case "swap":
			o.Swaps = append(o.Swaps, [2]*ir.UOp{p.rng(), p.rng()})
		default:
			p.bufferOpt(o, w)
		}
	}
}

func (p *parser) bufferOpt(o *plan.Global, word string) {
	kind, ok := plan.ParseOptKind(strings.ToUpper(word))
	ofBuffer, hasAmount := kind.OfBuffer()
	if !ok || !ofBuffer {
		if !o.Program.Parse(word, p.Int()) {
			p.Fail("no such value of option %q", word)
		}
		return
	}
	slot, amount := p.slot(), int64(0)
	if hasAmount {
		amount = p.Int64()
	}
	o.Buffers[plan.BufferOpt{Kind: kind, Slot: slot}] = amount
}

func (p *parser) axis() {
	x := newAxis(p.Next(), plan.StoreAxis, nil, nil)
	kind, ok := plan.ParseAxisKind(p.Next())
	if !ok {
		p.Fail("no kind of axis")
	}
	x.Axis.Kind, x.Axis.Range = kind, p.rng()
	for p.More() {
		switch w := p.Next(); w {
		case "rest":
			x.Rest = p.role()
		case "segments":
			x.Segments = p.segments()
		case "scatter":
			x.Scatter = true
		case "stage":
			x.Stage, x.StageAmount = true, p.Int64()
		case "fragment":
			x.Fragment = true
		case "pack":
			x.Pack, x.PackWords = true, p.Int64()
		case "dot":
			x.Dot = true
		case "tile":
			x.Tile = int(p.Int64())
		case "limit":
			x.Limit = p.Node()
		default:
			p.Fail("unknown word %q", w)
		}
	}
	p.st.Axes = append(p.st.Axes, x)
}

func (p *parser) segments() []plan.Segment {
	var out []plan.Segment
	for {
		role, isRole := plan.ParseRole(p.Peek())
		if !isRole {
			return out
		}
		p.Next()
		out = append(out, plan.Segment{Size: p.Int64(), Role: role})
	}
}

func (p *parser) split() {
	if len(p.st.Axes) == 0 {
		p.Fail("a split before any axis")
		return
	}
	s := &Split{SubAxes: p.subAxes()}
	p.Expect("tile")
	s.Tile, s.Gated = p.Int64(), p.Take("gated")
	p.st.Axes[len(p.st.Axes)-1].Split = s
}

func (p *parser) subAxes() []SubAxis {
	var out []SubAxis
	for p.Name() {
		out = append(out, SubAxis{Range: p.rng(), Stride: p.Int64(), Role: p.role()})
	}
	return out
}

func (p *parser) rangeLine() {
	st, r := p.st, p.rng()
	st.roles[r] = p.role()
	axis := int(p.Int64())
	st.order[r] = orderKey{axis, int(p.Int64())}
	if p.Take("dot") {
		st.dots[r] = true
	}
	if p.Take("rising") {
		st.rising[r] = true
	}
}

func (p *parser) gate() {
	i := p.Int64()
	if i < 0 || i >= int64(len(p.st.gates)) {
		p.Fail("no store %d", i)
		return
	}
	p.st.gates[i] = append(p.st.gates[i], p.Node())
}

func (p *parser) warpgroup() {
	t := p.st.Tile
	if t == nil {
		p.Fail("warpgroup before the tile")
		return
	}
	t.Group = &TileGroup{Warp: p.rng()}
	for p.More() {
		t.Group.ColumnTiles = append(t.Group.ColumnTiles, p.rng())
	}
}

func (p *parser) side(name string) {
	t := p.st.Tile
	if t == nil {
		p.Fail("%s before the tile", name)
		return
	}
	side := &TileSide{Staged: p.Take("staged")}
	side.SubAxes = p.subAxes()
	switch name {
	case sideNames[0]:
		t.Rows = side
	case sideNames[1]:
		t.Columns = side
	default:
		t.Points = side
	}
}
