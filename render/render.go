// Package render is the table of the languages that programs are printed in; a
// subpackage prints each.
package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tgc/internal/cudatools"
	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/render/cuda"
	"tgc/render/gpu"
	"tgc/render/llvm"
	"tgc/render/ptx"
	"tgc/target"
)

// Renderer prints programs for one target.
type Renderer struct {
	Extension string // of a file, ".ll"
	Source    func(p *program.Program) (string, error)
	// Annotated is Source with each instruction of the program as a comment before
	// what is made of it.
	Annotated func(p *program.Program) (string, error)
	// Lines is Source by lines, each with the instruction of the program.
	Lines func(p *program.Program) ([]Line, error)
	// Inspect reads figures off a program's machine code; nil where the target's
	// own tools are not installed.
	Inspect func(ctx context.Context, p *program.Program) (*gpu.Machine, error)
	// Assembly lists a program's machine code; nil like Inspect.
	Assembly func(ctx context.Context, p *program.Program) (string, error)
	// Machine is Assembly by lines, each with the instruction of the program; nil like
	// Inspect.
	Machine func(ctx context.Context, p *program.Program) ([]Line, error)
}

// language is one row.
type language struct {
	name      string // of targets, before the colon
	extension string
	source    func(p *program.Program, desc *target.Desc, annotate bool) (string, error)
	assembly  bool // NVIDIA's: ptxas reads figures off what ptx prints of the program
}

var languages = []language{
	{name: "llvm", extension: ".ll", source: func(p *program.Program, desc *target.Desc, annotate bool) (string, error) {
		if annotate {
			return llvm.Annotated(p, desc)
		}
		text, _, err := llvm.Render(p, desc)
		return text, err
	}},
	{name: "ptx", extension: ".ptx", source: kernelText(ptx.Render), assembly: true},
	{name: "cuda", extension: ".cu", source: kernelText(cuda.Render), assembly: true},
	{name: "interp", extension: ".prog", source: func(p *program.Program, _ *target.Desc, _ bool) (string, error) {
		return program.Print(p), nil
	}},
}

func kernelText(render func(*program.Program, *target.Desc, gpu.Options) (*gpu.Kernel, error)) func(*program.Program, *target.Desc, bool) (string, error) {
	return func(p *program.Program, desc *target.Desc, annotate bool) (string, error) {
		options := gpu.OptionsFor(p)
		options.Annotate = annotate
		k, err := render(p, desc, options)
		if err != nil {
			return "", err
		}
		return k.Text, nil
	}
}

// For returns the renderer of a target, which its name chooses: "ptx:sm_90" and
// "cuda:sm_90" are one GPU in two languages.
func For(desc *target.Desc) (*Renderer, error) {
	name, _, _ := strings.Cut(desc.Name, ":")
	for _, l := range languages {
		if l.name == name {
			return l.renderer(desc), nil
		}
	}
	return nil, fmt.Errorf("render: no language for target %s", desc.Name)
}

func (l *language) renderer(desc *target.Desc) *Renderer {
	r := &Renderer{
		Extension: l.extension,
		Source:    func(p *program.Program) (string, error) { return l.source(p, desc, false) },
		Annotated: func(p *program.Program) (string, error) { return l.source(p, desc, true) },
	}
	r.Lines = func(p *program.Program) ([]Line, error) {
		text, err := r.Annotated(p)
		return lists.Filter(splitAnnotated(text), func(l Line) bool { return !l.IsComment() }), err
	}
	tools := cudatools.FromEnvironment()
	if !l.assembly || tools.PtxasPath == "" {
		return r
	}
	assembly := kernelText(ptx.Render)
	r.Inspect = func(ctx context.Context, p *program.Program) (*gpu.Machine, error) {
		source, err := assembly(p, desc, false)
		if err != nil {
			return nil, err
		}
		return gpu.Inspect(ctx, tools, gpu.Architecture(desc), p, source)
	}
	if tools.NvdisasmPath == "" {
		return r
	}
	r.Machine = func(ctx context.Context, p *program.Program) ([]Line, error) {
		source, err := assembly(p, desc, true)
		if err != nil {
			return nil, err
		}
		return machineLines(ctx, tools, gpu.Architecture(desc), source)
	}
	r.Assembly = func(ctx context.Context, p *program.Program) (string, error) {
		source, err := assembly(p, desc, false)
		if err != nil {
			return "", err
		}
		made, err := tools.Ptxas(ctx, source, gpu.Architecture(desc))
		if errors.Is(err, cudatools.ErrArchitecture) {
			return "// " + err.Error(), nil
		}
		if err != nil {
			return "", err
		}
		list, err := tools.Nvdisasm(ctx, made.Cubin)
		if err != nil {
			return "", err
		}
		return list.Text, nil
	}
	return r
}
