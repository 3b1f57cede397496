package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/tools/txtar"

	"tgc/heuristic"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/pass"
	"tgc/rewrite"
	"tgc/schedule"
	"tgc/target"
)

// textPass runs a pass on a form in text.
type textPass func(ctx context.Context, name, text string, t *textTarget) (string, error)

// textTarget is what passes over text depend on beside the text.
type textTarget struct {
	desc   *target.Desc
	config *Config
}

// TextPasses lists what RunPass can run: every pass of the table, and before
// them the verifiers, canonicalisers and rule sets of package rewrite, which
// other passes use and which are no rows of their own.
func TextPasses() []pass.Info {
	return append(rewriteInfos(), passes...)
}

func rewriteInfos() []pass.Info {
	return lists.Map(rewrite.Passes(), func(p rewrite.Pass) pass.Info { return p.Info })
}

// RunPass runs one pass on a form in text, as a dump or a compiled kernel's file
// has it, and returns the form after it. A txtar archive with several parts
// gives one with a part for each.
func RunPass(ctx context.Context, name, text string, desc *target.Desc, config Config) (string, error) {
	run, err := findTextPass(name)
	if err != nil {
		return "", err
	}
	t := &textTarget{desc, &config}
	archive := txtar.Parse([]byte(text))
	if len(archive.Files) == 0 || name == mergePass {
		return run(ctx, name, text, t)
	}
	out := &txtar.Archive{}
	for _, part := range archive.Files {
		if strings.TrimSpace(string(part.Data)) == "" {
			continue // the heading of a dump with parts of its own
		}
		after, err := run(ctx, name, string(part.Data), t)
		if err != nil {
			return "", fmt.Errorf("%s: %w", part.Name, err)
		}
		out.Files = append(out.Files, txtar.File{Name: part.Name, Data: []byte(after)})
	}
	return string(txtar.Format(out)), nil
}

func findTextPass(name string) (textPass, error) {
	if _, ok := pass.Find(rewriteInfos(), name); ok {
		return runRewrite, nil
	}
	for i := range stages {
		if _, ok := pass.Find(stages[i].rows, name); ok {
			return stages[i].text, nil
		}
	}
	return nil, fmt.Errorf("engine: there is no pass %q", name)
}

func runRewrite(_ context.Context, name, text string, _ *textTarget) (string, error) {
	p, err := rewrite.PassByName(name)
	if err != nil {
		return "", err
	}
	a := ir.NewArena()
	root, err := ir.Parse(a, text)
	if err != nil {
		return "", err
	}
	if root, err = p.Run(a, root); err != nil {
		return "", err
	}
	return ir.Text(root), nil
}

func graphOnText(_ context.Context, _, text string, _ *textTarget) (string, error) {
	root, err := ir.Parse(ir.NewArena(), text)
	if err != nil {
		return "", err
	}
	return ir.Text(root), ir.VerifyTensor(root)
}

func scheduleOnText(ctx context.Context, name, text string, t *textTarget) (string, error) {
	options := schedule.OptionsFor(t.desc)
	options.Off = options.Off.With(t.config.Rules.List()...)
	return schedule.RunPass(ctx, ir.NewArena(), name, text, options)
}

// planLine begins the line of a kernel's text that holds its plan.
const planLine = "# plan: "

// kernelOnText names or plans one kernel.
func kernelOnText(_ context.Context, name, text string, t *textTarget) (string, error) {
	a := ir.NewArena()
	root, err := ir.Parse(a, text)
	if err != nil {
		return "", err
	}
	if err := ir.VerifyKernel(root); err != nil {
		return "", err
	}
	if name == "name-kernels" {
		root, _ = ir.Canonicalise(a, root)
		return ir.Text(root), nil
	}
	choice, err := heuristic.Choose(a, root, forWeights(root, t.desc, t.config), t.config.Knobs)
	if err != nil {
		return "", err
	}
	return plannedText(ir.Text(root), choice.Plan.Extend(root, t.config.With, t.desc)), nil
}

// plannedText is the text of a kernel with its plan.
func plannedText(kernel string, p plan.Plan) string {
	return planLine + p.String() + "\n" + kernel
}

// lowerOnText runs a pass between a plan and a finished program. Packed buffers have
// the layout that the compiler gives them on the target.
func lowerOnText(ctx context.Context, name, text string, t *textTarget) (string, error) {
	desc := t.desc
	if p, ok := pass.Find(kernel.Passes(), name); ok && p.From != pass.Program {
		st, err := shape.Parse(ir.NewArena(), text, desc)
		if err != nil {
			return "", err
		}
		desc = forWeights(st.Sink, desc, t.config)
	}
	return kernel.RunPass(ctx, name, text, desc)
}

// mergePass is the pass over several programs together.
const mergePass = "merge-launches"

// launchOnText merges the programs of an archive, whose parameters are numbered
// one program after the other.
func launchOnText(_ context.Context, _, text string, t *textTarget) (string, error) {
	var programs []*program.Program
	var slots []int
	for _, part := range txtar.Parse([]byte(text)).Files {
		if strings.TrimSpace(string(part.Data)) == "" {
			continue
		}
		p, err := program.Parse(string(part.Data))
		if err != nil {
			return "", fmt.Errorf("%s: %w", part.Name, err)
		}
		programs, slots = append(programs, p), append(slots, buffers(p))
	}
	if len(programs) < 2 {
		return "", errors.New("want a txtar archive of two programs or more, which make one launch")
	}
	merged := opt.MergeGrids("merged", programs, slots)
	if merged == nil {
		return "", errors.New("clusters of different sizes")
	}
	if err := program.VerifyGPU(merged); err != nil {
		return "", err
	}
	return program.Print(merged), nil
}

// buffers is how many buffer parameters a program has.
func buffers(p *program.Program) (n int) {
	for _, param := range p.Params {
		if param.Kind == program.ParamBuffer {
			n = max(n, param.Slot+1)
		}
	}
	return n
}
