package schedule_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// Decisions are written as they are read, and what no rule takes is refused.
func TestParseDecisions(t *testing.T) {
	const text = "inline-pointwise 0123456789abcdef decline; split-grid 00000000000000ff 8\nR6p 0123456789abcdef apply;\n"
	list, err := schedule.ParseDecisions(text)
	if err != nil || list.Len() != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	var again []string
	for _, d := range list.List() {
		again = append(again, d.String())
	}
	if back, err := schedule.ParseDecisions(strings.Join(again, "\n")); err != nil || fmt.Sprint(back.List()) != fmt.Sprint(list.List()) {
		t.Errorf("%v, %v, want %v", back, err, list)
	}
	for text, want := range map[string]string{
		"inline-pointwise 0123456789abcdef":            "want RULE VALUE CHOICE",
		"fuse-softmax 0123456789abcdef decline":        `rule "fuse-softmax", want one of join-projections`,
		"nothing 0123456789abcdef decline":             `rule "nothing"`,
		"R1 0123456789abcde decline":                   "16 hexadecimal digits",
		"R1 0123456789ABCDEF decline":                  "16 hexadecimal digits",
		"R1 0123456789abcdef 4":                        "inline-pointwise takes apply",
		"R1 0123456789abcdef perhaps":                  `choice "perhaps"`,
		"R8 0123456789abcdef apply":                    "split-grid takes a number",
		"R8 0123456789abcdef 1":                        `choice "1"`,
		"R8 0123456789abcdef -4":                       `choice "-4"`,
		"R8 0123456789abcdef 65537":                    `choice "65537"`,
		"R7 0123456789abcdef apply":                    "order-levels takes decline",
		"placement 0123456789abcdef apply":             "placement takes",
		"weight-layout 0123456789abcdef apply":         "weight-layout takes a number",
		"R1 0123456789abcdef decline; " + "x y z":      "decision 2",
		strings.Repeat("R1", 300) + " 0 0" + "\x00 \n": "decision 1",
	} {
		if _, err := schedule.ParseDecisions(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.60q: %v, want an error with %s", text, err, want)
		}
	}
}

// Any text is decisions that can be written and read again, or an error.
func FuzzParseDecisions(f *testing.F) {
	f.Add("inline-pointwise 0123456789abcdef decline; split-grid 00000000000000ff 8")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := schedule.ParseDecisions(text)
		if err != nil {
			return
		}
		for _, d := range list.List() {
			if back, err := schedule.ParseDecisions(d.String()); err != nil || len(back.List()) != 1 || back.List()[0] != d {
				t.Errorf("%v is read as %v, %v", d, back, err)
			}
		}
	})
}

// Whatever is decided, values stay those of the unfused graph.
func TestRandomDecisions(t *testing.T) {
	changed := 0
	defer func() {
		if changed == 0 {
			t.Error("no decision has changed a schedule")
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		g := randomGraph(rt)
		if g.Err() != nil {
			rt.Fatalf("%v", g.Err())
		}
		r := newRig(t, g, map[string]int64{"length": rapid.Int64Range(1, 8).Draw(rt, "length")}, map[string][]int64{"ints": {2, -1, 9}})
		hazards := false
		r.fail = func(format string, args ...any) {
			hazards = hazards || strings.Contains(fmt.Sprintf(format, args...), "hazard")
			if !hazards {
				rt.Fatalf(format, args...)
			}
		}
		plain := r.plan(plainOptions())
		if hazards {
			return
		}
		r.fail = rt.Fatalf
		opt := splitOptions(rapid.Int64Range(2, 4).Draw(rt, "splits"))
		opt.Explain = true
		if rapid.Bool().Draw(rt, "cpu") {
			opt = schedule.CPUOptions()
			opt.Explain = true
		}
		r.reverse = true
		before := r.plan(opt)
		for _, flip := range schedule.Flips(before.Records) {
			if rapid.IntRange(0, 2).Draw(rt, "flip") == 0 {
				opt.Decisions = opt.Decisions.With(flip)
			}
		}
		want, _ := r.run(plain, interp.KernelOptions{Float64: true})
		after := r.plan(opt)
		if len(after.String()) != len(before.String()) {
			changed++
		}
		got, _ := r.run(after, interp.KernelOptions{Float64: true})
		for id := range want {
			for i := range want[id].Data {
				w, v := want[id].Data[i].F, got[id].Data[i].F
				if d := math.Abs(w - v); !math.IsNaN(w) && w != v && !(d <= 1e-9*r.largest) {
					rt.Fatalf("with %v: buffer %d element %d is %v, want %v\n%s", opt.Decisions.List(), id, i, v, w, after)
				}
			}
		}
	})
}

