package shape

import (
	"context"
	"fmt"

	"tgc/ir"
	"tgc/target"
)

// RunPass runs one step on a kernel in text (see Parse) and returns the text after
// it.
func RunPass(ctx context.Context, a *ir.Arena, name, text string, desc *target.Desc) (string, error) {
	row, ok := Passes.Row(name)
	if !ok {
		return "", fmt.Errorf("shape: there is no step %q", name)
	}
	st, err := Parse(a, text, desc)
	if err != nil {
		return "", err
	}
	if first := Passes.Rows[0].Name; (st.Axes == nil) != (name == first) {
		return "", fmt.Errorf("shape: %s runs once, before all other steps", first)
	}
	if err := Passes.RunRow(ctx, row, st, "", nil); err != nil {
		return "", err
	}
	return Text(st), nil
}
