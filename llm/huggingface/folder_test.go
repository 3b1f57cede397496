package huggingface

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/internal/refmodel"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/safetensors"
)

// stored is how the tests store a model of an architecture in a folder: config.json, and
// the names of the tensors, which the tests have from the published files.
type stored struct {
	description string
	config      string
	names       map[string]string // GGUF to folder, without block and kind
	interleaved bool
	minusOne    bool
}

var (
	usualNames = map[string]string{
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
		"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
		"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate",
		"ffn_gate_exps": "mlp.experts.%d.gate_proj", "ffn_up_exps": "mlp.experts.%d.up_proj", "ffn_down_exps": "mlp.experts.%d.down_proj",
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
	}
	gemmaNames = with(usualNames, "post_attention_norm", "post_attention_layernorm", "ffn_norm", "pre_feedforward_layernorm", "post_ffw_norm", "post_feedforward_layernorm")
	mixtral    = with(usualNames, "ffn_gate_inp", "block_sparse_moe.gate", "ffn_gate_exps", "block_sparse_moe.experts.%d.w1",
		"ffn_up_exps", "block_sparse_moe.experts.%d.w3", "ffn_down_exps", "block_sparse_moe.experts.%d.w2")
)

func with(names map[string]string, pairs ...string) map[string]string {
	names = maps.Clone(names)
	for i := 0; i < len(pairs); i += 2 {
		names[pairs[i]] = pairs[i+1]
	}
	return names
}

const sizes = `"vocab_size": 300, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 2, "intermediate_size": 64`

var storedModels = map[string]stored{
	"llama": {
		"llama:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300,tied=0", `"rope_theta": 10000, "tie_word_embeddings": false`, usualNames, true, false,
	},
	"mixtral": {
		"llama:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300,tied=0,experts=3,used=2",
		`"rope_theta": 10000, "num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": null`, mixtral, true, false,
	},
	"qwen2": {"qwen2:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300", `"tie_word_embeddings": true, "sliding_window": 131072, "use_sliding_window": false`, usualNames, false, false},
	"qwen3_moe": {
		"qwen3moe:d=32,layers=2,heads=4,kv=2,head=8,ff=16,vocab=300,experts=3,used=2,tied=0",
		`"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "norm_topk_prob": true, "rope_theta": 1e6, "decoder_sparse_step": 1, "mlp_only_layers": []`, usualNames, false, false,
	},
	"gemma3_text": {
		"gemma3:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300,window=6",
		`"rope_theta": 1e6, "rope_local_base_freq": 10000, "sliding_window": 6, "sliding_window_pattern": 6, "query_pre_attn_scalar": 8, "rope_scaling": {"rope_type": "linear", "factor": 8}, "hidden_activation": "gelu_pytorch_tanh"`,
		gemmaNames, false, true,
	},
	"phi3": {
		"phi3:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300,tied=0,window=5,orig=512",
		`"rope_theta": 10000, "sliding_window": 5, "original_max_position_embeddings": 512, "rope_scaling": {"type": "longrope", "short_factor": %SHORT%, "long_factor": %LONG%}`,
		with(usualNames, "attn_qkv", "self_attn.qkv_proj", "ffn_up", "mlp.gate_up_proj"), false, false,
	},
	"granite": {
		"granite:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300",
		`"tie_word_embeddings": true, "attention_multiplier": 0.015625, "embedding_multiplier": 12, "residual_multiplier": 0.22, "logits_scaling": 8`, usualNames, true, false,
	},
	"smollm3": {"smollm3:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300", `"rope_theta": 5e6, "no_rope_layers": [1, 1]`, usualNames, true, false},
	"olmo2": {
		"olmo2:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300,tied=0", `"rope_theta": 500000`,
		with(usualNames, "post_attention_norm", "post_attention_layernorm", "post_ffw_norm", "post_feedforward_layernorm"), false, false,
	},
	"gpt_oss": {
		"gpt-oss:d=32,layers=2,heads=4,kv=2,head=8,ff=64,vocab=300,experts=3,used=2,tied=0,window=128",
		`"rope_theta": 150000, "num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"],
		"quantization_config": {"quant_method": "mxfp4"}, "rope_scaling": {"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 4096}`,
		with(usualNames, "post_attention_norm", "post_attention_layernorm", "attn_sinks", "self_attn.sinks", "ffn_gate_inp", "mlp.router"), false, false,
	},
}

