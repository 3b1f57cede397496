package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"tgc/internal/atomicfile"
	"tgc/internal/lists"
	"tgc/internal/viz"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/llm/bench"
	"tgc/pass"
	"tgc/render"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/devices"
	"tgc/target"
)

// vizFlags are the flags of viz.
type vizFlags struct {
	stepFlags
	out     string
	kernel  string
	times   string
	measure string
}

func newViz() *cobra.Command {
	var o vizFlags
	cmd := &cobra.Command{
		Use:   "viz MODEL.gguf|SHAPE|GRAPH.uop [--target T] -o FILE.html",
		Short: "Show what the compiler did, as one page for a browser",
		Long: "Compile one step of a model, or a graph in the IR's text form, and write a page that shows\n" +
			"every form side by side (graph, values, kernels, programs, source, machine code), each\n" +
			"rewrite that fired with the form before and after it and the rules behind it, and each\n" +
			"kernel's plan with its reason, candidates, price and time. Click a line to follow it\n" +
			"through all forms; / searches, ? lists the keys.\n" +
			"The page is one file that needs no network. Times are those that `tgc bench --kernels\n" +
			"--json` printed (--times), or measured now on a device (--measure). A model of one layer\n" +
			"has the kernels of all its layers.",
		Example: "  tgc viz tiny --target ptx:sm_90 -o tiny.html\n" +
			"  tgc viz llama:d=2048,layers=1,heads=32,kv=8,ff=8192,vocab=128256,quant=q6_k -o layer.html\n" +
			"  tgc viz model.gguf --step prefill --tokens 128 --target llvm --kernel reduce_512_r_256 -o page.html\n" +
			"  tgc viz tiny --ctx 512 --measure cpu -o tiny.html",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.stepFlags.register(f)
	f.Lookup("target").Usage += " (default: that of the best device present)"
	f.StringVarP(&o.out, "output", "o", "", "file to write")
	f.StringVar(&o.kernel, "kernel", "", "show this kernel alone")
	f.StringVar(&o.times, "times", "", "file with what tgc bench --kernels --json printed")
	f.StringVar(&o.measure, "measure", "", "time the kernels on this device: "+devices.Names())
	return cmd
}

func (o *vizFlags) run(cmd *cobra.Command, name string) error {
	switch {
	case o.out == "":
		return usagef("viz: -o FILE.html is missing")
	case o.times != "" && o.measure != "":
		return usagef("viz: one of --times and --measure")
	case o.measure != "" && isGraph(name):
		return usagef("viz: --measure is for models")
	case o.measure != "" && o.target != "":
		return usagef("viz: --measure compiles for its device: leave out --target")
	}
	if err := o.check(cmd); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100) // each rewrite prints whole forms: there is more garbage than elsewhere
	}
	desc, renderer, err := o.findTarget(cmd)
	if err != nil {
		return err
	}
	times, err := o.readTimes(cmd, name)
	if err != nil {
		return err
	}
	config, err := readConfig(cmd)
	if err != nil {
		return err
	}
	watch := viz.NewWatch()
	config.Control, config.Explain = new(pass.Control), true
	watch.Control(config.Control)
	manifest, step, err := o.compile(cmd, name, desc, config)
	if err != nil {
		return err
	}
	machine, stop := machineOf(cmd, desc, renderer)
	defer stop()
	manifest.Describe(step.Compiled, step.Binding)
	page, err := viz.Build(cmd.Context(), watch, step.Compiled, &manifest.Manifest, renderer,
		viz.Options{Title: manifest.Model, About: about(manifest), Kernel: o.kernel, Machine: machine, Times: times})
	if err != nil {
		return err
	}
	return o.write(cmd, page)
}

