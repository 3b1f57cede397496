package synth

import "tgc/gguf"

// entry is one key with its value.
type entry struct {
	key   string
	value any
}

// metadata puts everything but the tensors.
func (s *Shape) metadata(w *gguf.Writer) {
	entries := []entry{
		{"general.architecture", s.Architecture},
		{"general.type", "model"},
		{"general.name", s.Title + " (random weights)"},
		{"general.size_label", s.Size},
	}
	for _, e := range s.hyperparameters() {
		entries = append(entries, entry{s.Architecture + "." + e.key, e.value})
	}
	entries = append(entries,
		entry{"general.file_type", s.mixture.fileType},
		entry{"general.quantization_version", uint32(2)},
	)
	for _, e := range append(entries, s.tokenizer.entries(s.Vocabulary)...) {
		w.Put(e.key, e.value)
	}
}

// hyperparameters returns the entries under the architecture's name, those that
// published files of the architecture have.
func (s *Shape) hyperparameters() []entry {
	list := []entry{
		{"block_count", uint32(s.Layers)},
		{"context_length", uint32(s.Context)},
		{"embedding_length", uint32(s.Width)},
		{"feed_forward_length", uint32(s.FeedForward)},
		{"attention.head_count", uint32(s.Heads)},
	}
	family := families[s.Architecture]
	if family.learned {
		return append(list, entry{"attention.layer_norm_epsilon", float32(s.Epsilon)})
	}
	list = append(list,
		entry{"attention.head_count_kv", uint32(s.KVHeads)},
		entry{"rope.freq_base", float32(s.RopeBase)},
		entry{"attention.layer_norm_rms_epsilon", float32(s.Epsilon)},
	)
	if s.Experts > 0 {
		list = append(list, entry{"expert_count", uint32(s.Experts)}, entry{"expert_used_count", uint32(s.ExpertsUsed)})
	}
	if s.Window > 0 {
		list = append(list, entry{"attention.sliding_window", uint32(s.Window)})
	}
	if family.metadata != nil {
		list = append(list, family.metadata(s)...)
	}
	if (s.Architecture == "qwen2" || s.Architecture == "olmoe") && s.Heads*s.HeadSize == s.Width { // theirs say nothing else
		return list
	}
	return append(list, entry{"attention.key_length", uint32(s.HeadSize)}, entry{"attention.value_length", uint32(s.HeadSize)})
}
