package layer

import (
	"tgc/internal/lists"
	"tgc/nn"
	"tgc/tensor"
)

// Conv is a convolution over one spatial axis or more. Weight is
// [out, in/groups, kernel..], Bias [out] or nil.
type Conv struct {
	Weight, Bias *tensor.Tensor
	Options      tensor.ConvOptions
	Scope        *nn.Parameters
}

// NewConv registers weight and bias for a kernel of these extents, both within
// 1/sqrt(in/groups * window).
func NewConv(p *nn.Parameters, in, out int, kernel []int, opt tensor.ConvOptions) *Conv {
	groups := max(opt.Groups, 1)
	if in%groups != 0 || out%groups != 0 {
		p.Graph().Fail("conv", "%d channels to %d in %d groups", in, out, groups)
	}
	shape := append([]int{out, in / groups}, kernel...)
	init := within(lists.Product(shape[1:]))
	return &Conv{Weight: p.Weight("weight", init, shape...), Bias: p.Weight("bias", init, out), Options: opt, Scope: p}
}

// NewConv1d is NewConv over one axis.
func NewConv1d(p *nn.Parameters, in, out, kernel int, opt tensor.ConvOptions) *Conv {
	return NewConv(p, in, out, []int{kernel}, opt)
}

// NewConv2d is NewConv over two axes with a square kernel.
func NewConv2d(p *nn.Parameters, in, out, kernel int, opt tensor.ConvOptions) *Conv {
	return NewConv(p, in, out, []int{kernel, kernel}, opt)
}

// Forward maps x [B, in, ..] to [B, out, ..].
func (l *Conv) Forward(x *tensor.Tensor) *tensor.Tensor {
	return operand(l.Scope, x).Conv(operand(l.Scope, l.Weight), l.Bias, l.Options)
}

// ConvTranspose is the adjoint of Conv in its input, for upsampling. Weight is
// [in, out/groups, kernel..], Bias [out] or nil.
type ConvTranspose struct {
	Weight, Bias *tensor.Tensor
	Options      tensor.ConvOptions
	Scope        *nn.Parameters
}

// NewConvTranspose registers weight and bias for a kernel of these extents, both
// within 1/sqrt(out/groups * window), as PyTorch has it.
func NewConvTranspose(p *nn.Parameters, in, out int, kernel []int, opt tensor.ConvOptions) *ConvTranspose {
	groups := max(opt.Groups, 1)
	if in%groups != 0 || out%groups != 0 {
		p.Graph().Fail("conv_transpose", "%d channels to %d in %d groups", in, out, groups)
	}
	shape := append([]int{in, out / groups}, kernel...)
	init := within(lists.Product(shape[1:]))
	return &ConvTranspose{Weight: p.Weight("weight", init, shape...), Bias: p.Weight("bias", init, out), Options: opt, Scope: p}
}

// Forward maps x [B, in, ..] to [B, out, ..].
func (l *ConvTranspose) Forward(x *tensor.Tensor) *tensor.Tensor {
	return operand(l.Scope, x).ConvTranspose(operand(l.Scope, l.Weight), l.Bias, l.Options)
}
