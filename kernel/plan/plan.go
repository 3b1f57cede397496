package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tgc/internal/lists"
)

// Plan says how a kernel runs: a list of Opts, applied in order. It is data:
// it prints, parses, is stored in tuning databases and replayed. The empty plan
// is legal for every kernel: stores over the grid, reduces as serial loops.
type Plan struct{ Opts []Opt }

// String prints a plan on one line, Opts separated by "; ".
func (p Plan) String() string {
	parts := lists.Map(p.Opts, Opt.String)
	return strings.Join(parts, "; ")
}

// EveryBuffer is the axis of an Opt that Extend adds for each buffer.
const EveryBuffer = "p*"

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
