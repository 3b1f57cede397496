package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"tgc/engine/traffic"
	"tgc/internal/atomicfile"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/packed"
	"tgc/render"
	"tgc/render/gpu"
	"tgc/schedule"
)

// Role is what a buffer is for. Who describes a graph says it of the graph's own
// buffers (BufferUse); those that the compiler adds are RoleScratch and RoleVar.
type Role string

// The roles, as manifest.json spells them.
const (
	RoleWeight  Role = "weight" // constant over all runs, and too large to stay in the device's caches
	RoleState   Role = "cache"  // kept from run to run, read from memory in each
	RoleInput   Role = "input"
	RoleOutput  Role = "output"
	RoleScratch Role = "scratch" // a temporary between two kernels
	RoleVar     Role = "var"
)

// BufferUse is what the user of a graph says about a buffer.
type BufferUse struct {
	Name string
	Role Role
}

// Binding is what a compiled graph is described with: its buffers by ID and the
// values of its VARs.
type Binding struct {
	Vars    map[string]int64
	Buffers map[int64]BufferUse
}

// Manifest describes the kernels of a compiled step: the part of manifest.json
// that needs no word on what the step is for.
type Manifest struct {
	Kernels   []ManifestKernel   `json:"kernels"`
	Decisions []ManifestDecision `json:"decisions"` // of the schedule, that prices have not made

	Launches    int   `json:"launches_per_step"`
	Unique      int   `json:"unique_kernels"`
	WeightBytes int64 `json:"weight_bytes_per_step"`
	Bytes       int64 `json:"bytes_per_step"`
	Scratch     int64 `json:"scratch_bytes"`
}

// ManifestDecision is what a rule was told to do with a value.
type ManifestDecision struct {
	Decision string `json:"decision"` // as TGC_DECIDE takes it
	Origin   Origin `json:"origin"`
}

// ManifestKernel is one unique kernel. Its arguments are those of its first
// launch.
type ManifestKernel struct {
	Name         string        `json:"name"`
	File         string        `json:"file"`
	Launches     int           `json:"launches"`
	Grid         []int64       `json:"grid"`
	Block        []int64       `json:"block"`
	SharedBytes  int64         `json:"shared_bytes"`
	Args         []ManifestArg `json:"args"`
	BytesRead    int64         `json:"bytes_read"`
	BytesWritten int64         `json:"bytes_written"`
	Flops        int64         `json:"flops"`
	Plan         []string      `json:"plan"`
	Origin       Origin        `json:"origin"` // of the plan; of parts that differ, joined by +
	Why          string        `json:"why"`
	Uops         string        `json:"uops"`

	// Figures of the machine code, where the target's tools were found: registers
	// of a thread, bytes spilled, and instructions executed for each weight that
	// the kernel reads.
	Registers      int     `json:"registers,omitempty"`
	SpilledBytes   int     `json:"spilled_bytes,omitempty"`
	InstrPerWeight float64 `json:"instr_per_weight,omitempty"`

	kernel *Kernel
	// Bytes that one launch reads of arguments that must come from memory.
	weightBytes, stateBytes int64
	weights                 int64 // values in weightBytes
}

// ManifestArg is an argument of a kernel.
type ManifestArg struct {
	Name   string `json:"name"`
	Role   Role   `json:"role"`
	DType  string `json:"dtype"`
	Format string `json:"format,omitempty"` // packed format
	Bytes  int64  `json:"bytes"`
	Access string `json:"access"`
}

// Describe fills in the kernels and the totals of a manifest.
func (m *Manifest) Describe(c *Compiled, b Binding) {
	index := make(map[*Kernel]int)
	m.Kernels, m.Decisions = make([]ManifestKernel, 0, len(c.Kernels)), []ManifestDecision{}
	for _, d := range c.Decisions {
		m.Decisions = append(m.Decisions, ManifestDecision{d.String(), d.Origin})
	}
	for _, calls := range c.Launches {
		for _, call := range calls {
			i, ok := index[call.Kernel]
			if !ok {
				i = len(m.Kernels)
				index[call.Kernel] = i
				m.Kernels = append(m.Kernels, describeKernel(c, b, call))
			}
			k := &m.Kernels[i]
			k.Launches++
			m.WeightBytes += k.weightBytes
			m.Bytes += k.BytesRead + k.BytesWritten
		}
	}
	m.Launches, m.Unique, m.Scratch = len(c.Launches), len(c.Kernels), c.Schedule.ArenaBytes
}

