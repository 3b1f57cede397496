package llm

import (
	"fmt"
	"hash/fnv"
	"slices"

	"tgc/engine"
	"tgc/gguf"
	"tgc/nn"
	"tgc/packed"
	"tgc/schedule"
	"tgc/target"
)

// How packed weights lie in the memory of a CPU is one for all steps of a model in a mode. It is by
// price (recordsFor), unless it was decided: by the user, or by what tgc tune has found.

// chooseRecords settles the layout of a model's weights.
func chooseRecords(config *engine.Config, f *gguf.File, desc *target.Desc, mode nn.Numeric, bytes int64) {
	if config.Records == engine.RecordsByPrice && desc.CanInterleave() && roomFor(bytes) {
		if d, ok := config.Decided(desc, schedule.WeightLayout, layoutKey(f, mode)); ok {
			config.Records, config.RecordsBy = recordsOf(d.Choice), &d
			return
		}
	}
	config.Records = recordsFor(f, config.Records, desc, mode, bytes)
}

// recordsOf is what a decision says of the layout.
func recordsOf(choice schedule.Choice) engine.Records {
	if choice == schedule.Decline {
		return engine.RecordsNever
	}
	return engine.Records(choice)
}

// layoutKey tells models apart whose weights may lie in several ways: by types and shapes of those, and
// by the mode.
func layoutKey(f *gguf.File, mode nn.Numeric) string {
	var list []string
	for _, t := range interleaving(f, packed.MostRecordBits) {
		list = append(list, fmt.Sprint(t.Type, t.Rows(), t.RowLength()))
	}
	slices.Sort(list)
	h := fnv.New64a()
	fmt.Fprintln(h, mode, list)
	return fmt.Sprintf("%016x", h.Sum64())
}

// interleaving lists the weights of up to so many bits whose rows may be interleaved.
func interleaving(f *gguf.File, bits int) (list []gguf.Tensor) {
	for _, t := range f.Tensors() {
		format, ok := packed.ByGGUF(uint32(t.Type))
		if !ok {
			continue
		}
		if other, recodes := recoded(format, t.Shape()); recodes {
			format = other
		}
		if format.Interleaves(wide(t.Shape()), bits) {
			list = append(list, t)
		}
	}
	return list
}

// allWholeBytes reports weights of which every type that only packed.MostRecordBits interleaves stores whole bytes.
func allWholeBytes(f *gguf.File) bool {
	found := false
	for _, t := range interleaving(f, packed.MostRecordBits) {
		format, _ := packed.ByGGUF(uint32(t.Type))
		if format.BlockBytes*8 <= packed.RecordBits*format.BlockElems {
			continue
		}
		if found = true; !format.WholeBytes() {
			return false
		}
	}
	return found
}

// LayoutDecisions are other layouts of a model's weights than the one by price, each as a decision and as
// the choice that tries it; none on devices that have one, and where memory has no room for two copies.
func LayoutDecisions(m *Model, desc *target.Desc, mode nn.Numeric) (list []schedule.Decision) {
	if bytes := weightBytes(m.File, desc); !desc.CanInterleave() || !roomFor(2*bytes) {
		return nil
	}
	counts := []int{0}
	if usual := recordsFor(m.File, engine.RecordsByPrice, desc, mode, 0); usual > 0 {
		counts[0] = len(interleaving(m.File, int(usual)))
	}
	for _, choice := range []schedule.Choice{schedule.Decline, packed.RecordBits, packed.MostRecordBits} {
		n := len(interleaving(m.File, int(choice)))
		if !slices.Contains(counts, n) {
			counts = append(counts, n)
			list = append(list, schedule.Decision{Rule: schedule.WeightLayout, Value: layoutKey(m.File, mode), Choice: choice})
		}
	}
	return list
}

// WithLayout is a configuration in which the layout of weights is as decided.
func WithLayout(config engine.Config, d engine.Decision) engine.Config {
	config.Records, config.RecordsBy = recordsOf(d.Choice), &d
	return config
}
