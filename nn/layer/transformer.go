package layer

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/nn"
	"tgc/tensor"
)

// BlockOptions describes blocks of transformers.
type BlockOptions struct {
	AttentionOptions         // of a block's sequence to itself
	Hidden           int     // width within the feed-forward network; 0 means 4*Width
	Dropout          float64 // of what each part adds
	// NormLast normalises sums, as the first transformers did; without it what goes into each
	// part is normalised (Xiong et al. 2020).
	NormLast bool
}

// part is a layer of a block with its norm: it adds to what it is given.
type part struct {
	norm    *LayerNorm
	dropout *Dropout
	last    bool
}

func newPart(p *nn.Parameters, opt BlockOptions) part {
	return part{norm: NewLayerNorm(p, opt.Width), dropout: NewDropout(p, opt.Dropout), last: opt.NormLast}
}

// add is x + f(norm(x)), or norm(x + f(x)).
func (l part) add(x *tensor.Tensor, f func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	if l.last {
		return l.norm.Forward(x.Add(l.dropout.Forward(f(x))))
	}
	return x.Add(l.dropout.Forward(f(l.norm.Forward(x))))
}

func (opt BlockOptions) hidden() int {
	if opt.Hidden == 0 {
		return 4 * opt.Width
	}
	return opt.Hidden
}

// EncoderBlock is self-attention and a feed-forward network, each with a norm and a residual
// (Vaswani et al. 2017). With Causal it is the block of a decoder-only model.
type EncoderBlock struct {
	Attention *Attention
	MLP       *MLP
	parts     [2]part
}

// NewEncoderBlock registers attention, mlp and their norms.
func NewEncoderBlock(p *nn.Parameters, opt BlockOptions) *EncoderBlock {
	return &EncoderBlock{
		Attention: NewAttention(p.In("attention"), opt.AttentionOptions),
		MLP:       NewMLP(p.In("mlp"), opt.Width, opt.hidden()),
		parts:     [2]part{newPart(p.In("attention_norm"), opt), newPart(p.In("mlp_norm"), opt)},
	}
}

// Forward maps x [B, T, width] to the same shape; mask is Attention's and may be nil.
func (l *EncoderBlock) Forward(x, mask *tensor.Tensor) *tensor.Tensor {
	x = l.parts[0].add(x, func(x *tensor.Tensor) *tensor.Tensor { return l.Attention.Forward(x, mask) })
	return l.parts[1].add(x, l.MLP.Forward)
}

// DecoderBlock is causal self-attention, attention to what an encoder made, and a feed-forward
// network.
type DecoderBlock struct {
	Attention, Cross *Attention
	MLP              *MLP
	parts            [3]part
}

// NewDecoderBlock registers attention, cross, mlp and their norms. Self-attention is causal
// whatever the options say; what is attended to has opt.Memory elements a position.
func NewDecoderBlock(p *nn.Parameters, opt BlockOptions) *DecoderBlock {
	own, cross := opt.AttentionOptions, opt.AttentionOptions
	own.Causal, own.Memory = true, 0
	cross.Causal, cross.Rotary = false, nil // positions of two sequences have no distance
	return &DecoderBlock{
		Attention: NewAttention(p.In("attention"), own), Cross: NewAttention(p.In("cross"), cross),
		MLP:   NewMLP(p.In("mlp"), opt.Width, opt.hidden()),
		parts: [3]part{newPart(p.In("attention_norm"), opt), newPart(p.In("cross_norm"), opt), newPart(p.In("mlp_norm"), opt)},
	}
}

// Forward maps x [B, T, width] and memory [B, S, memory] to x's shape. mask hides positions
// of memory (Bool, broadcast to [B, heads, T, S]; true where a query may look) and may be nil.
func (l *DecoderBlock) Forward(x, memory, mask *tensor.Tensor) *tensor.Tensor {
	x = l.parts[0].add(x, func(x *tensor.Tensor) *tensor.Tensor { return l.Attention.Forward(x, nil) })
	x = l.parts[1].add(x, func(x *tensor.Tensor) *tensor.Tensor { return l.Cross.Cross(x, memory, mask) })
	return l.parts[2].add(x, l.MLP.Forward)
}

// Encoder is blocks one after the other and, where norms come first, one at the end.
type Encoder struct {
	Blocks []*EncoderBlock
	Norm   *LayerNorm // nil: none
}

// NewEncoder registers blocks "0", "1" .. and norm.
func NewEncoder(p *nn.Parameters, layers int, opt BlockOptions) *Encoder {
	l := &Encoder{Blocks: lists.Make(layers, func(n int) *EncoderBlock { return NewEncoderBlock(p.In(fmt.Sprint(n)), opt) })}
	if !opt.NormLast {
		l.Norm = NewLayerNorm(p.In("norm"), opt.Width)
	}
	return l
}

// Forward maps x [B, T, width] to the same shape; mask is Attention's and may be nil.
func (l *Encoder) Forward(x, mask *tensor.Tensor) *tensor.Tensor {
	for _, block := range l.Blocks {
		x = block.Forward(x, mask)
	}
	if l.Norm != nil {
		x = l.Norm.Forward(x)
	}
	return x
}

// Decoder is decoder blocks one after the other and, where norms come first, one at the end.
type Decoder struct {
	Blocks []*DecoderBlock
	Norm   *LayerNorm // nil: none
}

// NewDecoder registers blocks "0", "1" .. and norm.
func NewDecoder(p *nn.Parameters, layers int, opt BlockOptions) *Decoder {
	l := &Decoder{Blocks: lists.Make(layers, func(n int) *DecoderBlock { return NewDecoderBlock(p.In(fmt.Sprint(n)), opt) })}
	if !opt.NormLast {
		l.Norm = NewLayerNorm(p.In("norm"), opt.Width)
	}
	return l
}

// Forward maps x [B, T, width] and memory [B, S, memory] to x's shape; mask is DecoderBlock's.
func (l *Decoder) Forward(x, memory, mask *tensor.Tensor) *tensor.Tensor {
	for _, block := range l.Blocks {
		x = block.Forward(x, memory, mask)
	}
	if l.Norm != nil {
		x = l.Norm.Forward(x)
	}
	return x
}

// Positions adds a trained vector to each position of a sequence.
type Positions struct{ Weight *tensor.Tensor }

// NewPositions registers a table for sequences of up to length positions, normal with
// deviation 0.02.
func NewPositions(p *nn.Parameters, length, width int) *Positions {
	return &Positions{Weight: p.Weight("weight", nn.Normal(0.02), length, width)}
}

// Forward maps x [.., T, width] to the same shape.
func (l *Positions) Forward(x *tensor.Tensor) *tensor.Tensor {
	if t := x.Extent(-2); t > l.Weight.Extent(0) {
		return x.Graph().Fail("positions", "%s has %d positions, want at most %d", x, t, l.Weight.Extent(0))
	}
	return x.Add(l.Weight.SliceInts(0, 0, x.Extent(-2)))
}