// original is the model as a GGUF file of floats.
func (s stored) original(t *testing.T) *gguf.File {
	t.Helper()
	quant := "f32"
	if strings.HasPrefix(s.description, "gpt-oss") {
		quant = "mxfp4_moe"
	}
	shape, err := synth.Lookup(s.description + ",quant=" + quant)
	if err != nil {
		t.Fatal(err)
	}
	f, err := synth.Memory(t.Context(), shape, 7)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// write stores a model as modelType in a new folder.
func (s stored) write(t *testing.T, modelType string, f *gguf.File) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`{"model_type": %q, %s, %s}`, modelType, sizes, s.config)
	for name, mark := range map[string]string{"rope_factors_short.weight": "%SHORT%", "rope_factors_long.weight": "%LONG%"} {
		if x, ok := f.Tensor(name); ok {
			values, _ := json.Marshal(floats(x.Data()))
			text = strings.Replace(text, mark, string(values), 1)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	for i := range f.Tensors() {
		list = append(list, s.store(t, &f.Tensors()[i])...)
	}
	if err := safetensors.WriteFile(t.Context(), filepath.Join(dir, "model.safetensors"), joined(list), nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// joined puts the halves of gpt-oss's gate and up together: rows take turns.
func joined(list []safetensors.Tensor) (out []safetensors.Tensor) {
	halves := make(map[string]safetensors.Tensor)
	for _, x := range list {
		base, isGate := strings.CutSuffix(x.Name, "#gate")
		other, isUp := strings.CutSuffix(x.Name, "#up")
		switch {
		case isGate:
			halves[base] = x
		case !isUp:
			out = append(out, x)
		}
		if isUp {
			gate := halves[other]
			rowBytes := len(x.Data) / (x.Shape[0] * x.Shape[1])
			var data []byte
			for i := 0; i < len(x.Data); i += rowBytes {
				data = append(append(data, gate.Data[i:i+rowBytes]...), x.Data[i:i+rowBytes]...)
			}
			shape := slices.Clone(x.Shape)
			shape[1] *= 2
			out = append(out, safetensors.Tensor{Name: other, DType: x.DType, Shape: shape, Data: data})
		}
	}
	return out
}

var blockName = regexp.MustCompile(`^blk\.(\d+)\.(\w+)\.(weight|bias)$`)

// store is one tensor of the GGUF file as the folder has it.
func (s stored) store(t *testing.T, x *gguf.Tensor) []safetensors.Tensor {
	t.Helper()
	if strings.HasPrefix(x.Name, "rope_") {
		return nil
	}
	shape, data := x.Shape(), floatsOf(t, x)
	one := func(name string) []safetensors.Tensor {
		return []safetensors.Tensor{{Name: name, DType: safetensors.F32, Shape: shape, Data: data}}
	}
	if s.minusOne && strings.Contains(x.Name, "norm") {
		values := floats(data)
		for i := range values {
			values[i]--
		}
		data = []byte(ir.EncodeTable(ir.F32, doubles(values)))
	}
	switch x.Name {
	case "token_embd.weight":
		return one("model.embed_tokens.weight")
	case "output.weight":
		return one("lm_head.weight")
	case "output_norm.weight":
		return one("model.norm.weight")
	}
	m := blockName.FindStringSubmatch(x.Name)
	prefix := "model.layers." + m[1] + "."
	if strings.HasSuffix(m[2], "_exps") && s.names["attn_sinks"] != "" {
		return storePacked(prefix, m[2], m[3], x)
	}
	name, ok := s.names[m[2]]
	if !ok {
		t.Fatalf("no name for %s", x.Name)
	}
	if strings.Contains(name, "%d") {
		var list []safetensors.Tensor
		size := len(data) / shape[0]
		for e := range shape[0] {
			list = append(list, safetensors.Tensor{Name: prefix + fmt.Sprintf(name, e) + ".weight", DType: safetensors.F32, Shape: shape[1:], Data: data[e*size : (e+1)*size]})
		}
		return list
	}
	if heads := map[string]int{"attn_q": 4, "attn_k": 2}[m[2]]; heads > 0 && s.interleaved {
		data = halved(data, shape[0], heads)
	}
	if m[2] == "attn_sinks" {
		return one(prefix + name)
	}
	return one(prefix + name + "." + m[3])
}

// halved puts the first elements of a head's pairs before the second ones.
func halved(data []byte, rows, heads int) (out []byte) {
	row, size := len(data)/rows, rows/heads
	for h := range heads {
		for j := range 2 {
			for i := range size / 2 {
				at := (h*size + 2*i + j) * row
				out = append(out, data[at:at+row]...)
			}
		}
	}
	return out
}

// storePacked stores experts as gpt-oss does.
func storePacked(prefix, name, kind string, x *gguf.Tensor) []safetensors.Tensor {
	target, mark := prefix+"mlp.experts.down_proj", ""
	if part, ok := strings.CutSuffix(strings.TrimPrefix(name, "ffn_"), "_exps"); ok && part != "down" {
		target, mark = prefix+"mlp.experts.gate_up_proj", "#"+part
	}
	if kind == "bias" {
		return []safetensors.Tensor{{Name: target + "_bias" + mark, DType: safetensors.F32, Shape: x.Shape(), Data: x.Data()}}
	}
	var blocks, scales []byte
	for data := x.Data(); len(data) > 0; data = data[17:] {
		scales = append(scales, data[0])
		var values [32]byte
		for i, b := range data[1:17] {
			values[i], values[i+16] = b&15, b>>4
		}
		for i := range 16 {
			blocks = append(blocks, values[2*i]|values[2*i+1]<<4)
		}
	}
	shape := x.Shape()
	shape[2] /= 32
	return []safetensors.Tensor{
		{Name: target + "_blocks" + mark, DType: safetensors.U8, Shape: append(slices.Clone(shape), 16), Data: blocks},
		{Name: target + "_scales" + mark, DType: safetensors.U8, Shape: shape, Data: scales},
	}
}

// floatsOf are a tensor's values as f32.
func floatsOf(t *testing.T, x *gguf.Tensor) []byte {
	t.Helper()
	values, err := refmodel.Dequantise(nil, x)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(ir.EncodeTable(ir.F32, doubles(values)))
}

func floats(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func doubles(values []float32) (out []float64) {
	for _, v := range values {
		out = append(out, float64(v))
	}
	return out
}

// A folder is the model that was stored: its tensors, and the logits of the reference.
func TestOpen(t *testing.T) {
	for modelType, s := range storedModels {
		t.Run(modelType, func(t *testing.T) {
			want := s.original(t)
			got, err := Open(t.Context(), s.write(t, modelType, want))
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			for i := range want.Tensors() {
				x := &want.Tensors()[i]
				y, ok := got.Tensor(x.Name)
				if !ok || y.Type != x.Type && x.Type != gguf.Q8_0 || !slices.Equal(y.Shape(), x.Shape()) {
					t.Fatalf("%s is %v, want %v", x.Name, y, x)
				}
				if !s.minusOne && string(floatsOf(t, x)) != string(floatsOf(t, y)) {
					t.Errorf("%s has other values", x.Name)
				}
			}
			if len(got.Tensors()) != len(want.Tensors()) {
				t.Errorf("%d tensors, want %d", len(got.Tensors()), len(want.Tensors()))
			}
			if _, err := llm.NewModel(got); err != nil {
				t.Fatal(err)
			}
			compareLogits(t, got, want, modelType == "phi3")
		})
	}
}

// compareLogits feeds both models a few tokens. What follows from a configuration may differ from
// the file's own where a test model has a made-up factor.
func compareLogits(t *testing.T, got, want *gguf.File, madeUp bool) {
	t.Helper()
	a, err := refmodel.Load(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := refmodel.Load(want)
	if err != nil {
		t.Fatal(err)
	}
	x, y := a.NewState(16), b.NewState(16)
	for _, token := range []int{5, 17, 230, 4, 4, 99, 250, 31} {
		if madeUp {
			a.Step(x, token)
			continue
		}
		p, q := a.Step(x, token), b.Step(y, token)
		for i := range p {
			if math.Abs(p[i]-q[i]) > 1e-5 {
				t.Fatalf("logit %d is %g, want %g", i, p[i], q[i])
			}
		}
	}
}

// The same tensors as llama, whose rows GGUF stores in another order, and as qwen2 without
// biases, where it does not, are one function.
func TestRowOrder(t *testing.T) {
	s := storedModels["qwen2"]
	f := s.original(t)
	dir := s.write(t, "qwen2", f)
	w, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	for _, x := range w.Tensors() {
		if strings.HasSuffix(x.Name, ".bias") {
			x.Data = make([]byte, len(x.Data))
		}
		x.Data = slices.Clone(x.Data)
		list = append(list, x)
	}
	w.Close()
	var models []*refmodel.Model
	for _, modelType := range []string{"qwen2", "llama"} {
		text := fmt.Sprintf(`{"model_type": %q, %s, %s}`, modelType, sizes, s.config)
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := safetensors.WriteFile(t.Context(), filepath.Join(dir, "model.safetensors"), list, nil); err != nil {
			t.Fatal(err)
		}
		f, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		m, err := refmodel.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
		f.Close()
	}
	x, y := models[0].NewState(8), models[1].NewState(8)
	for _, token := range []int{5, 17, 230, 4, 99} {
		p, q := models[0].Step(x, token), models[1].Step(y, token)
		for i := range p {
			if math.Abs(p[i]-q[i]) > 1e-9 {
				t.Fatalf("logit %d is %g as qwen2 and %g as llama", i, p[i], q[i])
			}
		}
	}
}

// Convert writes a file that opens, with the types of the mixture.
func TestConvert(t *testing.T) {
	s := storedModels["llama"]
	out := filepath.Join(t.TempDir(), "m.gguf")
	for name, want := range map[string]gguf.Type{"": gguf.F32, "q8_0": gguf.Q8_0, "Q4_0": gguf.Q4_0, "bf16": gguf.BF16} {
		if err := Convert(t.Context(), s.write(t, "llama", s.original(t)), name, out, nil); err != nil {
			t.Fatal(err)
		}
		m, err := llm.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		if x, _ := m.File.Tensor("blk.1.ffn_down.weight"); x.Type != want {
			t.Errorf("%q: ffn_down is %s, want %s", name, x.Type, want)
		}
		m.Close()
	}
	if err := Convert(t.Context(), t.TempDir(), "q8_0", out, nil); err == nil {
		t.Error("an empty folder was converted")
	}
}

// Convert packs in the mixtures and types that it is given, and what it packs is close to
// what the folder has.
func TestConvertPacks(t *testing.T) {
	s := stored{
		"llama:d=256,layers=1,heads=4,kv=2,head=64,ff=256,vocab=300,tied=0",
		`"hidden_size": 256, "head_dim": 64, "num_hidden_layers": 1, "intermediate_size": 256, "tie_word_embeddings": false`, usualNames, true, false,
	}
	original := s.original(t)
	dir := s.write(t, "llama", original)
	for _, name := range []string{"q2_k", "q3_k_m", "Q4_1", "q5_1", "iq4_xs", "iq4_nl", "iq2_s", "mxfp4", "nvfp4", "tq1_0", "tq2_0", "q1_0", "q2_0"} {
		out := filepath.Join(t.TempDir(), "m.gguf")
		if err := Convert(t.Context(), dir, name, out, nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := llm.Open(out)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		x, _ := m.File.Tensor("blk.0.ffn_up.weight")
		if want, _ := gguf.TypeByName(strings.TrimSuffix(name, "_m")); x.Type != want {
			t.Errorf("%s: ffn_up is %s", name, x.Type)
		}
		y, _ := original.Tensor(x.Name)
		squares, all := 0.0, 0.0
		got, err := refmodel.Dequantise(nil, x)
		if err != nil { // types of package packed's tests alone
			m.Close()
			continue
		}
		for i, v := range floats(y.Data()) {
			squares += float64(v-got[i]) * float64(v-got[i])
			all += float64(v) * float64(v)
		}
		if loss := math.Sqrt(squares / all); loss > 0.65 { // of one bit a value, 0.6
			t.Errorf("%s: ffn_up is off by %.3g of its size", name, loss)
		}
		m.Close()
	}
	d := &folder{config: &config{architecture: "llama", width: 256, layers: 9, heads: 4, kvHeads: 1, head: 64, feed: 256, vocabulary: 300}}
	for _, name := range append(strings.Split(QuantNames(), ", "), "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "IQ1_S") {
		if _, err := d.mixtureTypes(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	experts := &folder{config: &config{architecture: "qwen3moe", width: 256, layers: 2, heads: 4, kvHeads: 2, head: 64, feed: 256, vocabulary: 300, experts: 4, used: 2}}
	types, err := experts.mixtureTypes("mxfp4_moe")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]gguf.Type{"blk.1.ffn_down_exps.weight": gguf.MXFP4, "blk.1.attn_q.weight": gguf.Q8_0} {
		if got := types(&tensor{name: name}); got != want {
			t.Errorf("mxfp4_moe: %s is %s, want %s", name, got, want)
		}
	}
	for name, says := range map[string]string{"q9": "no mixture or type is called", "i32": "cannot be packed"} {
		err := Convert(t.Context(), dir, name, filepath.Join(t.TempDir(), "m.gguf"), nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error with %q", name, err, says)
		}
	}
}

// What is not known is refused by name.
func TestConfigRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                        "model_type",
		`{"model_type": "mamba"}`:   "mamba",
		`{"model_type": "llama"}`:   "hidden_size",
		`{"model_type": ["llama"]}`: "model_type",
		`{"model_type": "llama", ` + sizes + `, "quantization_config": {"bits": 4}}`:                                                                                          "quantization_config",
		`{"model_type": "llama", ` + sizes + `, "hidden_act": "relu"}`:                                                                                                        "relu",
		`{"model_type": "qwen2", ` + sizes + `, "use_sliding_window": true, "sliding_window": 16}`:                                                                            "sliding_window",
		`{"model_type": "llama", ` + sizes + `, "rope_scaling": {"type": "dynamic", "factor": 2}}`:                                                                            "dynamic",
		`{"model_type": "olmoe", ` + sizes + `, "num_experts": 4, "norm_topk_prob": true}`:                                                                                    "norm_topk_prob",
		`{"model_type": "gemma2", ` + sizes + `, "query_pre_attn_scalar": 144}`:                                                                                               "query_pre_attn_scalar",
		`{"model_type": "phi3", ` + sizes + `, "rope_scaling": {"type": "longrope", "long_factor": [1]}}`:                                                                     "factors",
		`{"model_type": "smollm3", ` + sizes + `, "no_rope_layers": [0, 1]}`:                                                                                                  "no_rope_layers",
		`{"model_type": "llama", ` + sizes + `, "attn_temperature_tuning": true}`:                                                                                             "attn_temperature_tuning",
		`{"model_type": "gemma3_text", ` + sizes + `, "use_bidirectional_attention": true}`:                                                                                   "use_bidirectional_attention",
		`{"model_type": "gpt_oss", ` + sizes + `, "swiglu_limit": 5.0}`:                                                                                                       "swiglu_limit",
		`{"model_type": "qwen3", ` + sizes + `, "layer_types": ["linear_attention", "full_attention"]}`:                                                                       "linear_attention",
		`{"model_type": "llama", ` + sizes + `, "rope_parameters": {"rope_type": "dynamic", "factor": 2}}`:                                                                    "dynamic",
		`{"model_type": "gemma3_text", ` + sizes + `, "rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_type": "linear", "factor": 2}}}`: "sliding_attention",
		`{"model_type": "phi3", ` + sizes + `, "rope_scaling": {"type": "longrope", "short_mscale": 1.2}}`:                                                                    "short_mscale",
	} {
		if _, err := parseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %s", text, err, want)
		}
	}
	c, err := parseConfig([]byte(`{"model_type": "mistral", ` + sizes + `, "sliding_window": 16}`))
	if err != nil || c.architecture != "mistral" {
		t.Errorf("a window of mistral: %v", err)
	}
}

// What newer files put into rope_parameters is what older ones have in several keys.
func TestRopeParameters(t *testing.T) {
	for newer, older := range map[string]string{
		`{"model_type": "llama", ` + sizes + `, "rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 512}}`:                            `{"model_type": "llama", ` + sizes + `, "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 512}}`,
		`{"model_type": "qwen3", ` + sizes + `, "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}`:                                                                                                                              `{"model_type": "qwen3", ` + sizes + `, "rope_theta": 1e6}`,
		`{"model_type": "phi3", ` + sizes + `, "rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.75}}`:                                                                                                                        `{"model_type": "phi3", ` + sizes + `, "rope_theta": 1e4, "partial_rotary_factor": 0.75}`,
		`{"model_type": "gemma3_text", ` + sizes + `, "sliding_window": 8, "rope_parameters": {"full_attention": {"rope_theta": 1e6, "rope_type": "linear", "factor": 8}, "sliding_attention": {"rope_theta": 2e4, "rope_type": "default"}}}`: `{"model_type": "gemma3_text", ` + sizes + `, "sliding_window": 8, "rope_theta": 1e6, "rope_local_base_freq": 2e4, "rope_scaling": {"type": "linear", "factor": 8}}`,
	} {
		got, err := parseConfig([]byte(newer))
		if err != nil {
			t.Errorf("%s: %v", newer, err)
			continue
		}
		want, err := parseConfig([]byte(older))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.keys, got.factors) != fmt.Sprint(want.keys, want.factors) {
			t.Errorf("%s:\n got %v %v\nwant %v %v", newer, got.keys, got.factors, want.keys, want.factors)
		}
	}
}

func FuzzConfig(f *testing.F) {
	for modelType, s := range storedModels {
		f.Add([]byte(fmt.Sprintf(`{"model_type": %q, %s, %s}`, modelType, sizes, s.config)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig(text)
		if err != nil {
			return
		}
		for _, e := range c.keys {
			if _, err := gguf.MakeValue(e.value); err != nil {
				t.Fatalf("%s: %v", e.key, err)
			}
			if x, ok := e.value.(float32); ok && (math.IsNaN(float64(x)) || math.IsInf(float64(x), 0)) {
				t.Fatalf("%s is %v", e.key, x)
			}
		}
	})
}
