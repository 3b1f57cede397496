package template

import (
	"context"
	"fmt"
)

// Limits bounds what a rendering may cost. Zeros are replaced by the defaults.
type Limits struct {
	Steps  int // nodes evaluated, elements visited, and one for every 256 bytes of text made
	Output int // bytes of any one text, the whole output too
	Depth  int // of calls of macros, and of lists in lists
}

// Limits by default. A conversation of 1,000 messages takes some 100,000 steps of the
// largest templates (Qwen 3), and 10^6 steps take about 0.1 s.
const (
	defaultSteps  = 2 << 20
	defaultOutput = 4 << 20
	defaultDepth  = 100
)

func (l Limits) withDefaults() Limits {
	if l.Steps == 0 {
		l.Steps = defaultSteps
	}
	if l.Output == 0 {
		l.Output = defaultOutput
	}
	if l.Depth == 0 {
		l.Depth = defaultDepth
	}
	return l
}

// budget is what is left of the limits of one rendering.
type budget struct {
	ctx    context.Context
	limits Limits
	steps  int // taken
	looked int // steps at the last look at ctx
}

// bytesAStep is how much text may be made in the time of one step: copying 256 bytes
// takes about as long as evaluating a node.
const bytesAStep = 256

// spend takes steps; the error says which limit was met.
func (b *budget) spend(n int) error {
	b.steps += n
	if b.steps > b.limits.Steps {
		return fmt.Errorf("more than %d steps: the template does not end, or asks for too much", b.limits.Steps)
	}
	if b.steps-b.looked >= 1<<12 {
		b.looked = b.steps
		return context.Cause(b.ctx)
	}
	return nil
}

// fits checks the length of a text, in bytes.
func (b *budget) fits(n int) error {
	if n > b.limits.Output {
		return fmt.Errorf("a text of %d bytes, want at most %d", n, b.limits.Output)
	}
	return nil
}

// spendText takes steps for reading or making a text of n bytes.
func (b *budget) spendText(n int) error {
	if err := b.fits(n); err != nil {
		return err
	}
	return b.spend(n / bytesAStep)
}

// deeper checks a depth.
func (b *budget) deeper(depth int) error {
	if depth > b.limits.Depth {
		return fmt.Errorf("nested deeper than %d", b.limits.Depth)
	}
	return nil
}

// Error is a fault of a template, or what it raised itself.
type Error struct {
	Line   int
	Raised bool // by raise_exception: the text is the template author's word to the user
	Text   string
	cause  error
}

// Error says where and what.
func (e *Error) Error() string { return fmt.Sprintf("chat template: line %d: %s", e.Line, e.Text) }

// Unwrap returns the cause, such as that of a cancelled context.
func (e *Error) Unwrap() error { return e.cause }
