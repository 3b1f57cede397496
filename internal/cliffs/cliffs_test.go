package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/internal/cudatools"
	_ "tgc/internal/rarecollection"
)

var update = flag.Bool("update", false, "rewrite testdata/known.txt")

// The sample of the test: what compiles in some fifteen seconds.
const (
	sampleSize   = 60
	promptSample = 30
	sampleSeed   = 1
)

func shapeNamed(name string) shape {
	return shapes[slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })]
}

const knownFile = "testdata/known.txt"

// mended are subjects whose kernels were cliffs, one of each cause.
var mended = []subject{
	{shape: shapeNamed("openllama-3b"), quant: "Q5_0", mode: "int8", target: "ptx:sm_90", batch: 2},            // 100 groups of activations
	{shape: shapeNamed("qwen2.5-0.5b"), quant: "F16", mode: "int8", target: "ptx:sm_90", batch: 1},             // rows that no warp divides
	{shape: shapeNamed("olmo-1b"), quant: "IQ3_S", mode: "int8", target: "ptx:sm_90", batch: 1},                // two indices of a codebook side by side
	{shape: shapeNamed("odd-9-superblocks"), quant: "Q5_K", mode: "int8", target: "ptx:sm_90", batch: 2},       // rows by the prime
	{shape: shapeNamed("llama3.2-3b"), quant: "Q4_K", mode: "exact", target: "ptx:sm_90", batch: 1},            // 15 warps that share a norm
	{shape: shapeNamed("olmoe-1b-7b"), quant: "Q4_K", mode: "int8", target: "ptx:sm_90", batch: 3},             // a stage with more threads than rows
	{shape: shapeNamed("llama3.2-1b"), quant: "Q5_K", mode: "i16", target: "ptx:sm_90", batch: 1, tokens: 128}, // sums of integers around a loop of panels
}

// No kernel of the sample has a finding that is not known, and every known one holds.
func TestCliffs(t *testing.T) {
	tools := cudatools.FromEnvironment()
	c := &checker{}
	defer c.close()
	var found []finding
	if tools.PtxasPath != "" {
		c.tools = &tools
	}
	for _, s := range slices.Concat(sample(subjects(), sampleSize, sampleSeed), sample(prompts(), promptSample, sampleSeed), mended) {
		some, err := c.check(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, some...)
	}
	if *update {
		if err := os.WriteFile(knownFile, []byte(formatKnown(found)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compareKnown(t, found, c.tools != nil)
}

// compareKnown compares findings with the file; spills are looked at where ptxas is.
func compareKnown(t *testing.T, found []finding, spills bool) {
	t.Helper()
	text, err := os.ReadFile(knownFile)
	if err != nil {
		t.Fatal(err)
	}
	known, err := parseKnown(string(text))
	if err != nil {
		t.Fatalf("%s: %v", knownFile, err)
	}
	var keys []string
	for _, f := range found {
		keys = append(keys, f.key())
		if !slices.Contains(known, f.key()) {
			t.Errorf("new: %s %s %s: %s\n\t%s", f.check, f.subject, f.weights, f.detail, f.subject.command())
		}
	}
	for _, k := range known {
		if !slices.Contains(keys, k) && (spills || !strings.HasPrefix(k, spill)) {
			t.Errorf("no longer so; go test ./internal/cliffs -update drops it: %s", strings.Join(strings.Fields(k), " "))
		}
	}
}

// What is printed is what is read.
func TestKnownFormat(t *testing.T) {
	list := subjects()
	found := []finding{
		{check: alone, subject: list[7], weights: "2x3:Q4_0 5x6:f16"}, {check: alone, subject: list[0], weights: "2x3:Q4_0"},
		{check: price, subject: list[0], weights: "2x3:Q4_0"}, {check: alone, subject: list[0], weights: "2x3:Q4_0"},
	}
	keys, err := parseKnown(formatKnown(found))
	if err != nil || len(keys) != 3 {
		t.Fatalf("%d keys, want 3: %v", len(keys), err)
	}
	for _, f := range found {
		if !slices.Contains(keys, f.key()) {
			t.Errorf("no %q among %q", f.key(), keys)
		}
	}
	if _, err := parseKnown("\tQ4_0/int8/b1/ptx:sm_90 2x3:Q4_0"); err == nil {
		t.Error("a line without a group is read")
	}
}

// The product has what it is said to have, each once.
func TestSubjects(t *testing.T) {
	list, seen := subjects(), make(map[string]bool)
	for _, s := range list {
		if seen[s.String()] {
			t.Errorf("%s stands twice", s)
		}
		seen[s.String()] = true
	}
	of := make(map[shape]int)
	for _, s := range sample(list, 2*len(shapes), 7) {
		of[s.shape]++
	}
	for s, n := range of {
		if n != 2 || len(of) != len(shapes) {
			t.Errorf("%d samples of %s, want 2 of each", n, s.name)
		}
	}
	if len(shapes) != 60 || len(list) != 60*len(types)*len(modes)*len(batches)*len(targets) {
		t.Errorf("%d shapes, %d subjects", len(shapes), len(list))
	}
}

// Upper bits and signs of packed weights are spread to bytes, four at a time, wherever their
// number lies; compared lane by lane they take twice the instructions of all the rest.
func TestBitsAreSpread(t *testing.T) {
	c := &compiler{}
	defer c.close()
	for _, s := range []subject{
		{shape: shapeNamed("llama3.2-1b"), quant: "Q5_0", mode: "exact", target: "ptx:sm_90", batch: 1},    // the bit of each lane was staged
		{shape: shapeNamed("llama3.2-1b"), quant: "IQ2_XXS", mode: "exact", target: "ptx:sm_90", batch: 1}, // signs are lanes of a vector
		{shape: shapeNamed("llama3.2-1b"), quant: "IQ3_XXS", mode: "int8", target: "ptx:sm_90", batch: 1},
	} {
		compiled, err := c.compile(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range compiled.Kernels {
			source, err := engine.Source(k.Program, compiled.Target)
			if err != nil {
				t.Fatal(err)
			}
			const mostCompared = 16
			if n := strings.Count(source, "setp.lt.u32"); n > mostCompared {
				t.Errorf("%s, %s: %d comparisons of bits", s, k.Name, n)
			}
		}
	}
}
