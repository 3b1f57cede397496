package llm

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// DefaultContext is how many positions a cache has for any number of tokens, if
// the model was trained for that many; leastContext is how many it has at least.
const (
	DefaultContext = 4096
	leastContext   = 256
)

// ContextSize picks the number of positions in the cache: wanted, or where that is 0
// what the prompt and the tokens to generate (negative: any number) need. Up
// to DefaultContext that is a power of two, so that few steps serve all prompts: a
// step for few positions is faster, for its attention need not be split among blocks
// (Qwen3 0.6B on an H200: a third). It never exceeds the model's.
func ContextSize(m *Model, wanted, prompt, tokens int) (int, error) {
	limit, size := m.Config.Context, wanted
	if wanted > limit {
		return 0, fmt.Errorf("%s: a context (--ctx) of %d is more than the %d that the model was trained for", m.Name, wanted, limit)
	}
	if wanted == 0 {
		size = min(roundContext(needed(limit, prompt, tokens)), limit)
	}
	if prompt > size {
		return 0, fmt.Errorf("%s: the prompt has %d tokens, more than the context (--ctx) of %d; the model's is %d", m.Name, prompt, size, limit)
	}
	return size, nil
}

// needed is how many positions a prompt and the tokens after it take, at most
// limit. Any number of tokens takes the limit once the prompt is long.
func needed(limit, prompt, tokens int) int {
	switch {
	case tokens > limit-prompt, tokens < 0 && prompt >= DefaultContext:
		return limit
	case tokens < 0:
		return DefaultContext
	}
	return prompt + tokens
}

func roundContext(n int) int {
	if n > DefaultContext {
		return n
	}
	size := leastContext
	for size < n {
		size *= 2
	}
	return size
}

// WriteFloats writes values as raw little-endian float32.
func WriteFloats(w io.Writer, values []float32) error {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	_, err := w.Write(raw)
	return err
}
