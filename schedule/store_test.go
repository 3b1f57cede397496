package schedule_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/ir"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// What was stored is read back as it was: buffers, launches, arguments, names, reasons and decisions.
func TestStore(t *testing.T) {
	for name, model := range textModels() {
		for target, opt := range map[string]schedule.Options{"gpu": schedule.DefaultOptions(), "cpu": schedule.CPUOptions()} {
			sink, err := model.build().Sink()
			if err != nil {
				t.Fatal(err)
			}
			a := ir.NewArena()
			opt.Explain = true
			want, err := schedule.Run(t.Context(), a, a.Import(sink), opt)
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Records) == 0 {
				t.Fatalf("%s, %s: no records", name, target)
			}
			list, err := schedule.ParseDecisions("split-grid 9f3a64d1c0ffee12 8; R6p 0123456789abcdef decline")
			if err != nil {
				t.Fatal(err)
			}
			want.Decisions = list
			data, err := want.Store()
			if err != nil {
				t.Fatal(err)
			}
			got, err := schedule.Restore(ir.NewArena(), data)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, target, err)
			}
			if diff := cmp.Diff(want.String(), got.String()); diff != "" {
				t.Errorf("%s, %s: stored (-) and read back (+):\n%s", name, target, diff)
			}
			again, err := got.Store()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, again) {
				t.Errorf("%s, %s: stored again it is another text", name, target)
			}
			if got.Records != nil {
				t.Errorf("%s, %s: %d records were kept", name, target, len(got.Records))
			}
		}
	}
}

// Bytes that nobody stored are refused, never a panic; what is read is stored as it was read.
func FuzzRestore(f *testing.F) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		f.Fatal(err)
	}
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 3, 40)
	g.Output("y", x.Softmax(1))
	sink, err := g.Sink()
	if err != nil {
		f.Fatal(err)
	}
	a := ir.NewArena()
	s, err := schedule.Run(f.Context(), a, a.Import(sink), schedule.OptionsFor(desc))
	if err != nil {
		f.Fatal(err)
	}
	data, err := s.Store()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(bytes.Replace(data, []byte(`"Text":0`), []byte(`"Text":7`), 1))
	f.Add(bytes.Replace(data, []byte(`"Args":[0`), []byte(`"Args":[9`), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := schedule.Restore(ir.NewArena(), data)
		if err != nil {
			return
		}
		stored, err := got.Store()
		if err != nil {
			t.Fatal(err)
		}
		again, err := schedule.Restore(ir.NewArena(), stored)
		if err != nil {
			t.Fatalf("what was read and stored is refused: %v", err)
		}
		if diff := cmp.Diff(got.String(), again.String()); diff != "" {
			t.Errorf("read (-), stored and read again (+):\n%s", diff)
		}
	})
}
