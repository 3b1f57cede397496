package llm

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime"
	"tgc/tensor"
)

// cacheDType is the element type of the key and value cache in exact mode.
const cacheDType = ir.F32

// chunks are the numbers of tokens that steps are compiled for, largest first.
var chunks = []int{512, 256, 128, 32, 8, 1}

// paddedChunk is the largest step that may be padded.
const paddedChunk = 128

// SessionOptions size a session.
type SessionOptions struct {
	Context int  // rows of the cache: prompt and generated tokens
	All     bool // keep the logits of every prompt token
	// Ahead is how many steps of a generation the device runs by itself before
	// the host looks at the tokens: 0 picks what suits the device, a negative
	// number makes the host feed every token.
	Ahead int
	// PerGraph is how many of those steps the host starts with one launch, where a
	// device can; 0 picks what suits the step.
	PerGraph int
	// Prepare, where it is known already, is compiled while the weights are on
	// their way: Prepare then finds it done.
	Prepare *Preparation
	Mode    nn.Numeric // numeric mode of matrix products; the zero value is exact
	Config  engine.Config
}

// Session is a model on a device with its cache: what one conversation needs.
// It is not safe for concurrent use.
type Session struct {
	model   *Model
	device  runtime.Device
	options SessionOptions
	// sequences is 1, or what a Batch holds: then its methods that feed and draw
	// are not for use.
	sequences int
	memory    map[string]runtime.Memory // by buffer name, shared by all variants
	owned     []runtime.Memory
	steps     map[int]*step
	samplers  map[bool]*sampler // by greedy
	loops     map[bool]*loop    // by greedy
	position  int
	fed       int // tokens of the last step, without padding
	fedStep   int // size of the last step

	ready     map[string]*compiledJob  // compiled ahead, by job.what
	compiling time.Duration            // spent so far
	filling   time.Duration            // see LoadTime
	parts     map[string]time.Duration // see CompileParts
}

// step is one compiled variant.
type step struct {
	variant Variant
	graph   *tensor.Graph
	engine  *engine.Step
}

// NewSession puts a model's weights on a device and allocates the cache.
// Variants of the step are compiled when they are first needed.
func NewSession(ctx context.Context, m *Model, dev runtime.Device, opt SessionOptions) (*Session, error) {
	return newSession(ctx, m, dev, opt, 1, func(s *Session, p Preparation) wanted { return s.wants(p, s.ahead() == 0, s.ahead() > 0) })
}

