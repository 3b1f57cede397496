package cuda

import (
	"fmt"
	"strings"

	"tgc/ir/program"
	"tgc/render/gpu"
	"tgc/target"
)

// Render prints a program for desc, a GPU.
func Render(p *program.Program, desc *target.Desc, opt gpu.Options) (*gpu.Kernel, error) {
	k, err := gpu.Render(p, desc, opt, func(s *gpu.Selector) gpu.Printer {
		return &printer{Selector: s, counts: make(map[string]int), used: make(map[string]bool)}
	})
	if err != nil {
		return nil, fmt.Errorf("render/cuda: %w", err)
	}
	return k, nil
}

// printer is a gpu.Printer.
type printer struct {
	*gpu.Selector

	body   strings.Builder
	module strings.Builder // tables
	counts map[string]int  // variables, by prefix
	used   map[string]bool // helpers
	depth  int             // of braces inside of the kernel's
}

// Simplify: the compiler knows which bits are 0.
func (r *printer) Simplify() bool { return false }

// Text puts the translation unit together around the body.
func (r *printer) Text(k *gpu.Kernel) string {
	var b strings.Builder
	r.helpers(&b)
	b.WriteString(r.module.String())
	b.WriteString(k.CarveoutComment())
	if k.Dynamic {
		fmt.Fprintf(&b, "extern __shared__ __align__(%d) char %s[];\n\n", r.SharedAlign(), gpu.SharedMemory)
	}
	threads := k.Block[0] * k.Block[1] * k.Block[2]
	limits := fmt.Sprint(threads)
	blocks := r.Options.MinBlocks
	if n := r.Options.MaxRegisters * threads; n > 0 { // as many as leave a thread no more
		blocks = (gpu.Registers + n - 1) / n
	}
	if blocks > 0 {
		limits += fmt.Sprintf(", %d", blocks)
	}
	cluster := ""
	if k.Cluster > 1 {
		cluster = fmt.Sprintf("__cluster_dims__(%d, 1, 1) ", k.Cluster)
	}
	fmt.Fprintf(&b, "extern \"C\" __global__ void %s__launch_bounds__(%s) %s(", cluster, limits, k.Entry)
	for n, i := range k.Params {
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.parameter(i))
	}
	b.WriteString(")\n{\n")
	if r.SharedBytes > 0 && !k.Dynamic {
		fmt.Fprintf(&b, "\t__shared__ __align__(%d) char %s[%d];\n", r.SharedAlign(), gpu.SharedMemory, r.SharedBytes)
	}
	if r.LocalBytes > 0 {
		fmt.Fprintf(&b, "\t__align__(16) char %s[%d];\n", gpu.LocalMemory, r.LocalBytes)
	}
	b.WriteString(r.body.String())
	b.WriteString("}\n")
	return b.String()
}

// line prints a line of the body.
func (r *printer) line(format string, args ...any) {
	r.body.WriteString(strings.Repeat("\t", r.depth+1))
	fmt.Fprintf(&r.body, format, args...)
	r.body.WriteByte('\n')
}

// Comment is a line of its own.
func (r *printer) Comment(text string) { r.line("// %s", text) }

// begin and end print the braces around a block and keep its scope.
func (r *printer) begin(format string, args ...any) {
	r.line(format+" {", args...)
	r.depth++
	r.Open()
}

func (r *printer) end(closing string) {
	r.Close()
	r.depth--
	r.line("%s", closing)
}

func parameterName(i int) string { return fmt.Sprintf("p%d", i) }

// parameter declares a parameter. Pointers are to bytes, and are not restrict:
// the compiler would take that for leave to read what a previous kernel writes
// through the cache for constants.
func (r *printer) parameter(i int) string {
	switch p := &r.Program.Params[i]; {
	case p.Kind == program.ParamVar:
		return "long long " + parameterName(i)
	case p.Write:
		return "char* " + parameterName(i)
	}
	return "const char* " + parameterName(i)
}

// Scalar is a parameter, converted to a shorter type.
func (r *printer) Scalar(i int, t gpu.Type) operand {
	return r.Hold(operand{Name: parameterName(i), Type: gpu.I64}, t)
}

// Buffer is a parameter.
func (r *printer) Buffer(i int) string { return parameterName(i) }

// Table puts constant bytes into the module. They are global rather than
// __constant__: that cache serves one address a cycle, and lanes look up
// different ones.
func (r *printer) Table(i int, p *program.Param) string {
	name := fmt.Sprintf("table_%d", i)
	fmt.Fprintf(&r.module, "static __device__ const __align__(%d) unsigned char %s[%d] = {", min(max(p.Align, 16), 128), name, max(len(p.Table), 1))
	for j, c := range []byte(p.Table) {
		switch {
		case j%16 == 0:
			r.module.WriteString("\n\t")
		default:
			r.module.WriteByte(' ')
		}
		fmt.Fprintf(&r.module, "%d,", c)
	}
	r.module.WriteString("\n};\n\n")
	base := r.name("t")
	r.line("const char* %s = (const char*)%s;", base, name)
	return base
}
