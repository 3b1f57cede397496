package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/llm"
	"tgc/nn"
	"tgc/runtime"
)

// Options say what to measure.
type Options struct {
	Batch   int // sequences; 0 is 1
	Prompt  int // tokens of each
	Decode  int // tokens of each, one at a time
	Depth   int // position at which decoding starts
	Repeats int
	Context int // positions in the cache, if more than are needed
	Mode    nn.Numeric
	Cache   llm.CacheType // of keys and values
	Threads int
	Kernels bool // also time single kernels of a decode step
	// PromptKernels, with Kernels, times those of the prompt's first step too.
	PromptKernels bool
	Config        engine.Config
	Load          time.Duration // what opening the model took, for the report
	Start         time.Time     // from when on the first token is waited for; zero: from Run on
	// ReadRate measures the bandwidth of reads from memory that the device has,
	// in GB/s; nil where that is not known.
	ReadRate func(ctx context.Context) (float64, error)
}

// Check reports an option out of range.
func (o *Options) Check() error {
	switch {
	case o.Prompt < 0 || o.Decode < 0 || o.Prompt+o.Decode == 0:
		return fmt.Errorf("%d prompt and %d generated tokens, want at least one token", o.Prompt, o.Decode)
	case o.Depth < 0:
		return fmt.Errorf("depth is %d, want 0 or more", o.Depth)
	case o.Context < 0:
		return fmt.Errorf("a cache of %d positions", o.Context)
	case o.Batch < 0:
		return fmt.Errorf("%d sequences, want at least 1", o.Batch)
	case o.Repeats < 1:
		return fmt.Errorf("%d repeats, want at least 1", o.Repeats)
	}
	return nil
}

// Rates are tokens per second over the repeats.
type Rates struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// PromptResult is the speed of feeding a prompt.
type PromptResult struct {
	Tokens int   `json:"tokens"`
	Rates  Rates `json:"tok_s"`
}

// DecodeResult is the speed of generating one token at a time, without
// sampling. P99 is over the tokens of all repeats.
type DecodeResult struct {
	Tokens int     `json:"tokens"`
	Depth  int     `json:"depth"`
	Rates  Rates   `json:"tok_s"`
	P99    float64 `json:"p99_ms"`
}

// Result is one device's figures.
type Result struct {
	Model   string       `json:"model"`
	Device  string       `json:"device"`
	Mode    string       `json:"mode"`
	KV      string       `json:"kv,omitempty"` // type of the cache; empty: f32
	Threads int          `json:"threads"`
	Batch   int          `json:"batch,omitempty"` // sequences, from 2 on; rates are over all of them
	Prompt  PromptResult `json:"prompt"`
	Decode  DecodeResult `json:"decode"`

	Launches    int   `json:"launches_per_step"`
	WeightBytes int64 `json:"weight_bytes_per_step"`
	Bytes       int64 `json:"bytes_per_step"`
	// ReadRate is 0 where the device has no such figure. Fraction is of the
	// weights and cache that the median decode step reads.
	ReadRate float64 `json:"read_gb_s"`
	Fraction float64 `json:"fraction_of_read_gb_s"`

	// PeakMemory is the largest resident set of the process so far.
	PeakMemory int64   `json:"peak_memory_bytes"`
	Load       float64 `json:"load_s"`
	Compile    float64 `json:"compile_s"`
	// FirstToken is how long a user waits for the first token: opening the model
	// and the device, Load, Compile, and reading the prompt, of one token at least.
	FirstToken float64 `json:"first_token_s"`
	// Parts is what Compile was spent in: see llm.Session.CompileParts.
	Parts map[string]float64 `json:"compile_parts_s"`

	Kernels       []KernelResult `json:"kernels,omitempty"`        // of a decode step
	PromptKernels []KernelResult `json:"prompt_kernels,omitempty"` // of a prompt step

	// The same calls one by one, and what the target's numbers allow: for pictures.
	Calls       []CallResult `json:"-"`
	PromptCalls []CallResult `json:"-"`
	Floors      Floors       `json:"-"`
}

