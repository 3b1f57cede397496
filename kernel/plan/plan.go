package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/target"
)

// Plan says how a kernel runs: a list of Opts, applied in order. It is data:
// it prints, parses, is stored in tuning databases and replayed. The empty plan
// is legal for every kernel: stores over the grid, reduces as serial loops.
type Plan struct{ Opts []Opt }

// Opt is one decision of a plan. Axis names a range of the kernel (see Axes)
// or, for PREFETCH, a buffer slot as p0, p1, ..; Amount is a factor or a number
// of bytes, 0 where the Opt takes none ("all that is left").
type Opt struct {
	Kind   OptKind
	Axis   string
	Amount int64
}

// String prints an Opt as Parse reads it: kind, axis, amount.
func (o Opt) String() string {
	s := o.Kind.String()
	if o.Axis != "" {
		s += " " + o.Axis
	}
	if words := o.Kind.Words(); o.Amount > 0 && o.Amount <= int64(len(words)) {
		return s + " " + words[o.Amount-1]
	}
	if o.Amount != 0 || o.Kind == SWAP {
		s += " " + strconv.FormatInt(o.Amount, 10)
	}
	return s
}

// String prints a plan on one line, Opts separated by "; ".
func (p Plan) String() string {
	parts := lists.Map(p.Opts, Opt.String)
	return strings.Join(parts, "; ")
}

// EveryBuffer is the axis of an Opt that Extend adds for each buffer.
const EveryBuffer = "p*"

// Extend adds the Opts that a kernel accepts after those of the plan.
func (p Plan) Extend(sink *ir.UOp, with []Opt, desc *target.Desc) Plan {
	add := func(opt Opt) {
		longer := Plan{append(slices.Clone(p.Opts), opt)}
		if Legality(sink, longer, desc) == nil {
			p = longer
		}
	}
	for _, opt := range with {
		if opt.Axis != EveryBuffer {
			add(opt)
			continue
		}
		for _, arg := range paramsOf(sink) {
			opt.Axis = "p" + strconv.Itoa(arg.Slot)
			add(opt)
		}
	}
	return p
}

// maxPlanText and maxOpts bound what Parse accepts from a stored plan.
const (
	maxPlanText = 1 << 16
	maxOpts     = 256
)

// Parse reads a plan: Opts separated by semicolons or line ends.
func Parse(text string) (Plan, error) {
	if len(text) > maxPlanText {
		return Plan{}, fmt.Errorf("kernel: plan: %d bytes, want at most %d", len(text), maxPlanText)
	}
	var p Plan
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		opt, err := parseOpt(words)
		if err != nil {
			return Plan{}, fmt.Errorf("kernel: plan: opt %d %q: %w", len(p.Opts), strings.Join(words, " "), err)
		}
		p.Opts = append(p.Opts, opt)
		if len(p.Opts) > maxOpts {
			return Plan{}, fmt.Errorf("kernel: plan: more than %d opts", maxOpts)
		}
	}
	return p, nil
}

func parseOpt(words []string) (Opt, error) {
	kind, ok := ParseOptKind(words[0])
	if !ok {
		return Opt{}, fmt.Errorf("unknown kind %q", words[0])
	}
	info := kind.Info()
	opt := Opt{Kind: kind}
	rest := words[1:]
	if info.Axis != axisNone {
		if len(rest) == 0 {
			return Opt{}, fmt.Errorf("no axis")
		}
		opt.Axis, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 && info.Amount != amountNone {
		n, err := strconv.ParseInt(rest[0], 10, 64)
		if words := kind.Words(); words != nil {
			n, err = int64(slices.Index(words, rest[0])+1), nil
			if n == 0 {
				return Opt{}, fmt.Errorf("%q, want one of %s", rest[0], strings.Join(words, ", "))
			}
		}
		if err != nil || n < 0 || n == 0 && kind != SWAP {
			return Opt{}, fmt.Errorf("amount %q, want a positive integer", rest[0])
		}
		opt.Amount, rest = n, rest[1:]
	} else if info.Amount == amountNeeded {
		return Opt{}, fmt.Errorf("no amount")
	}
	if len(rest) > 0 {
		return Opt{}, fmt.Errorf("unexpected %q", rest[0])
	}
	return opt, nil
}
