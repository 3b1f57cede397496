package tensor_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/tensor"
)

func ExampleGraph_DOT() {
	g := tensor.NewGraph()
	x, w := g.Input("x", ir.F32, 2, 3), g.Input("w", ir.F32, 3)
	g.Output("y", x.Mul(w).Sum(1).MulScalar(0.5))
	text, err := g.DOT()
	fmt.Print(text, err)
	// Output:
	// digraph {
	// 	rankdir=BT
	// 	node [shape=box fontname="sans-serif" fontsize=11]
	// 	n0 [label="y\nf32[2]" style=filled fillcolor="#ddeeff"]
	// 	n1 [label="x\nf32[2 3]" style=filled fillcolor="#ddeeff"]
	// 	n2 [label="w\nf32[3]" style=filled fillcolor="#ddeeff"]
	// 	n3 [label="reshape\nf32[1 3]"]
	// 	n2 -> n3
	// 	n4 [label="expand\nf32[2 3]"]
	// 	n3 -> n4
	// 	n5 [label="mul\nf32[2 3]"]
	// 	n1 -> n5
	// 	n4 -> n5
	// 	n6 [label="reduce add\nf32[2 1]"]
	// 	n5 -> n6
	// 	n7 [label="reshape\nf32[2]"]
	// 	n6 -> n7
	// 	n8 [label="mul 0.5\nf32[2]"]
	// 	n7 -> n8
	// 	n9 [label="assign\nf32[2]" style=filled fillcolor="#eeffdd"]
	// 	n0 -> n9
	// 	n8 -> n9
	// }
	// <nil>
}

// Every arrow is between nodes that are there, names of any kind are quoted, and what only
// shapes depend on is not drawn.
func TestDOT(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("a \"b\\\n", ir.F32, 4, 4)
	w := g.Packed("packed", "Q8_0", 2, 32)
	g.Output("y", x.Add(x).Softmax(1).Add(g.Arange(ir.F32, 0, 4, 1)))
	g.Output("z", w.Sum())
	g.Store(x, x.Neg())
	text, err := g.DOT()
	if err != nil {
		t.Fatal(err)
	}
	nodes := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^\t(n\d+) \[label="(?:[^"\\]|\\.)*"(?: style=filled fillcolor="#\w+")?\]$`).FindAllStringSubmatch(text, -1) {
		nodes[m[1]] = true
	}
	arrows := regexp.MustCompile(`(?m)^\t(n\d+) -> (n\d+)$`).FindAllStringSubmatch(text, -1)
	seen := make(map[string]bool)
	for _, m := range arrows {
		if !nodes[m[1]] || !nodes[m[2]] || seen[m[0]] {
			t.Errorf("arrow %s", m[0])
		}
		seen[m[0]] = true
	}
	if lines := strings.Count(text, "\n"); lines != len(nodes)+len(arrows)+4 {
		t.Errorf("%d nodes, %d arrows, %d lines:\n%s", len(nodes), len(arrows), lines, text)
	}
	for _, want := range []string{`a \"b\\\n\n`, "packed (Q8_0)", "reduce max", "assign"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "iota") {
		t.Errorf("coordinates are drawn:\n%s", text)
	}
	if _, err := tensor.NewGraph().DOT(); err == nil {
		t.Error("a graph without results: no error")
	}
}