// Run measures a model on a device.
func Run(ctx context.Context, m *llm.Model, dev runtime.Device, opt Options) (*Result, error) {
	if err := opt.Check(); err != nil {
		return nil, err
	}
	rows := max(opt.Context, opt.Prompt, opt.Depth+opt.Decode, opt.Depth+1)
	if rows > m.Config.Context {
		return nil, fmt.Errorf("bench: %d positions are needed, but the model's context is %d", rows, m.Config.Context)
	}
	if opt.Start.IsZero() {
		opt.Start = time.Now()
	}
	opt.Batch = max(opt.Batch, 1)
	ready := llm.Preparation{Prompt: opt.Prompt, Sampling: llm.Sampling{TopP: 1}}
	s, err := llm.NewBatch(ctx, m, dev, llm.BatchOptions{Sequences: opt.Batch, Context: rows, Mode: opt.Mode, Cache: opt.Cache, Config: opt.Config, Prepare: &ready})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Prepare(ctx, ready.Prompt, ready.Sampling); err != nil {
		return nil, err
	}
	r := &Result{Model: m.Name, Device: dev.Name(), Mode: opt.Mode.String(), Threads: opt.Threads}
	if opt.Cache != llm.CacheF32 {
		r.KV = opt.Cache.String()
	}
	if opt.Batch > 1 {
		r.Batch = opt.Batch
	}
	r.Compile, r.Parts = round(s.CompileTime().Seconds()), make(map[string]float64)
	for name, t := range s.CompileParts() {
		r.Parts[name] = round(t.Seconds())
	}
	r.Load = round((opt.Load + s.LoadTime()).Seconds())
	r.Floors = floorsOf(dev.Target(), opt.Threads)
	b := &bench{batch: s, cacheBytes: dev.Target().CacheL2Bytes, options: opt, result: r, tokens: tokens(max(opt.Prompt, opt.Decode, 1)+opt.Batch, m.Config.Vocabulary)}
	for _, part := range []func(context.Context) error{b.firstToken, b.prompt, b.decode} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	r.PeakMemory = peakMemory() // before the bandwidth is measured, which takes memory of its own
	return r, b.describe(ctx)
}

// bench is one run under way.
type bench struct {
	batch      *llm.Batch
	cacheBytes int // of the device's last level
	options    Options
	result     *Result
	tokens     []int32
}

// tokens are pseudo-random ids, always the same (a linear congruence, as a
// model's speed may depend on ids only through its choice of experts).
func tokens(n, vocabulary int) []int32 {
	list := make([]int32, n)
	state := uint32(1)
	for i := range list {
		state = state*1664525 + 1013904223
		list[i] = int32(uint64(state) * uint64(vocabulary) >> 32)
	}
	return list
}

// Tokens gives every sequence n tokens of its own, always the same.
func Tokens(sequences, n, vocabulary int) [][]int32 {
	all := tokens(n+sequences, vocabulary)
	list := make([][]int32, sequences)
	for i := range list {
		list[i] = all[i : i+n]
	}
	return list
}

// each gives every sequence n tokens of its own.
func (b *bench) each(at, n int) [][]int32 {
	return lists.Make(b.options.Batch, func(i int) []int32 { return b.tokens[at+i : at+i+n] })
}

// prompt times feeding the prompt into an empty cache, after one warm-up.
func (b *bench) prompt(ctx context.Context) error {
	n := b.options.Prompt
	b.result.Prompt.Tokens = n
	if n == 0 {
		return nil
	}
	var rates []float64
	for i := range b.options.Repeats + 1 {
		b.batch.Reset()
		start := time.Now()
		if err := b.batch.Feed(ctx, b.each(0, n)); err != nil {
			return err
		}
		if i > 0 {
			rates = append(rates, float64(n*b.options.Batch)/time.Since(start).Seconds())
		}
	}
	b.result.Prompt.Rates = summarise(rates)
	return nil
}