func newSession(ctx context.Context, m *Model, dev runtime.Device, opt SessionOptions, sequences int, wants func(*Session, Preparation) wanted) (*Session, error) {
	if opt.Context < 1 {
		return nil, fmt.Errorf("llm: context of %d tokens, want at least 1", opt.Context)
	}
	s := &Session{
		model: m, device: dev, options: opt, sequences: sequences,
		memory: make(map[string]runtime.Memory), steps: make(map[int]*step), samplers: make(map[bool]*sampler), loops: make(map[bool]*loop),
		ready: make(map[string]*compiledJob), parts: make(map[string]time.Duration),
	}
	var w *wanted
	if opt.Prepare != nil {
		all := wants(s, *opt.Prepare)
		w = &all
	}
	if err := s.fill(ctx, w); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// allocate binds what every step needs: weights, caches, and what is fed.
func (s *Session) allocate(ctx context.Context) error {
	v := s.stepVariant(1)
	g, err := BuildStep(s.model.Config, s.model.File, v)
	if err != nil {
		return err
	}
	if err := s.importWeights(ctx, g.Buffers()); err != nil {
		return err
	}
	for _, b := range g.Buffers() {
		if _, err := s.bind(ctx, b, v); err != nil {
			return err
		}
	}
	return nil
}

// Position is the number of tokens in the cache.
func (s *Session) Position() int { return s.position }

// Reset forgets the cache's contents.
func (s *Session) Reset() { s.position, s.fed = 0, 0 }

// Close frees the session's device memory.
func (s *Session) Close() {
	for _, st := range s.steps {
		st.engine.Free()
	}
	for _, l := range s.loops {
		l.free()
	}
	for _, p := range s.samplers {
		p.close()
	}
	for _, m := range s.owned {
		m.Free()
	}
	s.owned = nil
}

// variant is the step of T tokens that keeps one row of logits.
func (s *Session) variant(tokens int) Variant {
	return Variant{Batch: s.sequences, Tokens: tokens, Context: s.options.Context, Cache: cacheDType, Numeric: s.options.Mode}
}

// stepVariant is the step of T tokens that a session feeds.
func (s *Session) stepVariant(tokens int) Variant {
	v := s.variant(tokens)
	v.All = s.options.All
	return v
}

// step returns the compiled variant for T tokens.
func (s *Session) step(ctx context.Context, tokens int) (*step, error) {
	if st, ok := s.steps[tokens]; ok {
		return st, nil
	}
	done, err := s.compile(ctx, s.stepJob(tokens))
	if err != nil {
		return nil, err
	}
	v := s.stepVariant(tokens)
	captured, err := s.capture(ctx, done, v)
	if err != nil {
		return nil, err
	}
	st := &step{variant: v, graph: done.graph, engine: captured}
	s.steps[tokens] = st
	return st, nil
}

// capture binds the buffers of a compiled graph of a variant and loads it.
func (s *Session) capture(ctx context.Context, done *compiledJob, v Variant) (captured *engine.Step, err error) {
	buffers := make(map[int64]runtime.Memory)
	for _, b := range done.graph.Buffers() {
		if buffers[b.ID], err = s.bind(ctx, b, v); err != nil {
			return nil, err
		}
	}
	err = s.loading(func() error {
		captured, err = engine.Capture(ctx, s.device, done.compiled, buffers)
		return err
	})
	return captured, err
}

// bind returns the memory of a buffer: a weight in the mapped file, or device
// memory shared by name (the caches) or by name and variant (what is fed).
func (s *Session) bind(ctx context.Context, b tensor.BufferInfo, v Variant) (runtime.Memory, error) {
	key := b.Name
	switch b.Name {
	case BufferTokens:
		key = tokensKey(v.Tokens)
	case BufferLogits:
		key = s.logitsKey(v.Tokens)
	}
	if m, ok := s.memory[key]; ok {
		return m, nil
	}
	var m runtime.Memory
	var err error
	if _, ok := s.model.File.Tensor(b.Name); ok {
		m, err = s.importWeight(ctx, b)
	} else {
		m, err = s.device.Alloc(ctx, bytesOf(b))
	}
	if err != nil {
		return nil, fmt.Errorf("llm: buffer %q: %w", b.Name, err)
	}
	s.memory[key] = m
	s.owned = append(s.owned, m)
	return m, nil
}

func bytesOf(b tensor.BufferInfo) int64 {
	n := int64(b.DType.Size())
	for _, dim := range b.Shape {
		v, _ := dim.Int()
		n *= v
	}
	return n
}

// Feed appends tokens to the cache. If rows is not nil it is called with the
// logits as [n, V]: with SessionOptions.All a row for every token, as often as
// chunks are fed, else once with that of the last token.
func (s *Session) Feed(ctx context.Context, tokens []int32, rows func(logits []float32) error) error {
	if err := s.checkTokens(tokens); err != nil {
		return err
	}
	for len(tokens) > 0 {
		n := min(s.chunkFor(len(tokens)), len(tokens))
		if err := s.feedChunk(ctx, tokens[:n]); err != nil {
			return err
		}
		tokens = tokens[n:]
		if rows == nil || !s.options.All && len(tokens) > 0 {
			continue
		}
		logits, err := s.logits(ctx)
		if err != nil {
			return err
		}
		if err := rows(logits); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) checkTokens(tokens []int32) error {
	if len(tokens) == 0 {
		return fmt.Errorf("llm: no tokens to feed")
	}
	if room := s.options.Context - s.position; len(tokens) > room {
		return fmt.Errorf("llm: %d tokens to feed, but the context of %d holds %d already (raise --ctx)", len(tokens), s.options.Context, s.position)
	}
	for i, id := range tokens {
		if id < 0 || int(id) >= s.model.Config.Vocabulary {
			return fmt.Errorf("llm: token %d at index %d is outside the vocabulary of %d", id, i, s.model.Config.Vocabulary)
		}
	}
	return nil
}

// largestChunk is the largest number of tokens of a sequence that one step takes. With
// All it is not more than may be padded: logits of all tokens take a row of the
// vocabulary each.
func (s *Session) largestChunk() int {
	if s.options.All {
		return paddedChunk
	}
	return max(s.device.Target().Tuning.StepRows/s.sequences, paddedChunk)
}

// chunkFor picks the step for n remaining tokens: the largest one that they fill,
// else the smallest that holds them all, or the largest that may be padded.
func (s *Session) chunkFor(n int) int {
	most, best := s.largestChunk(), 0
	for _, c := range chunks {
		switch {
		case c > most:
		case c > paddedChunk:
			if c <= n {
				return c
			}
		case c >= n || best == 0:
			best = c
		}
	}
	return best
}

// feedChunk runs one step on at most its number of tokens; the rest is padding,
// whose cache rows are overwritten before any query sees them.
func (s *Session) feedChunk(ctx context.Context, tokens []int32) error {
	st, vars, err := s.load(ctx, tokens)
	if err != nil {
		return err
	}
	if err := st.engine.Run(ctx, vars); err != nil {
		return err
	}
	s.position += len(tokens)
	s.fed, s.fedStep = len(tokens), st.variant.Tokens
	return nil
}

// load writes what a step on tokens reads and returns the step with the values
// of its variables.
func (s *Session) load(ctx context.Context, tokens []int32) (*step, map[string]int64, error) {
	size := s.chunkFor(len(tokens))
	st, err := s.step(ctx, size)
	if err != nil {
		return nil, nil, err
	}
	padded := make([]int32, size)
	copy(padded, tokens)
	if err := s.write(ctx, tokensKey(size), padded...); err != nil {
		return nil, nil, err
	}
	if err := s.write(ctx, BufferPositions, int32(s.position)); err != nil {
		return nil, nil, err
	}
	if _, ok := s.memory[BufferLast]; ok {
		if err := s.write(ctx, BufferLast, int32(len(tokens)-1)); err != nil {
			return nil, nil, err
		}
	}
	return st, s.vars(s.position + size), nil
}

// vars are the variables of a step after which rows of the cache hold tokens. What
// lies past the last position is masked.
func (s *Session) vars(rows int) map[string]int64 {
	return map[string]int64{VarLength: int64(min(rows, s.options.Context))}
}

func (s *Session) write(ctx context.Context, buffer string, values ...int32) error {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
	}
	return s.memory[buffer].Write(ctx, 0, raw)
}

// tokensKey names the memory of what a step of size tokens is fed.
func tokensKey(size int) string { return fmt.Sprintf("%s.%d", BufferTokens, size) }

// logitsKey names the memory of a step's logits. Without All every variant
// writes one row, and all share it.
func (s *Session) logitsKey(size int) string {
	if s.options.All {
		return fmt.Sprintf("%s.%d", BufferLogits, size)
	}
	return BufferLogits
}

// logits reads what the last step wrote: a row per fed token with All, else one.
func (s *Session) logits(ctx context.Context) ([]float32, error) {
	rows := 1
	if s.options.All {
		rows = s.fed
	}
	raw := make([]byte, 4*rows*s.model.Config.Vocabulary)
	if err := s.memory[s.logitsKey(s.fedStep)].Read(ctx, 0, raw); err != nil {
		return nil, err
	}
	return float32s(raw), nil
}

// Sample draws the next token from the logits of the last fed token.
func (s *Session) Sample(ctx context.Context, opt Sampling) (int32, error) {
	if s.fed == 0 {
		return 0, fmt.Errorf("llm: nothing was fed to sample after")
	}
	p, err := s.sampler(ctx, opt.Temperature == 0)
	if err != nil {
		return 0, err
	}
	if s.options.All {
		if err := s.copyLastRow(ctx); err != nil {
			return 0, err
		}
	}
	ids, err := p.draw(ctx, []Sampling{opt}, s.model.Config.Vocabulary)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// sampler returns the compiled sampling graph, greedy or not.
func (s *Session) sampler(ctx context.Context, greedy bool) (*sampler, error) {
	if p, ok := s.samplers[greedy]; ok {
		return p, nil
	}
	row, err := s.logitsRow(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.newSampler(ctx, greedy, row)
	if err != nil {
		return nil, err
	}
	s.samplers[greedy] = p
	return p, nil
}

// logitsRow is the memory that samplers read: the steps' own logits, or with
// All a row that the last token's logits are copied to.
func (s *Session) logitsRow(ctx context.Context) (runtime.Memory, error) {
	if !s.options.All {
		return s.memory[BufferLogits], nil
	}
	if m, ok := s.memory[bufferLastRow]; ok {
		return m, nil
	}
	m, err := s.device.Alloc(ctx, int64(4*s.model.Config.Vocabulary))
	if err != nil {
		return nil, err
	}
	s.memory[bufferLastRow] = m
	s.owned = append(s.owned, m)
	return m, nil
}

func (s *Session) copyLastRow(ctx context.Context) error {
	raw := make([]byte, 4*s.model.Config.Vocabulary)
	offset := int64(len(raw)) * int64(s.fed-1)
	if err := s.memory[s.logitsKey(s.fedStep)].Read(ctx, offset, raw); err != nil {
		return err
	}
	return s.memory[bufferLastRow].Write(ctx, 0, raw)
}

const bufferLastRow = "logits.last"
