package shape

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/target"
)

// Parse reads the text form of a kernel between two steps into an arena: one that
// Text has printed, or a kernel with a line "# plan: ..", of which nothing has been
// done. The kernel is verified.
func Parse(a *ir.Arena, text string, desc *target.Desc) (*State, error) {
	sink, nodes, err := ir.ParseAll(a, text)
	if err != nil {
		return nil, err
	}
	p := &parser{nodes: nodes}
	if sink.Op != ir.OpSink {
		return nil, errors.New("shape: the last node is no sink")
	}
	p.st = NewState(a, sink, plan.Plan{}, desc)
	for number, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !ok {
			continue
		}
		if err := p.line(comment); err != nil {
			return nil, fmt.Errorf("shape: line %d: %w", number+1, err)
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
	st      *State
	nodes   map[string]*ir.UOp
	words   []string // of a line, that are not read yet
	err     error
	ordered bool
}

// line reads one comment; one that starts with no known word is a comment.
func (p *parser) line(text string) error {
	if rest, ok := strings.CutPrefix(text, "plan: "); ok {
		var err error
		p.st.Plan, err = plan.Parse(rest)
		return err
	}
	p.words, p.err = strings.Fields(text), nil
	switch p.word() {
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
	case sideNames[0], sideNames[1], sideNames[2]:
		p.side(strings.Fields(text)[0])
	default:
		return nil
	}
	if p.err == nil && len(p.words) > 0 {
		p.fail("unexpected %q", p.words[0])
	}
	return p.err
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.words = nil
}

// word takes the next word; at the end of a line it is empty.
func (p *parser) word() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// take takes the next word if it is this one.
func (p *parser) take(word string) bool {
	if len(p.words) == 0 || p.words[0] != word {
		return false
	}
	p.words = p.words[1:]
	return true
}

func (p *parser) number() int64 {
	w := p.word()
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		p.fail("%q, want a number", w)
	}
	return n
}

func (p *parser) node() *ir.UOp {
	w := p.word()
	u := p.nodes[strings.TrimPrefix(w, "%")]
	if u == nil || !strings.HasPrefix(w, "%") {
		p.fail("%q, want a node", w)
		return p.st.Sink
	}
	return u
}

func (p *parser) rng() *ir.UOp {
	u := p.node()
	if u.Op != ir.OpRange {
		p.fail("a %s, want a range", u.Op)
	}
	return u
}

func (p *parser) role() plan.Role {
	w := p.word()
	role, ok := plan.ParseRole(w)
	if !ok {
		p.fail("%q, want a role", w)
	}
	return role
}

func (p *parser) slot() int {
	w := p.word()
	n, err := strconv.Atoi(strings.TrimPrefix(w, "p"))
	if err != nil || !strings.HasPrefix(w, "p") {
		p.fail("%q, want p<slot>", w)
	}
	return n
}

func (p *parser) shaped() {
	st := p.st
	if !p.take("threads") {
		p.fail("no threads")
	}
	st.Threads = p.number()
	if !p.take("next") {
		p.fail("no next range")
	}
	st.next = int(p.number())
	p.ordered = p.take("ordered")
	st.Axes = []Axis{}
}

func (p *parser) options() {
	o := &p.st.Options
	*o = plan.Global{Prefetch: make(map[int]int64), Preload: make(map[int]bool), Stream: make(map[int]bool)}
	for len(p.words) > 0 {
		switch w := p.word(); w {
		case "fma":
			o.FMA = true
		case "prefetch":
			slot := p.slot()
			o.Prefetch[slot] = p.number()
		case "preload":
			o.Preload[p.slot()] = true
		case "stream":
			o.Stream[p.slot()] = true
		case "swap":
			o.Swaps = append(o.Swaps, [2]*ir.UOp{p.rng(), p.rng()})
		default:
			p.fail("unknown option %q", w)
		}
	}
}

func (p *parser) axis() {
	x := newAxis(p.word(), plan.StoreAxis, nil, nil)
	kind, ok := plan.ParseAxisKind(p.word())
	if !ok {
		p.fail("no kind of axis")
	}
	x.Axis.Kind, x.Axis.Range = kind, p.rng()
	for len(p.words) > 0 {
		switch w := p.word(); w {
		case "rest":
			x.Rest = p.role()
		case "segments":
			x.Segments = p.segments()
		case "top":
			x.Top = p.segments()
		case "pad":
			x.PadTo = p.number()
		case "stage":
			x.Stage, x.StageAmount = true, p.number()
		case "fragment":
			x.Fragment = true
		case "pack":
			x.Pack = true
		case "dot":
			x.Dot = true
		case "tile":
			x.Tile = int(p.number())
		case "limit":
			x.Limit = p.node()
		default:
			p.fail("unknown word %q", w)
		}
	}
	p.st.Axes = append(p.st.Axes, x)
}

func (p *parser) segments() []plan.Segment {
	var out []plan.Segment
	for len(p.words) > 1 {
		if _, isRole := plan.ParseRole(p.words[0]); !isRole {
			break
		}
		role := p.role()
		out = append(out, plan.Segment{Size: p.number(), Role: role})
	}
	return out
}

func (p *parser) split() {
	if len(p.st.Axes) == 0 {
		p.fail("a split before any axis")
		return
	}
	s := &Split{SubAxes: p.subAxes()}
	if !p.take("tile") {
		p.fail("no tile")
	}
	s.Tile, s.Gated = p.number(), p.take("gated")
	p.st.Axes[len(p.st.Axes)-1].Split = s
}

func (p *parser) subAxes() []SubAxis {
	var out []SubAxis
	for len(p.words) > 2 && strings.HasPrefix(p.words[0], "%") {
		p.words[2] = strings.TrimSuffix(p.words[2], ",")
		out = append(out, SubAxis{Range: p.rng(), Stride: p.number(), Role: p.role()})
	}
	return out
}

func (p *parser) rangeLine() {
	st, r := p.st, p.rng()
	st.roles[r] = p.role()
	axis := int(p.number())
	st.order[r] = orderKey{axis, int(p.number())}
	if p.take("dot") {
		st.dots[r] = true
	}
	if p.take("rising") {
		st.rising[r] = true
	}
}

func (p *parser) gate() {
	i := p.number()
	if i < 0 || i >= int64(len(p.st.gates)) {
		p.fail("no store %d", i)
		return
	}
	p.st.gates[i] = append(p.st.gates[i], p.node())
}

func (p *parser) side(name string) {
	t := p.st.Tile
	if t == nil {
		p.fail("%s before the tile", name)
		return
	}
	side := &TileSide{Staged: p.take("staged")}
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
