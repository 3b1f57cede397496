package ptx

import (
	"fmt"
	"math"
	"strings"

	"tgc/ir/program"
	"tgc/render/gpu"
	"tgc/target"
)

// Options are choices that do not change what a program computes.
type Options = gpu.Options

// Kernel is a rendered program and how to launch it.
type Kernel = gpu.Kernel

// Render prints a verified program for desc, a GPU. What PTX lacks is expanded
// here (gpu.Expand).
func Render(p *program.Program, desc *target.Desc, opt Options) (*Kernel, error) {
	if desc == nil || desc.Kind != target.GPU || desc.SM == 0 {
		return nil, fmt.Errorf("render/ptx: kernel %s: the target is no NVIDIA GPU", p.Name)
	}
	if err := program.VerifyGPU(p); err != nil {
		return nil, fmt.Errorf("render/ptx: %w", err)
	}
	basic := gpu.Expand(p, desc)
	r := &renderer{
		program: basic,
		source:  p,
		desc:    desc,
		opt:     opt,
		values:  make([]*held, basic.Values),
		bounds:  gpu.BoundsOf(basic),
		locals:  registerArrays(basic),
		sums:    make(gpu.Sums),
		origin:  make(map[*program.Value]*program.Value),
		bytes:   make(map[*program.Value]*program.Value),
		upper:   make(map[string]string),
		shifted: make(map[*program.Value]byteShift),
		offsets: gpu.ByteOffsets(basic),
		added:   make(map[*program.Value]*program.Value),
	}
	k, err := r.kernel()
	if err != nil {
		return nil, fmt.Errorf("render/ptx: kernel %s: %w", p.Name, err)
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

type renderer struct {
	program *program.Program // expanded
	source  *program.Program
	desc    *target.Desc
	opt     Options

	module strings.Builder // tables
	body   strings.Builder
	counts [numClasses]int // registers used
	labels int

	values   []*held
	bounds   map[*program.Value]gpu.Interval
	locals   map[*program.Value]*registerArray // of Allocas that need no memory
	sums     gpu.Sums
	origin   map[*program.Value]*program.Value // of casts from u8
	bytes    map[*program.Value]*program.Value // floats -> the packed bytes that they were
	upper    map[string]string                 // registers with the upper half of another: moved back, one mask
	shifted  map[*program.Value]byteShift
	scopes   gpu.Scopes[operand]
	offsets  map[*program.Value]gpu.Offset     // of conversions of bytes
	added    map[*program.Value]*program.Value // sums that a conversion holds already
	tables   map[*program.Value]*program.Param // by pointer
	access   map[*program.Value]*program.Param // buffers by pointer
	shared   int64                             // bytes laid out
	local    int64
	waited   bool                    // a WaitGrid was printed on every way to here
	blocks   operand                 // of the grid along z, read by the last wait
	barriers int                     // behind waits
	loops    int                     // open loops
	uniform  map[*program.Value]bool // conditions that are equal in a block
	waits    bool                    // the program has one
	consts   map[*program.Value]*program.Instr
}

const sharedSymbol, localSymbol = "shared_memory", "local_memory"

func (r *renderer) kernel() (*Kernel, error) {
	p := r.program
	r.tables = make(map[*program.Value]*program.Param)
	r.access = make(map[*program.Value]*program.Param)
	r.consts = make(map[*program.Value]*program.Instr)
	if p.Units() > math.MaxInt32 {
		return nil, fmt.Errorf("%d blocks, want at most %d", p.Units(), math.MaxInt32)
	}
	r.waits = gpu.HasOp(p.Body, program.WaitGrid)
	r.uniform = program.UniformBranches(p)
	k := &Kernel{Entry: gpu.EntryName(p.Name), Blocks: p.Units(), Block: gpu.BlockShape(p.Block), WaitsGrid: r.waits && r.desc.SM >= 90}
	r.scopes.Open()
	for i := range p.Params {
		r.param(k, i)
	}
	if err := r.block(p.Body); err != nil {
		return nil, err
	}
	r.scopes.Close()
	k.Shared, k.Dynamic = int(r.shared), r.shared > gpu.StaticShared
	if k.Shared > r.desc.SharedBytes {
		return nil, fmt.Errorf("%d bytes of shared memory, %s has %d a block", k.Shared, r.desc.Name, r.desc.SharedBytes)
	}
	k.Text = r.text(k)
	return k, nil
}

// text puts the module together around the body.
func (r *renderer) text(k *Kernel) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version %s\n.target %s\n.address_size 64\n\n", isaVersion(r.desc), gpu.Architecture(r.desc))
	b.WriteString(r.module.String())
	if k.Dynamic {
		fmt.Fprintf(&b, ".extern .shared .align 128 .b8 %s[];\n\n", sharedSymbol)
	}
	fmt.Fprintf(&b, ".visible .entry %s(", k.Entry)
	for i := range k.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n\t.param .u64 %s", paramName(k.Params[i]))
	}
	fmt.Fprintf(&b, ")\n.maxntid %d, %d, %d\n", k.Block[0], k.Block[1], k.Block[2])
	if r.opt.MinBlocks > 0 {
		fmt.Fprintf(&b, ".minnctapersm %d\n", r.opt.MinBlocks)
	}
	b.WriteString("{\n")
	for c, n := range r.counts {
		if n > 0 {
			fmt.Fprintf(&b, "\t.reg %s %s<%d>;\n", classes[c].directive, classes[c].prefix, n)
		}
	}
	if r.shared > 0 && !k.Dynamic {
		fmt.Fprintf(&b, "\t.shared .align 128 .b8 %s[%d];\n", sharedSymbol, r.shared)
	}
	if r.local > 0 {
		fmt.Fprintf(&b, "\t.local .align 16 .b8 %s[%d];\n", localSymbol, r.local)
	}
	b.WriteString(r.body.String())
	b.WriteString("\tret;\n}\n")
	return b.String()
}

