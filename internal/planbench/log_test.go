package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tgc/engine"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/search"
	"tgc/target"
	"tgc/tensor"
)

// A log of tgc tune is scored as pairs are: by the candidates that were measured.
func TestScoreLog(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 1024).Linear(g.Packed("w", "Q8_0", 512, 1024)))
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	arena, ast := ir.NewArena(), c.Kernels[0].AST
	list, err := heuristic.Candidates(arena, arena.Import(ast), desc, heuristic.Knobs{})
	if err != nil || len(list) < 6 {
		t.Fatalf("%d candidates, %v", len(list), err)
	}
	path := filepath.Join(t.TempDir(), "tune.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := json.NewEncoder(f)
	records := []any{search.LogKernel{Record: "kernel", Key: "00", Kernel: "k", Target: desc.Name, Text: ir.Text(ast)}}
	for i, c := range list[:6] {
		r := search.LogCandidate{Record: "candidate", Key: "00", Kernel: "k", Plan: c.Plan.String(), Status: search.Measured, Time: float64(1 + i)}
		if i == 5 {
			r.Status = search.Wrong
		}
		records = append(records, r)
	}
	for _, r := range records {
		if err := out.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b := &bench{target: desc}
	kernels, err := b.recorded(t.Context(), path)
	if err != nil || len(kernels) != 1 || len(kernels[0].plans) != 5 {
		t.Fatalf("%s, %v, want a kernel with 5 plans", fmt.Sprint(kernels), err)
	}
	if tau, loss := kernels[0].compare(desc); tau <= 0 || loss != 1 {
		t.Errorf("tau %v and loss %v of times in the order of prices", tau, loss)
	}
}
