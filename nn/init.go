package nn

import (
	"encoding/binary"
	"hash/fnv"
	"math"

	"tgc/internal/lists"
	"tgc/ir"
)

// Init is the distribution of a value before training. Element i of a parameter
// is a pure function of the seed, the parameter's name and i: neither the order
// of registration nor other parameters matter.
type Init struct {
	kind  initKind
	scale float64 // of the distribution, before fans
	mean  float64
}

type initKind uint8

const (
	initConstant initKind = iota // mean everywhere
	initNormal                   // mean, standard deviation scale
	initUniform                  // mean - scale to mean + scale
	initXavierUniform
	initXavierNormal
	initKaimingUniform
	initKaimingNormal
)

// Zeros is 0 everywhere.
func Zeros() Init { return Init{} }

// Constant is v everywhere.
func Constant(v float64) Init { return Init{mean: v} }

// Ones is 1 everywhere.
func Ones() Init { return Constant(1) }

// Normal has mean 0 and this standard deviation.
func Normal(deviation float64) Init { return Init{kind: initNormal, scale: deviation} }

// Uniform lies in low..high.
func Uniform(low, high float64) Init {
	return Init{kind: initUniform, scale: (high - low) / 2, mean: (high + low) / 2}
}

// XavierUniform is uniform with variance 2*gain^2 / (fan in + fan out) (Glorot
// and Bengio 2010). Fans are those of a weight [out, in, window..].
func XavierUniform(gain float64) Init { return Init{kind: initXavierUniform, scale: gain} }

// XavierNormal is XavierUniform as a normal distribution.
func XavierNormal(gain float64) Init { return Init{kind: initXavierNormal, scale: gain} }

// KaimingUniform is uniform with variance gain^2 / fan in (He et al. 2015); the
// gain of a layer before a ReLU is sqrt(2).
func KaimingUniform(gain float64) Init { return Init{kind: initKaimingUniform, scale: gain} }

// KaimingNormal is KaimingUniform as a normal distribution.
func KaimingNormal(gain float64) Init { return Init{kind: initKaimingNormal, scale: gain} }

// Fill draws the values of a parameter.
func (in Init) Fill(seed uint32, name string, shape []int) []float32 {
	count := lists.Product(shape)
	stream := newStream(seed, name)
	values := make([]float32, count)
	fanIn, fanOut := fans(shape)
	scale := in.scale
	switch in.kind {
	case initXavierUniform, initXavierNormal:
		scale *= math.Sqrt(2 / (fanIn + fanOut))
	case initKaimingUniform, initKaimingNormal:
		scale /= math.Sqrt(fanIn)
	}
	for i := range values {
		v := in.mean
		switch in.kind {
		case initNormal, initXavierNormal, initKaimingNormal:
			v += scale * stream.normal(i)
		case initUniform:
			v += scale * stream.signed(i)
		case initXavierUniform, initKaimingUniform: // scale is the deviation
			v += scale * math.Sqrt(3) * stream.signed(i)
		}
		values[i] = float32(v)
	}
	return values
}

// fans are the numbers of inputs and outputs that meet in a weight
// [out, in, window..]; a vector has fans of its length.
func fans(shape []int) (in, out float64) {
	switch len(shape) {
	case 0:
		return 1, 1
	case 1:
		return math.Max(float64(shape[0]), 1), math.Max(float64(shape[0]), 1)
	}
	window := lists.Product(shape[2:])
	return math.Max(float64(shape[1]*window), 1), math.Max(float64(shape[0]*window), 1)
}

// stream is the counter-based source of one parameter's values.
type stream struct{ key uint32 }

func newStream(seed uint32, name string) stream {
	hash := fnv.New32a()
	var head [4]byte
	binary.LittleEndian.PutUint32(head[:], seed)
	hash.Write(head[:])
	hash.Write([]byte(name))
	return stream{key: hash.Sum32()}
}

// unit is uniform in (0, 1): the middle of one of 2^32 cells.
func (s stream) unit(counter int) float64 {
	return (float64(ir.Threefry(s.key, uint32(counter))) + 0.5) / (1 << 32)
}

// signed is uniform in (-1, 1).
func (s stream) signed(i int) float64 { return 2*s.unit(i) - 1 }

// normal is standard normal (Box and Muller 1958).
func (s stream) normal(i int) float64 {
	return math.Sqrt(-2*math.Log(s.unit(2*i))) * math.Cos(2*math.Pi*s.unit(2*i+1))
}
