package ptx

import (
	"fmt"
	"strings"

	"tgc/ir/program"
	"tgc/render/gpu"
	"tgc/target"
)

// Options are choices that do not change what a program computes.
type Options = gpu.Options

// Kernel is a rendered program and how to launch it.
type Kernel = gpu.Kernel

// Render prints a program for desc, a GPU.
func Render(p *program.Program, desc *target.Desc, opt Options) (*Kernel, error) {
	k, err := gpu.Render(p, desc, opt, func(s *gpu.Selector) gpu.Printer {
		return &printer{Selector: s, upper: make(map[string]string)}
	})
	if err != nil {
		return nil, fmt.Errorf("render/ptx: %w", err)
	}
	return k, nil
}

// isaRows give the PTX version that an architecture needs, at least 7.4: cache
// policies without L1. ISA versions are those of PTX's release notes.
var isaRows = []struct {
	sm      int
	special bool
	version string
}{
	{75, false, "7.4"}, {89, false, "7.8"}, {90, true, "8.0"}, {100, false, "8.6"}, {103, false, "8.8"}, {120, false, "8.7"}, {121, false, "8.8"},
}

func isaVersion(desc *target.Desc) string {
	version := ""
	for _, row := range isaRows {
		if desc.SM >= row.sm && (!row.special || desc.Special && desc.SM == row.sm) {
			version = row.version
		}
	}
	return version
}

// printer is a gpu.Printer.
type printer struct {
	*gpu.Selector

	module strings.Builder // tables
	body   strings.Builder
	counts [numClasses]int // registers used
	labels int

	upper    map[string]string // registers with the upper half of another: moved back, one mask
	blocks   operand           // of the grid along z, read by the last wait
	barriers int               // after waits
	loops    int               // open loops
}

// Simplify: ptxas keeps masks and byte permutes as they are.
func (r *printer) Simplify() bool { return true }

// Text puts the module together around the body.
func (r *printer) Text(k *Kernel) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version %s\n.target %s\n.address_size 64\n\n", isaVersion(r.Desc), gpu.Architecture(r.Desc))
	b.WriteString(r.module.String())
	b.WriteString(k.CarveoutComment())
	if k.Dynamic {
		fmt.Fprintf(&b, ".extern .shared .align %d .b8 %s[];\n\n", r.SharedAlign(), gpu.SharedMemory)
	}
	fmt.Fprintf(&b, ".visible .entry %s(", k.Entry)
	for i := range k.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n\t.param .u64 %s", paramName(k.Params[i]))
	}
	fmt.Fprintf(&b, ")\n.maxntid %d, %d, %d\n", k.Block[0], k.Block[1], k.Block[2])
	if k.Cluster > 1 {
		fmt.Fprintf(&b, ".explicitcluster\n.reqnctapercluster %d, 1, 1\n", k.Cluster)
	}
	if r.Options.MinBlocks > 0 {
		fmt.Fprintf(&b, ".minnctapersm %d\n", r.Options.MinBlocks)
	}
	if r.Options.MaxRegisters > 0 {
		fmt.Fprintf(&b, ".maxnreg %d\n", r.Options.MaxRegisters)
	}
	b.WriteString("{\n")
	for c, n := range r.counts {
		if n > 0 {
			fmt.Fprintf(&b, "\t.reg %s %s<%d>;\n", classes[c].directive, classes[c].prefix, n)
		}
	}
	if r.SharedBytes > 0 && !k.Dynamic {
		fmt.Fprintf(&b, "\t.shared .align %d .b8 %s[%d];\n", r.SharedAlign(), gpu.SharedMemory, r.SharedBytes)
	}
	if r.LocalBytes > 0 {
		fmt.Fprintf(&b, "\t.local .align 16 .b8 %s[%d];\n", gpu.LocalMemory, r.LocalBytes)
	}
	b.WriteString(r.body.String())
	b.WriteString("\tret;\n}\n")
	return b.String()
}

func paramName(i int) string { return fmt.Sprintf("param_%d", i) }

// ins prints one instruction.
func (r *printer) ins(format string, args ...any) {
	r.body.WriteByte('\t')
	fmt.Fprintf(&r.body, format, args...)
	r.body.WriteString(";\n")
}

// Comment is a line of its own.
func (r *printer) Comment(text string) { r.body.WriteString("\t// " + text + "\n") }

func (r *printer) label() string {
	r.labels++
	return fmt.Sprintf("L%d", r.labels)
}

func (r *printer) place(label string) { r.body.WriteString(label + ":\n") }

// Scalar loads a parameter.
func (r *printer) Scalar(i int, t gpu.Type) operand {
	v := r.reg(t)
	r.ins("ld.param.b%d %s, [%s]", t.Bits(), v.Name, paramName(i))
	return v
}

// Buffer loads a parameter.
func (r *printer) Buffer(i int) string {
	d := r.Scalar(i, gpu.U64)
	r.ins("cvta.to.global.u64 %s, %s", d.Name, d.Name)
	return d.Name
}

// Table puts constant bytes into the module. They are global rather than
// .const memory: the constant cache serves one address a cycle, and lanes look
// up different ones.
func (r *printer) Table(i int, p *program.Param) string {
	name := fmt.Sprintf("table_%d", i)
	fmt.Fprintf(&r.module, ".global .align %d .b8 %s[%d] = {", min(max(p.Align, 16), 128), name, max(len(p.Table), 1))
	for j := range max(len(p.Table), 1) {
		if j > 0 {
			r.module.WriteString(", ")
		}
		c := byte(0)
		if j < len(p.Table) {
			c = p.Table[j]
		}
		fmt.Fprintf(&r.module, "%d", c)
	}
	r.module.WriteString("};\n\n")
	d := r.reg(gpu.U64)
	r.ins("mov.u64 %s, %s", d.Name, name)
	return d.Name
}
