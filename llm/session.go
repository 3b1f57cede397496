package llm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/nn"
	"tgc/runtime"
	"tgc/tensor"
)

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
	Cache   CacheType  // of keys and values; the zero value is f32
	Config  engine.Config

	weights *Session // BatchOptions.Weights
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
	// copiesPlain says that weights of plain numbers are read from a copy: see there.
	copiesPlain bool
	steps       map[stepKey]*step
	samplers    map[bool]*sampler // by greedy
	loops       map[loopKey]*loop
	positions   []int  // of each sequence: tokens in its cache
	fed         int    // tokens of the last step, without padding
	fedStep     int    // size of the last step
	hostDraws   uint32 // tokens drawn on the host

	ready     map[string]*compiledJob  // compiled ahead, by job.what
	compiled  map[string]bool          // taken from ready, by job.what
	compiling time.Duration            // spent so far
	filling   time.Duration            // see LoadTime
	parts     map[string]time.Duration // see CompileParts
}

// stepKey is what a session chooses a step by.
type stepKey struct {
	tokens int
	rows   int // of the cache that it may visit
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
	return newSession(ctx, m, dev, opt, 1, (*Session).wantsFor)
}

func newSession(ctx context.Context, m *Model, dev runtime.Device, opt SessionOptions, sequences int, wants func(*Session, Preparation) wanted) (*Session, error) {
	if opt.Context < 1 {
		return nil, fmt.Errorf("llm: context of %d tokens, want at least 1", opt.Context)
	}
	if opt.weights != nil {
		opt.Config.Records, opt.Config.RecordsBy = opt.weights.options.Config.Records, opt.weights.options.Config.RecordsBy
	}
	bytes := weightBytes(m.File, dev.Target())
	copies := copiesPlain(opt.Config.Records, dev.Target(), bytes)
	chooseRecords(&opt.Config, m.File, dev.Target(), opt.Mode, bytes)
	s := &Session{
		copiesPlain: copies,
		model:       m, device: dev, options: opt, sequences: sequences, positions: make([]int, sequences),
		memory: make(map[string]runtime.Memory), steps: make(map[stepKey]*step), samplers: make(map[bool]*sampler), loops: make(map[loopKey]*loop),
		ready: make(map[string]*compiledJob), compiled: make(map[string]bool), parts: make(map[string]time.Duration),
	}
	if opt.weights != nil {
		if opt.weights.model != m || opt.weights.device != dev {
			return nil, errors.New("llm: weights of another model or device")
		}
		s.borrow(opt.weights)
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

// borrow takes the weights of another session, which owns them.
func (s *Session) borrow(from *Session) {
	for name, m := range from.memory {
		if _, ok := s.model.File.Tensor(name); ok {
			s.memory[name] = m
		}
	}
}

// allocate binds what every step needs: weights, caches, and what is fed.
func (s *Session) allocate(ctx context.Context) error {
	v := s.stepVariant(stepKey{1, s.options.Context})
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
func (s *Session) Position() int { return s.positions[0] }

// Reset forgets the cache's contents.
func (s *Session) Reset() {
	clear(s.positions)
	s.fed = 0
}

// Seek moves every sequence to a position without computing what lies before it: the
// cache keeps what it holds. Back to an earlier position it forgets what came after, so
// that another text can go on from there; forwards only measurements have a use for it.
func (s *Session) Seek(position int) error {
	if position < 0 || position > s.options.Context {
		return fmt.Errorf("llm: position %d, want 0 to %d", position, s.options.Context)
	}
	for i := range s.positions {
		s.positions[i] = position
	}
	s.fed = 0
	return nil
}

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

// variant is a step that keeps one row of logits.
func (s *Session) variant(k stepKey) Variant {
	return Variant{Batch: s.sequences, Tokens: k.tokens, Context: s.options.Context, Visited: k.rows, Cache: s.options.Cache, Numeric: s.options.Mode, Codes: codesFor(s.options.Config.Records, s.device.Target())}
}

// stepVariant is a step that a session feeds.
func (s *Session) stepVariant(k stepKey) Variant {
	v := s.variant(k)
	v.All = s.options.All
	return v
}

// stepKey is the step of T tokens from a position on. Steps of several tokens visit all
// rows: attention has work for a whole device there.
func (s *Session) stepKey(tokens, position int) stepKey {
	if tokens == 1 {
		return stepKey{tokens, s.rowsFor(position)}
	}
	return stepKey{tokens, s.options.Context}
}

// rowsFor is how many rows of the cache a step of one token at position visits.
func (s *Session) rowsFor(position int) int {
	return s.device.Target().Tuning.RowsFor(position, s.options.Context)
}

// position is that of the sequence that is furthest.
func (s *Session) position() int { return slices.Max(s.positions) }

// step returns the compiled variant for T tokens.
func (s *Session) step(ctx context.Context, tokens int) (*step, error) {
	return s.stepOf(ctx, s.stepKey(tokens, s.position()))
}

func (s *Session) stepOf(ctx context.Context, k stepKey) (*step, error) {
	if st, ok := s.steps[k]; ok {
		return st, nil
	}
	done, err := s.compile(ctx, s.stepJob(k))
	if err != nil {
		return nil, err
	}
	v := s.stepVariant(k)
	captured, err := s.capture(ctx, done, v)
	if err != nil {
		return nil, err
	}
	st := &step{variant: v, graph: done.graph, engine: captured}
	s.steps[k] = st
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
	return s.feed(ctx, [][]int32{tokens}, func(left int) error {
		if rows == nil || !s.options.All && left > 0 {
			return nil
		}
		logits, err := s.logits(ctx)
		if err != nil {
			return err
		}
		return rows(logits)
	})
}

// feed appends tokens to the caches of all sequences, in steps; the shorter lists
// join late, so that the last token of each is fed in the last step. fed is called
// after each step with the number of tokens that the longest list has left.
func (s *Session) feed(ctx context.Context, tokens [][]int32, fed func(left int) error) error {
	if err := s.check(tokens); err != nil {
		return err
	}
	left := 0 // of the longest
	for _, list := range tokens {
		left = max(left, len(list))
	}
	for left > 0 {
		size := s.chunkFor(left)
		after := max(left-size, 0) // tokens that the last steps feed
		parts := lists.Map(tokens, func(list []int32) []int32 { return list[max(len(list)-left, 0):max(len(list)-after, 0)] })
		st, err := s.load(ctx, size, parts)
		if err != nil {
			return err
		}
		if err := st.engine.Run(ctx, s.vars(size)); err != nil {
			return err
		}
		for i, part := range parts {
			s.positions[i] += len(part)
		}
		s.fed, s.fedStep, left = len(parts[0]), size, after
		if err := fed(left); err != nil {
			return err
		}
	}
	return nil
}

// check reports tokens that cannot be fed.
func (s *Session) check(tokens [][]int32) error {
	if len(tokens) != s.sequences {
		return fmt.Errorf("llm: tokens for %d sequences, want %d", len(tokens), s.sequences)
	}
	for i, list := range tokens {
		if err := s.checkTokens(i, list); err != nil && s.sequences > 1 {
			return fmt.Errorf("sequence %d: %w", i, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) checkTokens(sequence int, tokens []int32) error {
	if len(tokens) == 0 {
		return fmt.Errorf("llm: no tokens to feed")
	}
	position := s.positions[sequence]
	if room := s.options.Context - position; len(tokens) > room {
		return fmt.Errorf("llm: %d tokens to feed, but the context of %d holds %d already (raise --ctx)", len(tokens), s.options.Context, position)
	}
	for i, id := range tokens {
		if id < 0 || int(id) >= s.model.Config.Vocabulary {
			return fmt.Errorf("llm: token %d at index %d is outside the vocabulary of %d", id, i, s.model.Config.Vocabulary)
		}
	}
	return nil
}

// leastChunk is the number of tokens of a sequence that a step may take whatever the number of sequences, and
// where it keeps logits of all of them: a row of the vocabulary each.
const leastChunk = 128

// largestChunk is the largest number of tokens of a sequence that one step takes.
func (s *Session) largestChunk() int {
	if s.options.All {
		return leastChunk
	}
	return max(s.device.Target().Tuning.Steps[0].Rows/s.sequences, leastChunk)
}

// chunkFor picks the step for n remaining tokens.
func (s *Session) chunkFor(n int) int {
	return stepSizes{steps: s.device.Target().Tuning.Steps, most: s.largestChunk(), sequences: s.sequences}.first(n)
}

// load writes what a step reads and returns the step. Padding comes after the
// tokens: its cache rows are overwritten before any query sees them.
func (s *Session) load(ctx context.Context, size int, parts [][]int32) (*step, error) {
	st, err := s.step(ctx, size)
	if err != nil {
		return nil, err
	}
	padded, last := make([]int32, size*s.sequences), make([]int32, s.sequences)
	for i, part := range parts {
		copy(padded[i*size:], part)
		last[i] = int32(max(len(part)-1, 0))
	}
	if err := s.writeTokens(ctx, size, padded); err != nil {
		return nil, err
	}
	if _, ok := s.memory[BufferLast]; !ok {
		return st, nil
	}
	return st, s.write(ctx, BufferLast, last...)
}

// writeTokens writes the tokens of a step and the positions.
func (s *Session) writeTokens(ctx context.Context, size int, tokens []int32) error {
	positions := make([]int32, len(s.positions))
	for i, p := range s.positions {
		positions[i] = int32(p)
	}
	if err := s.write(ctx, tokensKey(size), tokens...); err != nil {
		return err
	}
	return s.write(ctx, BufferPositions, positions...)
}

// vars are the variables of a step that goes ahead positions further. What lies
// past the last position is masked.
func (s *Session) vars(ahead int) map[string]int64 {
	return map[string]int64{VarLength: int64(min(s.position()+ahead, s.options.Context))}
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
	row := int64(4 * s.model.Config.Vocabulary)
	return runtime.Copy(ctx, s.memory[bufferLastRow], 0, s.memory[s.logitsKey(s.fedStep)], row*int64(s.fed-1), row)
}

const bufferLastRow = "logits.last"
