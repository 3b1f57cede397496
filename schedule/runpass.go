package schedule

import (
	"context"
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/pass"
	"tgc/schedule/state"
)

// RunPass runs one pass of the table on a form in text and returns the form
// after it. The form before it is what the row says: a tensor graph in the text
// form of graphs, values, or kernels (see text.go).
func RunPass(ctx context.Context, a *ir.Arena, name, text string, opt state.Options) (string, error) {
	r, ok := passes.Row(name)
	if !ok {
		return "", fmt.Errorf("schedule: there is no pass %q", name)
	}
	s, form, err := parseForm(a, text, opt)
	if err != nil {
		return "", err
	}
	if form != r.From {
		return "", fmt.Errorf("schedule: %s takes the form %s, the text is of the form %s", r.Name, r.From, form)
	}
	if err := passes.RunRow(ctx, r, s, "", opt.Control); err != nil {
		return "", fmt.Errorf("schedule: %w", err)
	}
	return s.Text(), nil
}

// VerifyText checks a form in text: that it parses, and the contract of the form.
func VerifyText(a *ir.Arena, text string, opt state.Options) error {
	_, _, err := parseForm(a, text, opt)
	return err
}

// parseForm reads one of the forms of this stage and says which it is.
func parseForm(a *ir.Arena, text string, opt state.Options) (*state.State, pass.Form, error) {
	opt, err := withoutRows(opt)
	if err != nil {
		return nil, "", err
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case strings.HasPrefix(line, "values "):
			s, err := state.ParseState(a, text, opt)
			return s, pass.Values, err
		case strings.HasPrefix(line, "kernels "):
			s, err := state.ParseState(a, text, opt)
			return s, pass.Kernel, err
		}
		break
	}
	sink, err := ir.Parse(a, text)
	if err != nil {
		return nil, "", fmt.Errorf("schedule: %w", err)
	}
	if err := ir.VerifyTensor(sink); err != nil {
		return nil, "", fmt.Errorf("schedule: %w", err)
	}
	s := state.New(a, opt)
	s.Sink = sink
	return s, pass.Tensor, nil
}
