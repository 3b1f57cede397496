package schedule_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/pass"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// Texts of this stage's forms are read or refused, never a panic.
func FuzzParse(f *testing.F) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		f.Fatal(err)
	}
	for _, after := range []string{"rangeify", "fuse-softmax", "order-levels", "write-kernels"} {
		f.Add(smallForm(f, desc, after))
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_ = schedule.VerifyText(ir.NewArena(), text, schedule.OptionsFor(desc))
	})
}

// smallForm is the form of a softmax and a sum after a pass.
func smallForm(f *testing.F, desc *target.Desc, after string) string {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 3, 40)
	g.Output("y", x.Softmax(1))
	g.Output("z", x.Sum(0))
	sink, err := g.Sink()
	if err != nil {
		f.Fatal(err)
	}
	var text strings.Builder
	options := schedule.OptionsFor(desc)
	options.Control = &pass.Control{StopAfter: after, Dump: func(_ pass.Info, _, form string) { text.WriteString(form) }}
	a := ir.NewArena()
	_, _ = schedule.Run(f.Context(), a, a.Import(sink), options) // stops: an error
	if text.Len() == 0 {
		f.Fatalf("no form after %s", after)
	}
	return text.String()
}
