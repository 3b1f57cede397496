package llm

import (
	"maps"
	"slices"
	"strings"

	"tgc/nn"
)

// architecture is what sets a family of models apart: one row each. What a family
// has in a single form needs no field; what a file says about itself (a fused
// projection, an optional bias) is read from the file.
type architecture struct {
	norm    normKind
	epsilon string   // metadata key
	biases  []string // matrices of a block that have a bias in every file; others may

	// Blocks are normalised before attention and feed-forward, after them, or both.
	noNormBefore, normAfter bool
	attentionPostNorm       bool // the norm before the feed-forward part has the name of one after attention

	learned  bool // positions are learned rows; else rotary
	pairing  nn.Pairing
	unturned int // every so many layers, one goes without rotation; 0: none
	// rotarySwitch is a metadata key that turns rotation off in all layers where it is false.
	rotarySwitch string
	headNorm     headNorm
	sinks        bool // a logit a head beside the scores, with no value

	windows windows

	feed    feedKind
	experts expertKind

	scales scales
}

// feedNorm is the name of the norm before the feed-forward part.
func (a architecture) feedNorm() string {
	if a.attentionPostNorm {
		return "post_attention_norm"
	}
	return "ffn_norm"
}

// windows says how a family uses attention.sliding_window.
type windows struct {
	known   bool
	missing int // rows of a window where the file does not say; 0: no windows
	period  int // every so many layers, the last sees all; 1: every layer has a window; a file may say otherwise
	// localBase is the rotary base of layers with a window where the file does not
	// say; 0: that of the others.
	localBase float64
	// localPlain says that those layers' frequencies are not scaled.
	localPlain bool
}

// scales are the factors and bounds of a family.
type scales struct {
	embeddingRoot bool // embeddings times the square root of the width
	granite       bool // the four factors of Granite's metadata
	softCaps      bool // bounds of scores and logits in the metadata
	// wideScaleLayers is the number of layers of the size whose attention is scaled by
	// the width over the heads, not by the head size: no metadata says so.
	wideScaleLayers int
	temperature     bool // queries of far positions are scaled up (attention.temperature_scale)
}

type normKind uint8

const (
	rmsNorm normKind = iota
	layerNorm
)

// headNorm says over what queries and keys are normalised before rotation.
type headNorm uint8

const (
	headNormNone headNorm = iota
	headNormEach          // each head by itself (Qwen3)
	headNormAll           // the whole projection (OLMoE)
)

// feedKind is the form of the feed-forward part.
type feedKind uint8

const (
	feedSwiGLU      feedKind = iota // silu(gate) * up
	feedGeGLU                       // gelu(gate) * up
	feedPlain                       // gelu between two layers
	feedClampedGLU                  // gpt-oss: both bounded, a sharper sigmoid, 1 added to up
	feedFusedSwiGLU                 // SwiGLU with the gate as the first half of ffn_up
)

// expertKind says how a mixture of experts is weighed.
type expertKind uint8

const (
	expertsNone     expertKind = iota
	expertsAmongAll            // by probabilities among all experts
	expertsChosen              // by probabilities among the chosen
	expertsMaybe               // as expertsChosen, in files that have experts
)

const rmsEpsilon = "attention.layer_norm_rms_epsilon"

var (
	qkvBiases  = []string{"attn_q", "attn_k", "attn_v"}
	gpt2Biases = []string{"attn_qkv", "attn_output", "ffn_up", "ffn_down"}
	ossBiases  = []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}
)

var architectures = map[string]architecture{
	"llama":    {pairing: nn.PairNeighbours, epsilon: rmsEpsilon, experts: expertsMaybe},
	"mistral":  {pairing: nn.PairNeighbours, epsilon: rmsEpsilon, experts: expertsMaybe, windows: windows{known: true, period: 1}},
	"mistral3": {pairing: nn.PairNeighbours, epsilon: rmsEpsilon, experts: expertsMaybe, scales: scales{temperature: true}},
	"qwen2":    {pairing: nn.PairHalves, epsilon: rmsEpsilon, biases: qkvBiases},
	"qwen3":    {pairing: nn.PairHalves, epsilon: rmsEpsilon, headNorm: headNormEach},
	"qwen3moe": {pairing: nn.PairHalves, epsilon: rmsEpsilon, headNorm: headNormEach, experts: expertsChosen},
	"olmoe":    {pairing: nn.PairHalves, epsilon: rmsEpsilon, headNorm: headNormAll, experts: expertsAmongAll},
	"olmo2": {
		pairing: nn.PairHalves, epsilon: rmsEpsilon, headNorm: headNormAll, noNormBefore: true, normAfter: true,
		windows: windows{known: true, period: 4, localPlain: true},
	},
	"gemma2": {
		pairing: nn.PairHalves, epsilon: rmsEpsilon, normAfter: true, feed: feedGeGLU,
		windows: windows{known: true, missing: 4096, period: 2},
		scales:  scales{embeddingRoot: true, softCaps: true, wideScaleLayers: 46},
	},
	"gemma3": {
		pairing: nn.PairHalves, epsilon: rmsEpsilon, headNorm: headNormEach, normAfter: true, feed: feedGeGLU,
		windows: windows{known: true, period: 6, localBase: 10000, localPlain: true},
		scales:  scales{embeddingRoot: true, softCaps: true, wideScaleLayers: 62},
	},
	"phi3":    {pairing: nn.PairHalves, epsilon: rmsEpsilon, feed: feedFusedSwiGLU, windows: windows{known: true, period: 1}},
	"granite": {pairing: nn.PairNeighbours, epsilon: rmsEpsilon, rotarySwitch: "rope.scaling.finetuned", scales: scales{granite: true}},
	"smollm3": {pairing: nn.PairNeighbours, epsilon: rmsEpsilon, unturned: 4},
	"gpt-oss": {
		pairing: nn.PairHalves, epsilon: rmsEpsilon, biases: ossBiases, attentionPostNorm: true, sinks: true,
		windows: windows{known: true, period: 2}, feed: feedClampedGLU, experts: expertsChosen,
	},
	"gpt2": {norm: layerNorm, learned: true, feed: feedPlain, epsilon: "attention.layer_norm_epsilon", biases: gpt2Biases},
}

// Architectures lists the values of general.architecture that models may have.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }

func architectureList() string { return strings.Join(Architectures(), ", ") }
