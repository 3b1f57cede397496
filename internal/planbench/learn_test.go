package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tgc/engine"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/search"
	"tgc/search/database"
	"tgc/target"
	"tgc/tensor"
)

// A model is learned from the log of two kernels, each of which orders the other's candidates.
func TestLearn(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	out := json.NewEncoder(&log)
	for n, rows := range []int{512, 768} {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, 1024).Linear(g.Packed("w", "Q8_0", rows, 1024)))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		arena, ast, key := ir.NewArena(), c.Kernels[0].AST, database.Key(fmt.Sprint(n))
		list, err := heuristic.Candidates(arena, arena.Import(ast), desc, heuristic.Knobs{})
		if err != nil || len(list) < 30 {
			t.Fatalf("%d candidates, %v", len(list), err)
		}
		records := []any{search.LogKernel{Record: "kernel", Key: key, Kernel: "k", Target: desc.Name, Text: ir.Text(ast)}}
		for i := range 30 {
			c := list[i*len(list)/30]
			records = append(records, search.LogCandidate{Record: "candidate", Key: key, Kernel: "k", Plan: c.Plan.String(), Status: search.Measured, Time: c.Price / 1000})
		}
		for _, r := range records {
			if err := out.Encode(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "tune.jsonl")
	if err := os.WriteFile(path, log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bench{most: 40}
	var printed bytes.Buffer
	if err := b.learn(t.Context(), []string{path}, &printed); err != nil {
		t.Fatal(err)
	}
	m, err := search.ReadModel(&printed)
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := b.timedKernels(t.Context(), []string{path})
	if err != nil || len(kernels) != 2 {
		t.Fatalf("%d kernels, %v", len(kernels), err)
	}
	for _, k := range kernels {
		if r := search.Ranks(k.list, m.Score, learnNoise, learnFew); r.Tau < 0.3 {
			t.Errorf("%+v", r)
		}
	}
	if err := b.learn(t.Context(), []string{path}[:0], &printed); err == nil {
		t.Error("a model of nothing")
	}
}