func (o *vizFlags) write(cmd *cobra.Command, page *viz.Page) error {
	var out bytes.Buffer
	if err := page.Write(&out); err != nil {
		return err
	}
	if err := atomicfile.Write(o.out, out.Bytes()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %d kernels, %d rewrites, %s\n", o.out, len(page.Kernels), len(page.Steps), byteSize(int64(out.Len())))
	return err
}

// about says what was compiled.
func about(m *llm.Manifest) [][2]string {
	list := [][2]string{{"step", m.Step}, {"target", m.Target}, {"mode", m.Mode}}
	if m.Tokens > 0 {
		list = append(list, [2]string{"tokens", fmt.Sprint(m.Tokens)}, [2]string{"cache", fmt.Sprint(m.Ctx)})
	}
	return list
}

// findTarget is that of --target, of --measure, or of the best device present.
func (o *vizFlags) findTarget(cmd *cobra.Command) (*target.Desc, *render.Renderer, error) {
	if o.target != "" {
		return findTarget(o.target)
	}
	device := deviceFlags{name: o.measure}
	dev, _, err := device.open(cmd)
	if err != nil {
		return nil, nil, err
	}
	defer dev.Close()
	renderer, err := render.For(dev.Target())
	return dev.Target(), renderer, err
}

// readTimes are the times of kernels, by name, from a file or a device.
func (o *vizFlags) readTimes(cmd *cobra.Command, name string) (map[string]viz.Time, error) {
	switch {
	case o.measure != "":
		return o.measured(cmd, name)
	case o.times == "":
		return nil, nil
	}
	f, err := os.Open(o.times)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	times := make(map[string]viz.Time)
	for d := json.NewDecoder(f); ; {
		var r bench.Result
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.times, err)
		}
		o.add(times, &r)
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("%s: no kernels of a %s step: want what tgc bench --kernels --json prints", o.times, o.step)
	}
	return times, nil
}

// add takes the kernels of the step that is shown; those of the first device count.
func (o *vizFlags) add(times map[string]viz.Time, r *bench.Result) {
	list := r.Kernels
	if o.step == "prefill" {
		list = r.PromptKernels
	}
	for _, k := range list {
		if _, known := times[k.Name]; !known {
			times[k.Name] = viz.Time{Count: max(k.Count, 1), Time: k.Time, Share: k.Share, Rate: k.Rate, Fraction: k.Fraction, GFLOPS: k.GFLOPS}
		}
	}
}

// measured times the kernels of the step on a device.
func (o *vizFlags) measured(cmd *cobra.Command, name string) (map[string]viz.Time, error) {
	flags := benchFlags{device: deviceFlags{mode: o.mode, kv: o.kv}, options: bench.Options{
		Batch: o.batch, Decode: 1, Depth: o.depth, Repeats: 1, Context: o.context, Kernels: true}}
	if o.step == "prefill" {
		flags.options.Prompt = o.tokens
	}
	r, err := flags.measure(cmd, name, o.measure)
	if err != nil {
		return nil, err
	}
	times := make(map[string]viz.Time)
	o.add(times, r)
	return times, nil
}

// machineOf lists machine code of a CPU; nil leaves it to the renderer. Without libLLVM, or
// for a CPU of another kind, there is none.
func machineOf(cmd *cobra.Command, desc *target.Desc, renderer *render.Renderer) (list func(context.Context, *program.Program) ([]render.Line, error), stop func()) {
	cpu, isCPU := strings.CutPrefix(desc.Name, "llvm:")
	stop = func() {}
	if !isCPU {
		return nil, stop
	}
	compiler, err := assembler(cmd.Context(), cpu)
	if err != nil {
		note(cmd, "no machine code: %v", err)
		return nil, stop
	}
	return func(ctx context.Context, p *program.Program) ([]render.Line, error) {
		source, err := renderer.Source(p)
		if err != nil {
			return nil, err
		}
		of, err := renderer.Lines(p)
		if err != nil {
			return nil, err
		}
		code, err := compiler.Assemble(ctx, []byte(source))
		if err != nil {
			return nil, err
		}
		return lists.Map(code, func(l llvmc.AssemblyLine) render.Line {
			line := render.Line{Text: l.Text}
			if 0 < l.Line && l.Line <= len(of) {
				line.Of = of[l.Line-1].Of
			}
			return line
		}), nil
	}, func() { _ = compiler.Close() }
}

// assembler is a compiler for a CPU that a target names, which gives assembler text.
func assembler(ctx context.Context, cpu string) (*llvmc.Compiler, error) {
	host, err := llvmc.Start(ctx, llvmc.Options{Assembly: true, Workers: 1})
	if err != nil {
		return nil, err
	}
	name, features, _ := strings.Cut(cpu, "+")
	if name == host.Host().CPU {
		return host, nil
	}
	_ = host.Close()
	if !strings.HasPrefix(name, "x86-64") || runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("this machine is no %s", name)
	}
	if features = "+" + strings.ReplaceAll(features, "+", ",+"); features == "+" {
		features = llvmc.NoFeatures
	}
	return llvmc.Start(ctx, llvmc.Options{CPU: name, Features: features, Assembly: true, Workers: 1})
}
