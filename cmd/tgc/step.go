package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tgc/engine"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/target"
)

// stepFlags are the flags of commands that compile one step for a target.
type stepFlags struct {
	step    string
	tokens  int
	batch   int
	context int
	depth   int
	mode    modeFlag
	kv      cacheFlag
	target  string
}

func (o *stepFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.step, "step", "decode", "decode (one token a sequence) or prefill")
	f.IntVar(&o.tokens, "tokens", 128, "prefill: tokens fed at once")
	f.IntVar(&o.batch, "batch", 1, "sequences")
	f.IntVar(&o.context, "ctx", 4096, "positions in the cache, at most the model's")
	f.IntVar(&o.depth, "depth", 128, "position at which bytes are counted")
	f.StringVar(&o.target, "target", "", target.Names())
	registerMode(f, &o.mode)
	registerCache(f, &o.kv)
}

func (o *stepFlags) check(cmd *cobra.Command) error {
	name := cmd.Name()
	switch {
	case o.step != "decode" && o.step != "prefill":
		return usagef("%s: --step %q, want decode or prefill", name, o.step)
	case o.tokens < 1 || o.batch < 1 || o.context < 1 || o.depth < 0:
		return usagef("%s: --tokens, --batch and --ctx start at 1, --depth at 0", name)
	}
	if o.step == "decode" {
		if cmd.Flags().Changed("tokens") && o.tokens != 1 {
			return usagef("%s: --tokens is for --step prefill: a decode step feeds one token", name)
		}
		o.tokens = 1
	}
	return nil
}

// isGraph reports a name of a graph in text form.
func isGraph(name string) bool { return strings.HasSuffix(name, ".uop") }

// compile compiles a step of a model, or a graph in text form.
func (o *stepFlags) compile(cmd *cobra.Command, name string, desc *target.Desc, config engine.Config) (*llm.Manifest, *llm.CompiledStep, error) {
	if isGraph(name) {
		return o.graph(cmd, name, desc, config)
	}
	return o.model(cmd, name, desc, config)
}

// model compiles a step of a model.
func (o *stepFlags) model(cmd *cobra.Command, name string, desc *target.Desc, config engine.Config) (*llm.Manifest, *llm.CompiledStep, error) {
	m, err := openModel(cmd.Context(), name, openOutline)
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	rows := min(o.context, m.Config.Context)
	if o.depth+o.tokens > rows {
		return nil, nil, fmt.Errorf("depth %d and %d tokens do not fit the context of %d", o.depth, o.tokens, rows)
	}
	v := llm.Variant{Batch: o.batch, Tokens: o.tokens, Context: rows, Numeric: o.mode.Numeric, Cache: o.kv.CacheType}
	step, err := llm.CompileStep(printNotes(cmd), m, v, o.depth, desc, config)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	manifest := &llm.Manifest{
		Target: desc.Name, Step: o.step, Mode: o.mode.String(), Model: modelName(name),
		Ctx: rows, Depth: o.depth, Tokens: o.tokens, Batch: o.batch,
	}
	if o.kv.CacheType != llm.CacheF32 {
		manifest.KV = o.kv.String()
	}
	return manifest, step, nil
}

// graph compiles a graph in text form.
func (o *stepFlags) graph(cmd *cobra.Command, name string, desc *target.Desc, config engine.Config) (*llm.Manifest, *llm.CompiledStep, error) {
	text, err := readInput(cmd, name)
	if err != nil {
		return nil, nil, err
	}
	root, err := ir.Parse(ir.NewArena(), text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	compiled, err := engine.Compile(printNotes(cmd), root, desc, config)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	step := &llm.CompiledStep{Compiled: compiled, Binding: engine.Bind(compiled, nil)}
	return &llm.Manifest{Target: desc.Name, Step: "graph", Mode: o.mode.String(), Model: modelName(name)}, step, nil
}

// modelName is what a manifest calls a model: the same wherever the file lies.
func modelName(name string) string {
	if synth.IsShape(name) {
		return name
	}
	return filepath.Base(name)
}
