package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tgc/engine"
	"tgc/llm"
	"tgc/pass"
	"tgc/render"
	"tgc/target"
)

// compileFlags are the flags of compile.
type compileFlags struct {
	stepFlags
	out     string
	explain bool
	json    bool
	blame   string
	passes  passFlags
}

func newCompile() *cobra.Command {
	var o compileFlags
	cmd := &cobra.Command{
		Use:   "compile MODEL.gguf|SHAPE|GRAPH.uop --target T -o DIR",
		Short: "Write every kernel of a step, and manifest.json",
		Long: "Compile one step of a model, or a graph in the IR's text form, for a target that need\n" +
			"not be present. DIR gets one file for each kernel's source and form, and manifest.json\n" +
			"with launches, bytes, operations, plans and their reasons. Weights are not read.",
		Example: "  tgc compile llama3.2:1b-q6_k --step decode --target llvm -o /tmp/kernels\n" +
			"  tgc compile model.gguf --step prefill --tokens 128 --target llvm:znver5 -o /tmp/kernels --explain\n" +
			"  tgc compile graph.uop --target interp -o /tmp/kernels\n" +
			"  tgc compile tiny --target ptx:sm_90 --stop-after choose-plans\n" +
			"  tgc compile tiny --target ptx:sm_90 --blame bar.sync",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.stepFlags.register(f)
	f.StringVarP(&o.out, "output", "o", "", "folder to write")
	f.BoolVar(&o.explain, "explain", false, "print what was decided, and why")
	f.StringVar(&o.blame, "blame", "", "say which passes made, moved or dropped the lines that match: a regular expression, of the source or of any form")
	f.BoolVar(&o.json, "json", false, "print the manifest too")
	o.passes.register(f)
	return cmd
}

func (o *compileFlags) check(cmd *cobra.Command) error {
	switch {
	case o.target == "":
		return usagef("compile: --target is missing, such as --target llvm")
	case o.out == "" && o.passes.stopAfter == "" && len(o.passes.dumpAfter) == 0 && o.blame == "":
		return usagef("compile: -o DIR is missing")
	}
	return o.stepFlags.check(cmd)
}

func (o *compileFlags) run(cmd *cobra.Command, name string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	desc, renderer, err := findTarget(o.target)
	if err != nil {
		return err
	}
	config, err := readConfig(cmd)
	if err != nil {
		return err
	}
	config.Explain = o.explain
	forms := cmd.OutOrStdout()
	if o.json {
		forms = cmd.ErrOrStderr()
	}
	if config.Control, err = o.passes.control(forms); err != nil {
		return err
	}
	var lines *blame
	if o.blame != "" {
		if lines, err = newBlame(o.blame, config.Control); err != nil {
			return err
		}
	}
	done := func() {}
	if lines == nil && o.passes.stopAfter == "" && len(o.passes.dumpAfter) == 0 && config.Debug == 0 {
		done = working(cmd, "compiling "+name)
	}
	manifest, step, err := o.compile(cmd, name, desc, config)
	done()
	if errors.Is(err, pass.ErrStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range config.Decide.List() {
		if !slices.ContainsFunc(step.Compiled.Decisions, func(used engine.Decision) bool { return used.Decision == d }) {
			note(cmd, "decision %q: no such value here, or the rule does not look at it", d)
		}
	}
	switch {
	case lines != nil:
		return lines.print(cmd, step.Compiled, renderer, o.json)
	case o.out == "" && o.passes.stopAfter != "":
		return usagef("compile: --stop-after %s: this compilation does not run the pass", o.passes.stopAfter)
	case o.out == "":
		return nil // forms were all that was asked for
	}
	return o.write(cmd, manifest, step, renderer)
}

// write writes the folder and says what is in it: on stderr where forms are on stdout,
// which are an archive that tgc opt reads.
func (o *compileFlags) write(cmd *cobra.Command, manifest *llm.Manifest, step *llm.CompiledStep, renderer *render.Renderer) error {
	manifest.Describe(step.Compiled, step.Binding)
	if err := manifest.Write(cmd.Context(), o.out, renderer, manifest); err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if len(o.passes.dumpAfter) > 0 && !o.json {
		w = cmd.ErrOrStderr()
	}
	if o.explain {
		if err := step.Compiled.Explain(w); err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(cmd, manifest)
	}
	return o.summarise(w, manifest)
}

// findTarget parses --target and finds its renderer.
func findTarget(name string) (*target.Desc, *render.Renderer, error) {
	desc, err := target.Parse(name)
	if err != nil {
		return nil, nil, usagef("--target: %v", err)
	}
	renderer, err := render.For(desc)
	return desc, renderer, err
}

func (o *compileFlags) summarise(w io.Writer, m *llm.Manifest) error {
	_, err := fmt.Fprintf(w, "%s: %d kernels, %d launches a step, %s of weights, %s in all, %s scratch\n",
		o.out, m.Unique, m.Launches, byteSize(m.WeightBytes), byteSize(m.Bytes), byteSize(m.Scratch))
	if err != nil {
		return err
	}
	rows := [][]string{{"KERNEL", "FILE", "LAUNCHES", "READ", "WRITTEN", "PLAN", "WHY"}}
	for i := range m.Kernels {
		k := &m.Kernels[i]
		rows = append(rows, []string{
			k.Name, k.File, fmt.Sprint(k.Launches), byteSize(k.BytesRead), byteSize(k.BytesWritten),
			strings.Join(k.Plan, "; "), k.Why,
		})
	}
	return printTable(w, rows)
}
