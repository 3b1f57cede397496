package main

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
)

// compilation is one run of `tgc compile`.
type compilation struct {
	name  string // without spaces
	args  []string
	quick bool
}

// models are the shapes of the zoo; those with a star are in the quick part.
var models = []string{
	"tiny*", "llama3.2:1b-q6_k*", "llama3.2:3b-q6_k", "qwen3:0.6b-q8_0", "qwen3:1.7b-q4_k_m*", "olmoe:1b-7b-q4_k_m*", "gpt2:124m-f16*",
	"llama3.1:8b-q4_k_m", "qwen2.5:0.5b-q4_k_m", "qwen2.5:1.5b-q5_k_m", "smollm2:135m-q8_0", "odd",
}

// steps are the parts of a model's work.
var steps = []struct {
	name  string
	args  string
	quick bool
}{
	{"decode", "--step decode", true},
	{"prompt128", "--step prefill --tokens 128", false},
	{"prompt512", "--step prefill --tokens 512", true},
	{"batch2", "--step decode --batch 2", false},
	{"batch8", "--step decode --batch 8", false},
}

var modes = []string{"exact*", "i16", "int8*"}

// targets are the machines; the quick part takes one of each kind.
var targets = []string{"ptx:sm_90*", "ptx:sm_87", "llvm:x86-64-v4*", "llvm:x86-64-v3"}

// programTargets are those for which library programs are compiled; CUDA C shows
// the third renderer.
var programTargets = []string{"ptx:sm_90*", "cuda:sm_87", "llvm:x86-64-v3*"}

// compilations lists the zoo; the graphs are the files of folder.
func compilations(folder string) ([]compilation, error) {
	var list []compilation
	for _, m := range models {
		model, quickModel := strings.CutSuffix(m, "*")
		for _, s := range steps {
			for _, k := range modes {
				mode, quickMode := strings.CutSuffix(k, "*")
				for _, t := range targets {
					target, quickTarget := strings.CutSuffix(t, "*")
					args := append([]string{"compile", model, "--mode", mode, "--target", target, "--ctx", "1024"}, strings.Fields(s.args)...)
					list = append(list, compilation{
						name: strings.Join([]string{model, s.name, mode, target}, "/"), args: args,
						quick: quickModel && s.quick && quickMode && quickTarget,
					})
				}
			}
		}
	}
	graphs, err := filepath.Glob(filepath.Join(folder, "*.uop"))
	if err != nil || len(graphs) == 0 {
		return nil, fmt.Errorf("no graphs in %s: %v", folder, err)
	}
	sort.Strings(graphs)
	for i, path := range graphs {
		for _, t := range programTargets {
			target, quickTarget := strings.CutSuffix(t, "*")
			list = append(list, compilation{
				name: strings.TrimSuffix(filepath.Base(path), ".uop") + "/" + target,
				args: []string{"compile", path, "--target", target}, quick: quickTarget && i%4 == 0,
			})
		}
	}
	return list, nil
}