// MemoryBytes is the number of bytes that a step must read from memory: weights
// and state. Other buffers are small and stay in the device's caches.
func (m *Manifest) MemoryBytes() int64 {
	n := int64(0)
	for i := range m.Kernels {
		k := &m.Kernels[i]
		n += int64(k.Launches) * (k.weightBytes + k.stateBytes)
	}
	return n
}

// MemoryBytes is Manifest.MemoryBytes of one launch of the kernel.
func (k *ManifestKernel) MemoryBytes() int64 { return k.weightBytes + k.stateBytes }

// Weights is the number of values of weights that one launch reads.
func (k *ManifestKernel) Weights() int64 { return k.weights }

// Compiled is the kernel that is described.
func (k *ManifestKernel) Compiled() *Kernel { return k.kernel }

func describeKernel(c *Compiled, b Binding, call Call) ManifestKernel {
	k := call.Kernel
	t := traffic.Of(c.arena, k.AST, b.Vars)
	m := ManifestKernel{
		Name: k.Name, Grid: threeAxes(k.Program.Grid), Block: threeAxes(k.Program.Block),
		SharedBytes: program.SharedBytes(k.Program), Flops: t.Flops, Plan: []string{}, Origin: k.origin(), Why: k.Why, kernel: k,
	}
	m.BytesRead, m.BytesWritten = t.Bytes()
	m.Plan = planText(k)
	for slot, buffer := range call.Args {
		arg := describeArg(c, b, buffer, t.Args[slot])
		m.Args = append(m.Args, arg)
		switch arg.Role {
		case RoleWeight:
			m.weightBytes += t.Args[slot].Read
			m.weights += valuesIn(&c.Schedule.Buffers[buffer], t.Args[slot].Read)
		case RoleState:
			m.stateBytes += t.Args[slot].Read
		}
	}
	for _, p := range k.Program.Params {
		if p.Kind == program.ParamVar {
			m.Args = append(m.Args, ManifestArg{Name: p.Name, Role: RoleVar, DType: ir.I64.String(), Bytes: 8, Access: "r"})
		}
	}
	return m
}

// valuesIn is the number of values in some bytes of a buffer.
func valuesIn(b *schedule.Buffer, bytes int64) int64 {
	if f, ok := packed.Lookup(b.Format); ok {
		return bytes * int64(f.BlockElems) / int64(f.BlockBytes)
	}
	return bytes / int64(max(b.DType.Size(), 1))
}

// planText lists the Opts of a plan, each of a merged launch with the number of
// its part.
func planText(k *Kernel) []string {
	list := []string{}
	for _, opt := range k.Plan.Opts {
		list = append(list, opt.String())
	}
	for i, part := range k.Parts {
		for _, opt := range part.Plan.Opts {
			list = append(list, fmt.Sprintf("K%d: %s", i+1, opt))
		}
	}
	return list
}

func describeArg(c *Compiled, b Binding, buffer int, t traffic.Arg) ManifestArg {
	info := &c.Schedule.Buffers[buffer]
	arg := ManifestArg{
		Name: fmt.Sprintf("t%d", buffer), Role: RoleScratch,
		DType: info.DType.String(), Format: info.Format, Bytes: t.Size,
	}
	if info.UserID >= 0 {
		use := b.Buffers[info.UserID]
		arg.Name, arg.Role = use.Name, use.Role
	}
	if t.Reads {
		arg.Access = "r"
	}
	if t.Writes {
		arg.Access += "w"
	}
	return arg
}

// threeAxes fills a grid up to the three axes that launches have.
func threeAxes(grid []int64) []int64 {
	out := append([]int64{}, grid...)
	for len(out) < 3 {
		out = append(out, 1)
	}
	return out
}

