// Command orinmodel compiles the decode steps of some models for a Jetson AGX Orin (sm_87)
// and prints what their kernels are, and a model of their rate. It is a model: no kernel
// runs, and nobody has measured one of these steps on a board.
//
//	go run ./internal/orinmodel [-depth N] [-mode exact] [SHAPE..]
//
// The time of a kernel is the longer of two: that of its bytes at 102 GB/s, and that of
// its instructions if every scheduler issues one a cycle; instructions are those of the machine
// code where its loops have known lengths, else they are counted in the program. To that
// comes a time for every launch, which is a guess. Latency that too few warps leave bare is
// not in it: it says what is out of reach, not what is reached. docs/bench/orin-model.txt
// is its output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"

	"tgc/engine"
	"tgc/engine/traffic"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/render"
	"tgc/target"
)

// defaultShapes are those that are asked about most.
var defaultShapes = []string{"llama3.2:1b-q6_k", "qwen3:0.6b-q8_0", "qwen3:1.7b-q4_k_m", "olmoe:1b-7b-q4_k_m"}

// orin is what the model knows of the machine.
const (
	bandwidth       = 102 // bytes a ns, that others reached
	clock           = 1.3 // GHz
	multiprocessors = 16
	schedulers      = 4 // of a multiprocessor, each an instruction of a warp a cycle
	warpThreads     = 32
	// launchTime is from the end of a kernel to the first bytes of the next, in ns: the 680
	// of the target's description (target.Threads) and 700 of a load, both of an H200.
	launchTime = 1380

	residentThreads   = 1536 // of a multiprocessor
	residentBlocks    = 16
	residentRegisters = 65536
	residentShared    = 164 << 10
	ownShared         = 1 << 10 // of every block
	cacheRows         = 1024
)

func main() {
	depth := flag.Int("depth", 128, "position that is decoded")
	mode := flag.String("mode", "exact", "exact, i16 or int8")
	flag.Parse()
	shapes := flag.Args()
	if len(shapes) == 0 {
		shapes = defaultShapes
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, shapes, *mode, *depth); err != nil {
		fmt.Fprintln(os.Stderr, "orinmodel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, shapes []string, mode string, depth int) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "model\tlaunches\tkernels\tMB a step\tof weights\tinstr/weight\tregisters\tspilled B\toccupancy\tmodel: bytes alone\tmodel: bytes or instr.\tmodel: and launches\tmeasured elsewhere\t")
	for _, shape := range shapes {
		s, err := compile(ctx, shape, mode, depth)
		if err != nil {
			return fmt.Errorf("%s: %w", shape, err)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.1f\t%.2f\t%.0f\t%d\t%.0f %%\t%.1f\t%.1f\t%.1f\t%s\t\n", shape, s.launches, s.kernels, s.bytes/1e6, s.weightBytes/1e6,
			s.instructions/s.weights, s.registers/s.bytes, s.spilled, 100*s.occupancy/s.bytes, rate(s.bytesTime), rate(s.kernelTime), rate(s.kernelTime+launchTime*float64(s.launches)), measured[shape])
	}
	return w.Flush()
}

// measured are tokens a second that others measured on an AGX Orin: llama.cpp, and a
// compiler by its heuristic and after a search.
var measured = map[string]string{"llama3.2:1b-q6_k": "25.62 llama.cpp, 29.90 heuristic, 36.71 JITBEAM=4"}

// rate is tokens a second of a step of a number of nanoseconds.
func rate(ns float64) float64 { return 1e9 / ns }

// summary is a step. Registers and occupancy are weighed by bytes.
type summary struct {
	launches, kernels, spilled                int
	bytes, weightBytes, weights, instructions float64
	registers, occupancy                      float64
	bytesTime, kernelTime                     float64 // ns
}

// compile compiles a decode step and sums its kernels up.
func compile(ctx context.Context, name, mode string, depth int) (*summary, error) {
	shape, err := synth.Lookup(name)
	if err != nil {
		return nil, err
	}
	file, err := synth.Outline(ctx, shape)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	model, err := llm.NewModel(file)
	if err != nil {
		return nil, err
	}
	numeric, err := nn.ParseNumeric(mode)
	if err != nil {
		return nil, err
	}
	desc, err := target.Parse("ptx:sm_87")
	if err != nil {
		return nil, err
	}
	step, err := llm.CompileStep(ctx, model, llm.Variant{Batch: 1, Tokens: 1, Context: cacheRows, Numeric: numeric}, depth, desc, engine.Config{})
	if err != nil {
		return nil, err
	}
	r, err := render.For(desc)
	if err != nil {
		return nil, err
	}
	if r.Inspect == nil {
		return nil, fmt.Errorf("no ptxas: set TGC_CUDA_PATH to a CUDA toolkit")
	}
	var m engine.Manifest
	m.Describe(step.Compiled, step.Binding)
	s := &summary{launches: m.Launches, kernels: m.Unique, weightBytes: float64(m.WeightBytes)}
	for i := range m.Kernels {
		if err := s.add(ctx, r, &m.Kernels[i], step.Binding.Vars); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", m.Kernels[i].Name, err)
		}
	}
	return s, nil
}

// add adds the launches of a kernel.
func (s *summary) add(ctx context.Context, r *render.Renderer, k *engine.ManifestKernel, vars map[string]int64) error {
	whole, err := r.Inspect(ctx, k.Compiled().Program)
	if err != nil {
		return err
	}
	executed := 0.0
	parts := k.Compiled().Parts
	if len(parts) == 0 {
		parts = []*engine.Kernel{k.Compiled()}
	}
	for _, part := range parts {
		m, err := r.Inspect(ctx, part.Program)
		if err != nil {
			return err
		}
		if m.Executed > 0 {
			executed += float64(m.Executed * m.Threads)
			continue
		}
		const registerBytes = 4
		executed += traffic.Instructions(part.Program, vars, registerBytes)
	}
	n := float64(k.Launches)
	bytes := float64(k.MemoryBytes())
	issue := executed / (multiprocessors * schedulers * warpThreads * clock)
	s.bytes += n * bytes
	s.weights += n * float64(k.Weights())
	s.instructions += n * executed
	s.registers += n * bytes * float64(whole.Registers)
	s.occupancy += n * bytes * occupancy(k.Compiled().Program, whole.Registers)
	s.spilled = max(s.spilled, whole.Spilled)
	s.bytesTime += n * bytes / bandwidth
	s.kernelTime += n * max(bytes/bandwidth, issue)
	return nil
}

// occupancy is the share of a multiprocessor's threads that fit, by registers, threads,
// shared memory and the number of blocks.
func occupancy(p *program.Program, registers int) float64 {
	threads := int64(1)
	for _, n := range p.Block {
		threads *= n
	}
	ofWarp := (max(int64(registers), 1)*warpThreads + 255) / 256 * 256
	warps := (threads + warpThreads - 1) / warpThreads
	blocks := min(residentThreads/threads, residentRegisters/(ofWarp*warps), residentBlocks, residentShared/(program.SharedBytes(p)+ownShared))
	return float64(blocks*threads) / residentThreads
}