func paramName(i int) string { return fmt.Sprintf("param_%d", i) }

// ins prints one instruction.
func (r *renderer) ins(format string, args ...any) {
	r.body.WriteByte('\t')
	fmt.Fprintf(&r.body, format, args...)
	r.body.WriteString(";\n")
}

func (r *renderer) label() string {
	r.labels++
	return fmt.Sprintf("L%d", r.labels)
}

func (r *renderer) place(label string) { r.body.WriteString(label + ":\n") }

func (r *renderer) param(k *Kernel, i int) {
	p := &r.program.Params[i]
	switch p.Kind {
	case program.ParamTable:
		r.table(i, p)
		return
	case program.ParamVar:
		k.Params = append(k.Params, i)
		v := operand{}
		if r.narrow(p.Value) {
			v = r.reg(word)
			r.ins("ld.param.b32 %s, [%s]", v.reg, paramName(i))
		} else {
			v = r.reg(wide)
			r.ins("ld.param.b64 %s, [%s]", v.reg, paramName(i))
		}
		r.values[p.Value.ID] = &held{lanes: []operand{v}}
		return
	}
	k.Params = append(k.Params, i)
	d := r.reg(wide)
	r.ins("ld.param.b64 %s, [%s]", d.reg, paramName(i))
	r.ins("cvta.to.global.u64 %s, %s", d.reg, d.reg)
	r.values[p.Value.ID] = &held{address: &address{base: d.reg}}
	r.access[p.Value] = p
}

// table puts constant bytes into the module. They are global rather than
// .const memory: the constant cache serves one address a cycle, and lanes look
// up different ones.
func (r *renderer) table(i int, p *program.Param) {
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
	d := r.reg(wide)
	r.ins("mov.u64 %s, %s", d.reg, name)
	r.values[p.Value.ID] = &held{address: &address{base: d.reg}}
	r.tables[p.Value] = p
}

// block renders the instructions of a block; yields are left to the caller.
func (r *renderer) block(b *program.Block) error { return gpu.Each(b, r.instr) }

func (r *renderer) instr(in *program.Instr) error {
	switch in.Op {
	case program.Const, program.ConstLanes, program.Iota:
		r.constant(in)
	case program.Alu:
		return r.alu(in)
	case program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat, program.FoldLanes:
		return r.movement(in)
	case program.PtrAdd:
		r.ptrAdd(in)
	case program.Load, program.Store, program.Gather, program.Scatter, program.Guarded, program.Prefetch, program.Alloca:
		return r.memory(in)
	case program.For:
		return r.loop(in)
	case program.If:
		return r.branch(in)
	case program.GridLoop:
		return r.grid(in)
	case program.Yield:
	default:
		return r.gpu(in)
	}
	return nil
}

// constant holds literals; registers are made where an instruction needs one.
func (r *renderer) constant(in *program.Instr) {
	r.consts[in.Result] = in
	var lanes []operand
	for _, bits := range gpu.ConstantBits(in) {
		lanes = append(lanes, operand{bits: bits})
	}
	r.set(in.Result, lanes)
}