// Bind describes the buffers of a graph of which nothing else is known, as of a
// .uop file: packed buffers are weights, what is only read is an input, what is
// only written an output, what is both is state.
func Bind(c *Compiled, vars map[string]int64) Binding {
	b := Binding{Vars: vars, Buffers: make(map[int64]BufferUse)}
	reads, writes := make(map[int64]bool), make(map[int64]bool)
	for _, calls := range c.Launches {
		for _, call := range calls {
			t := traffic.Of(c.arena, call.Kernel.AST, vars)
			for slot, buffer := range call.Args {
				id := c.Schedule.Buffers[buffer].UserID
				reads[id] = reads[id] || t.Args[slot].Reads
				writes[id] = writes[id] || t.Args[slot].Writes
			}
		}
	}
	for _, info := range c.Schedule.Buffers {
		role := RoleInput
		switch {
		case info.Format != "":
			role = RoleWeight
		case writes[info.UserID] && reads[info.UserID]:
			role = RoleState
		case writes[info.UserID]:
			role = RoleOutput
		}
		if info.UserID >= 0 {
			b.Buffers[info.UserID] = BufferUse{Name: fmt.Sprintf("buffer%d", info.UserID), Role: role}
		}
	}
	return b
}

// manifestName is written last: a folder that has it is complete.
const manifestName = "manifest.json"

// Write writes the kernels and manifest.json to a folder, which is made if it
// does not exist. Files of an earlier manifest there that this one does not have
// are removed. The JSON is that of whole: m itself, or what embeds it and says
// more.
func (m *Manifest) Write(ctx context.Context, dir string, r *render.Renderer, whole any) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old := oldFiles(dir)
	for i := range m.Kernels {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := &m.Kernels[i]
		k.File, k.Uops = fmt.Sprintf("k%03d%s", i, r.Extension), fmt.Sprintf("k%03d.uop", i)
		source, err := r.Source(k.kernel.Program)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		if err := k.inspect(ctx, r); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		var uops bytes.Buffer
		if err := ir.Print(&uops, k.kernel.AST); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		for name, data := range map[string][]byte{k.File: []byte(source), k.Uops: uops.Bytes()} {
			delete(old, name)
			if err := atomicfile.Write(filepath.Join(dir, name), data); err != nil {
				return err
			}
		}
	}
	for name := range old {
		_ = os.Remove(filepath.Join(dir, name)) // a stale file does no harm
	}
	return writeManifest(filepath.Join(dir, manifestName), whole)
}

// inspect fills in the figures of the machine code. Of a merged kernel the
// parts are read one by one, for a block executes one of them.
func (k *ManifestKernel) inspect(ctx context.Context, r *render.Renderer) error {
	if r.Inspect == nil {
		return nil
	}
	whole, err := r.Inspect(ctx, k.kernel.Program)
	if err != nil {
		return err
	}
	k.Registers, k.SpilledBytes = whole.Registers, whole.Spilled
	machines := []*gpu.Machine{whole}
	if len(k.kernel.Parts) > 0 {
		machines = nil
		for _, part := range k.kernel.Parts {
			m, err := r.Inspect(ctx, part.Program)
			if err != nil {
				return err
			}
			machines = append(machines, m)
		}
	}
	executed := int64(0)
	for _, m := range machines {
		if m.Executed == 0 {
			return nil
		}
		executed += m.Executed * m.Threads
	}
	if k.weights > 0 {
		k.InstrPerWeight = math.Round(100*float64(executed)/float64(k.weights)) / 100
	}
	return nil
}

func writeManifest(path string, whole any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(whole); err != nil {
		return err
	}
	return atomicfile.Write(path, text.Bytes())
}

// oldFiles lists what the manifest of an earlier compilation names in a folder.
func oldFiles(dir string) map[string]bool {
	files := make(map[string]bool)
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	var m Manifest
	if err != nil || json.Unmarshal(data, &m) != nil {
		return files
	}
	for _, k := range m.Kernels {
		for _, name := range []string{k.File, k.Uops} {
			if name == filepath.Base(name) && strings.HasPrefix(name, "k") {
				files[name] = true
			}
		}
	}
	return files
}