// layers is a chain of attentions over caches with so many rows, each with weights of its own.
func layers(n, rows int) *tensor.Graph {
	g := tensor.NewGraph()
	length := g.Var("length", 1, int64(rows))
	x := g.Input("x", ir.F32, 4, 64)
	for i := range n {
		cache := g.Input(fmt.Sprint("cache", i), ir.F32, rows, 64).Slice(0, ir.NewArena().Index(0), length)
		normed := x.RMSNorm(nil, 1e-5)
		x = normed.Linear(cache).Softmax(-1).MatMul(cache).Linear(g.Input(fmt.Sprint("w", i), ir.F32, 64, 64)).Add(x)
	}
	g.Output("y", x)
	return g
}

// decisionsOf lists what may be decided of a graph.
func decisionsOf(t *testing.T, g *tensor.Graph) []schedule.Decision {
	t.Helper()
	opt := schedule.DefaultOptions()
	opt.Explain = true
	return schedule.Flips(newRig(t, g, map[string]int64{"length": 3}, nil).plan(opt).Records)
}

// What is decided of a value holds in every layer, with caches of another size of the class, and
// does not with others.
func TestKeysOfValues(t *testing.T) {
	text := func(list []schedule.Decision) string { return fmt.Sprint(list) }
	two, five := decisionsOf(t, layers(3, 1000)), decisionsOf(t, layers(5, 1000))
	if len(two) == 0 || text(two) != text(five) {
		t.Errorf("three layers have %v,\nfive %v", two, five)
	}
	if other := decisionsOf(t, layers(3, 700)); text(other) != text(two) {
		t.Errorf("caches of 1000 rows have %v,\nof 700 %v", two, other)
	}
	if other := decisionsOf(t, layers(3, 10000)); text(other) == text(two) {
		t.Error("caches of 10000 rows have the same")
	}
}

// Each rule that takes decisions has one that changes the schedule, and says so in its records;
// those that were asked for are told.
func TestEveryDecider(t *testing.T) {
	names, _ := schedule.Deciders()
	left := make(map[string]bool)
	for _, name := range names {
		left[name] = true
	}
	rows := tensor.NewGraph()
	x := rows.Input("x", ir.F32, 1, 2048)
	rows.Output("y", x.LayerNorm(1, nil, nil, 1e-5).Linear(rows.Input("w", ir.F32, 512, 2048)))
	long := tensor.NewGraph()
	x = long.Input("x", ir.F32, 30000)
	long.Output("y", x.Exp().Mul(x.Sin()).Div(x.SumKeep(0)))
	for _, g := range []*tensor.Graph{layers(2, 4096), llamaTiny().build(), rows, long} {
		r := newRig(t, g, map[string]int64{"length": 3, "pos": 2}, nil)
		opt := schedule.DefaultOptions()
		opt.Explain = true
		plain := r.plan(opt)
		for _, d := range schedule.Flips(plain.Records) {
			opt.Decisions = schedule.Decisions{}.With(d)
			s := r.plan(opt)
			opt.Explain = false
			if alone := r.plan(opt); alone.String() != s.String() {
				t.Errorf("%v without records gives another schedule", d)
			}
			opt.Explain = true
			if s.Decisions.Len() != 1 {
				t.Errorf("%v was not asked for", d)
			}
			if s.String() != plain.String() {
				delete(left, string(d.Rule))
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("nothing that is decided of %v changes a schedule", left)
	}
}