// decode times steps of one token from the depth on, after a few to warm up.
func (b *bench) decode(ctx context.Context) error {
	n, depth := b.options.Decode, b.options.Depth
	b.result.Decode.Tokens, b.result.Decode.Depth = n, depth
	if n == 0 {
		return nil
	}
	if depth > 0 {
		if err := b.batch.ClearCaches(ctx); err != nil {
			return err
		}
	}
	const warmUp = 4
	if _, err := b.decodeOnce(ctx, min(n, warmUp)); err != nil {
		return err
	}
	var rates, all []float64
	for range b.options.Repeats {
		times, err := b.decodeOnce(ctx, n)
		if err != nil {
			return err
		}
		sum := 0.0
		for _, t := range times {
			sum += t
		}
		rates = append(rates, float64(n*b.options.Batch)/sum)
		all = append(all, times...)
	}
	b.result.Decode.Rates = summarise(rates)
	b.result.Decode.P99 = round(1000 * percentile(all, 0.99))
	return nil
}

// firstToken reads a prompt once and draws a token.
func (b *bench) firstToken(ctx context.Context) error {
	var requests []llm.Request
	for _, prompt := range b.each(0, max(b.options.Prompt, 1)) {
		requests = append(requests, llm.Request{Prompt: prompt, Tokens: 1, IgnoreEOS: true, Sampling: llm.Sampling{TopP: 1}})
	}
	_, err := b.batch.Generate(ctx, requests)
	b.result.FirstToken = round(time.Since(b.options.Start).Seconds())
	b.batch.Reset()
	return err
}

// decodeOnce returns the seconds of each of n steps.
func (b *bench) decodeOnce(ctx context.Context, n int) ([]float64, error) {
	if err := b.batch.Seek(b.options.Depth); err != nil {
		return nil, err
	}
	times := make([]float64, n)
	for i := range times {
		start := time.Now()
		if err := b.batch.Feed(ctx, b.each(i, 1)); err != nil {
			return nil, err
		}
		times[i] = time.Since(start).Seconds()
	}
	return times, nil
}

// describe adds what a decode step does and how fast memory is.
func (b *bench) describe(ctx context.Context) error {
	r := b.result
	if err := b.batch.Seek(b.options.Depth); err != nil {
		return err
	}
	step, err := b.batch.Compiled(ctx, 1)
	if err != nil {
		return err
	}
	var m engine.Manifest
	m.Describe(step.Compiled, step.Binding)
	r.Launches, r.WeightBytes, r.Bytes = m.Launches, m.WeightBytes, m.Bytes
	if b.options.ReadRate != nil {
		rate, err := b.options.ReadRate(ctx)
		if err != nil {
			return err
		}
		r.ReadRate = round(rate)
		r.Fraction = round(float64(m.MemoryBytes()) * r.Decode.Rates.Median / float64(b.options.Batch) / 1e9 / rate)
	}
	if b.options.Kernels {
		return b.profile(ctx)
	}
	return nil
}

// profile times the single kernels of a decode step at the depth asked for, and, if
// asked for, of the prompt's first step.
func (b *bench) profile(ctx context.Context) (err error) {
	if b.result.Kernels, b.result.Calls, err = b.kernels(ctx, 1); err != nil {
		return err
	}
	if b.options.PromptKernels && b.options.Prompt > 1 {
		if err := b.batch.Seek(0); err != nil {
			return err
		}
		b.result.PromptKernels, b.result.PromptCalls, err = b.kernels(ctx, b.batch.FirstChunk(b.options.Prompt))
	}
	return err
}

func summarise(rates []float64) Rates {
	return Rates{Median: round(percentile(rates, 0.5)), Min: round(slices.Min(rates)), Max: round(slices.Max(rates))}
}

// percentile of values by nearest rank; the median of an even number is the
// mean of the two in the middle.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if p == 0.5 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[max(int(math.Ceil(p*float64(n))), 1)-1]
}

// round keeps four significant digits.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
