package job

import (
	"fmt"
	"strconv"
	"strings"
)

// Step is a step of a model: what is fed at once, and where.
type Step struct {
	Text   string  // as it was written
	Batch  int     // sequences; 0: as many as the caller says
	Tokens int     // fed to each
	Depth  int     // position at which it is timed; -1: as the caller says
	Times  float64 // how often it runs, for each time that other steps do
}

// Bounds of steps. What a device has no memory for is an error when it is opened.
const (
	MostBatch  = 256
	MostTokens = 1 << 16
	MostDepth  = 1 << 24
	MostTimes  = 1e6
	MostSteps  = 64
)

// stepForm says how a step is written.
const stepForm = "[TIMES*]decode, [TIMES*]prompt[:TOKENS] or [TIMES*]batch:SEQUENCES, and perhaps @DEPTH"

// usualPrompt is the prompt of a step that says no tokens.
const usualPrompt = 128

// ParseSteps reads a list: "128*decode,prompt:512,batch:4@1000".
func ParseSteps(list string) (steps []Step, err error) {
	for _, text := range strings.Split(list, ",") {
		s, err := ParseStep(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		if steps = append(steps, s); len(steps) > MostSteps {
			return nil, fmt.Errorf("more than %d steps", MostSteps)
		}
	}
	return steps, nil
}

// ParseStep reads one step.
func ParseStep(text string) (Step, error) {
	s := Step{Text: text, Tokens: 1, Depth: -1, Times: 1}
	wrong := func(what string) (Step, error) {
		return Step{}, fmt.Errorf("step %.80q: %s, want %s", text, what, stepForm)
	}
	rest := text
	if times, after, ok := strings.Cut(rest, "*"); ok {
		n, err := strconv.ParseFloat(times, 64)
		if err != nil || !(n > 0 && n <= MostTimes) {
			return wrong(fmt.Sprintf("%.20q times", times))
		}
		s.Times, rest = n, after
	}
	if before, depth, ok := strings.Cut(rest, "@"); ok {
		n, ok := number(depth, 0, MostDepth)
		if !ok {
			return wrong(fmt.Sprintf("depth %.20q", depth))
		}
		s.Depth, rest = n, before
	}
	name, amount, has := strings.Cut(rest, ":")
	ok := true
	switch {
	case name == "decode" && !has:
	case name == "prompt" && !has:
		s.Tokens = usualPrompt
	case name == "prompt":
		s.Tokens, ok = number(amount, 1, MostTokens)
	case name == "batch" && has:
		s.Batch, ok = number(amount, 1, MostBatch)
	default:
		return wrong(fmt.Sprintf("%.20q", rest))
	}
	if !ok {
		return wrong(fmt.Sprintf("%.20q", amount))
	}
	return s, nil
}

// number reads a plain decimal within bounds.
func number(text string, lo, hi int) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= lo && n <= hi && strconv.Itoa(n) == text
}
