package llm

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"tgc/engine"
	"tgc/gguf"
	"tgc/internal/mapfile"
	"tgc/internal/pages"
	"tgc/nn"
	"tgc/packed"
	"tgc/runtime"
	"tgc/target"
	"tgc/tensor"
)

// importsAtOnce is how many weights are on their way to a device: most are a few
// pieces of a pinned buffer, too few to keep all the buffers busy.
const importsAtOnce = 8

// importWeights puts the weights among the buffers on the device, several at once.
func (s *Session) importWeights(ctx context.Context, buffers []tensor.BufferInfo) error {
	var weights []tensor.BufferInfo
	for _, b := range buffers {
		if _, ok := s.model.File.Tensor(b.Name); ok && s.memory[b.Name] == nil {
			weights = append(weights, b)
		}
	}
	memory, errs := make([]runtime.Memory, len(weights)), make([]error, len(weights))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(importsAtOnce, len(weights)) {
		workers.Go(func() {
			for i := range next {
				memory[i], errs[i] = s.importWeight(ctx, weights[i])
			}
		})
	}
	for i := range weights {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, b := range weights {
		if errs[i] == nil {
			s.memory[b.Name] = memory[i]
			s.owned = append(s.owned, memory[i])
		}
	}
	for i, b := range weights {
		if errs[i] != nil {
			return fmt.Errorf("llm: buffer %q: %w", b.Name, errs[i])
		}
	}
	return nil
}

// recordsFor decides whether a CPU reads weights whose rows are interleaved, by what the modes
// gain, where memory has room for them beside the file. A copy of the weights is made in memory, in large pages. One Zen 5 core, decode,
// GB/s of a matrix in the file's order and in records: exact Q4_0 17 and 34, Q4_K 18 and 26. In int8 all
// types gain where bytes have dots (target.Desc.RecordDots): one Zen 4 core, tokens a second of LLaMA 1B's layers, Q6_K
// 104 and 188, Q4_K_M 137 and 253, Q4_0 143 and 303, Qwen2.5's Q5_K_M 104 and 187, Qwen3's Q8_0 133 and 173. In i16, of two
// such digits: one Xeon core, us of two layers, Q6_K 1,980 and 1,182, Q4_K_M 1,970 and 929, IQ3_S 7,825 and 1,235 (docs/bench/cpu-experts.txt).
//
// Codes of tables that a register holds are in records in all of these modes, and grids as such codes (WeightCodes).
//
// Weights wider than packed.RecordBits are in records in exact mode where they are whole bytes (Zen 4: Q8_0 100 and 165 tokens a second), and on
// the cores on which all were seen to pay, Zen 4 (Desc.PrefetchRows; Q6_K 80 and 109) and Zen 5 (Desc.PrefetchOnce; LLaMA 1B's layers, Q6_K 142 and
// 197, Q5_K_M 193 and 202, Q4_K_M 211 and 223, OLMoE 250 and 276).
//
// With registers of half a record (AVX2) exact sums of wider weights stay in the file's order: Q8_0 gains 30 % from records, Q6_K and Q5_K 10,
// but a batch's logits then differ from those of a sequence alone by more (OLMoE in Q8_0, NMSE 6.9e-12 and 1.9e-11).
func recordsFor(f *gguf.File, chosen engine.Records, desc *target.Desc, mode nn.Numeric, bytes int64) engine.Records {
	switch {
	case chosen != engine.RecordsByPrice:
		return chosen
	case !desc.CanInterleave() || !roomFor(bytes):
		return engine.RecordsNever
	case mode == nn.Exact && desc.RecordDots && desc.VectorBytes >= wholeRecord && (desc.PrefetchRows == 0 || desc.PrefetchOnce || allWholeBytes(f)):
		return packed.MostRecordBits
	case mode == nn.Exact:
		return engine.RecordsAlways
	case (mode == nn.Int8 || mode == nn.Int16) && desc.RecordDots:
		return packed.MostRecordBits
	}
	return engine.RecordsNever
}

// wholeRecord is the size of the registers that hold a word of each of a record's rows.
const wholeRecord = 4 * packed.RecordRows

// roomFor reports memory for a copy of weights that take so many bytes.
func roomFor(bytes int64) bool {
	available, known := pages.Available()
	return !known || bytes <= available/recordShare
}

// recordShare is the part of the available memory that a copy of the weights may take: the rest
// is for the cache, and for other programs.
const recordShare = 2

// weightBytes is what the tensors of a file take where those that may lie in records do, in the codes of the device.
func weightBytes(f *gguf.File, desc *target.Desc) (bytes int64) {
	codes := codesFor(packed.MostRecordBits, desc)
	for _, t := range f.Tensors() {
		bytes += codes.bytesOf(&t)
	}
	return bytes
}

// largePage is the size from which a weight has large pages of its own.
const largePage = 2 << 20

// copiesPlain says whether a CPU copies weights of plain numbers to large pages, as it does interleaved ones: decoding is bound by how fast
// they are read, and a mapped file has small pages. Zen 4 in a virtual machine, a plain read: file 23 GB/s, large pages 31;
// two layers of LLaMA 1B, one thread, tokens a second: BF16 80 and 93, F16 79 and 97. Weights that are decoded
// gain nothing (Q6_K, IQ4_XS, IQ3_S, TQ2_0 in the file's order).
func copiesPlain(chosen engine.Records, desc *target.Desc, bytes int64) bool {
	return chosen != engine.RecordsNever && desc.CanInterleave() && roomFor(bytes)
}

// importWeight puts a weight on the device.
func (s *Session) importWeight(ctx context.Context, b tensor.BufferInfo) (m runtime.Memory, err error) {
	t, _ := s.model.File.Tensor(b.Name)
	err = mapfile.Guard(func() (err error) {
		if s.copiesPlain && b.Format == "" && t.Bytes() >= largePage {
			m, err = runtime.ImportSource(ctx, s.device, bytes.NewReader(t.Data()))
			return err
		}
		m, err = s.importPacked(ctx, b, t)
		return err
	})
	return m, err
}
