package tensor_test

import (
	"math"
	"testing"

	"tgc/engine"
	"tgc/engine/traffic"
	"tgc/grad"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// costRow is an operation at a size with what it costs by the book: how many operations an
// everyday algorithm makes for it, and how many numbers it reads and writes in memory.
type costRow struct {
	name                string
	build               func(in inputsOf) *tensor.Tensor
	operations, numbers float64
	launches            int  // at most; of the derivative three times as many
	derivative          bool // by x
}

// inputsOf makes inputs: x is the first, by which derivatives are taken.
type inputsOf struct {
	graph *tensor.Graph
	first **tensor.Tensor
}

func (in inputsOf) x(shape ...int) *tensor.Tensor {
	*in.first = in.graph.Input("x", ir.F32, shape...)
	return *in.first
}
func (in inputsOf) y(shape ...int) *tensor.Tensor { return in.graph.Input("y", ir.F32, shape...) }
func (in inputsOf) integers(name string, shape ...int) *tensor.Tensor {
	return in.graph.Input(name, ir.I32, shape...)
}

// How far a program may be from the book: instructions of addresses, loads and stores beside
// operations, what is computed again instead of kept. A derivative is at most five times its
// function (Baur and Strassen 1983), and writes what its function need not.
const (
	mostInstructions = 12
	mostNumbers      = 4
	ofDerivative     = 5
)

// many is the number of elements of what is computed element by element.
const many = 1 << 16

// costs are the newer operations. Logarithms, exponentials and roots are 10 operations, a random
// number 20, a division 4.
var costs = []costRow{
	{"uniform", func(in inputsOf) *tensor.Tensor { return in.graph.Random(1).Uniform(0, 1, many) }, 22 * many, many, 2, false},
	{"normal", func(in inputsOf) *tensor.Tensor { return in.graph.Random(1).Normal(0, 1, many) }, 60 * many, many, 2, false},
	{"integers", func(in inputsOf) *tensor.Tensor { return in.graph.Random(1).Integers(0, 10, many) }, 24 * many, many, 2, false},
	{"bernoulli", func(in inputsOf) *tensor.Tensor { return in.graph.Random(1).Bernoulli(0.3, many) }, 22 * many, many, 2, false},
	// Running sums of the weights, then a binary search for each number.
	{"multinomial", func(in inputsOf) *tensor.Tensor { return in.graph.Random(1).Multinomial(in.x(1024), 4096) }, 4096*(40+12*10) + 3*square(1024), 4096 + 4*1024, 8, false},
	{"permutation", func(in inputsOf) *tensor.Tensor { return in.graph.Random(1).Permutation(1 << 12) }, 2*sortCost(1<<12) + 20<<12, 2 * 80 * 1 << 12, 80, false},
	{"eye", func(in inputsOf) *tensor.Tensor { return in.graph.Eye(ir.F32, 256) }, 256 * 256, 256 * 256, 1, false},
	{"arange", func(in inputsOf) *tensor.Tensor { return in.graph.Arange(ir.F32, 0, many, 1) }, 2 * many, many, 1, false},
	{"linspace", func(in inputsOf) *tensor.Tensor { return in.graph.Linspace(ir.F32, 0, 1, many) }, 4 * many, many, 1, false},
	{"meshgrid", func(in inputsOf) *tensor.Tensor { return tensor.Meshgrid(in.x(256), in.y(256))[0].Contiguous() }, 256 * 256, 256 * 256, 1, true},

	{"solve", func(in inputsOf) *tensor.Tensor { return in.x(64, 64).Solve(in.y(64, 8)) }, 2.0/3*cube(64) + 2*8*square(64) + panels(64), steps(64), 64*5 + 40, true},
	{"inverse", func(in inputsOf) *tensor.Tensor { return in.x(64, 64).Inverse() }, 2*cube(64) + panels(64), steps(64), 64*5 + 40, true},
	{"determinant", func(in inputsOf) *tensor.Tensor { return in.x(64, 64).Det() }, 2.0/3*cube(64) + panels(64), steps(64), 64*5 + 40, true},
	{"cholesky", func(in inputsOf) *tensor.Tensor { return in.x(64, 64).Cholesky() }, 1.0/3*cube(64) + panels(64), steps(64), 64*3 + 40, true},
	{"qr", func(in inputsOf) *tensor.Tensor { q, _ := in.x(64, 64).QR(); return q }, 8.0/3*cube(64) + 3*panels(64), 3 * steps(64), 64*4 + 40, true},
	// Eight sweeps of n-1 rounds, each of which turns all of a matrix and of its vectors.
	{"eigh", func(in inputsOf) *tensor.Tensor { l, _ := in.x(32, 32).Eigh(); return l }, 10 * 8 * 31 * 2 * square(32), 8 * 31 * 32 * 32 * 4, 8*31*3 + 40, true},
	{"svd", func(in inputsOf) *tensor.Tensor { _, s, _ := in.x(32, 32).SVD(); return s }, 10 * 8 * 31 * 2 * square(32), 8 * 31 * 32 * 32 * 4, 8*31*3 + 40, true},

	// By two steps of 32, each a product with a matrix of 32 complex numbers.
	{"fft", func(in inputsOf) *tensor.Tensor {
		return tensor.Complex{Real: in.x(64, 1024), Imag: in.y(64, 1024)}.FFT(-1).Real
	}, 64 * 1024 * 4 * (32 + 32), 64 * 1024 * 8, 12, true},
	{"fft of reals", func(in inputsOf) *tensor.Tensor { return in.x(64, 1024).RFFT(-1).Real }, 64 * 1024 * 2 * (32 + 32), 64 * 1024 * 4, 14, true},

	// Running sums of so few numbers are one kernel of n^2 additions, ranks one of n^2 comparisons,
	// counts a comparison with each bin.
	{"unique", func(in inputsOf) *tensor.Tensor { return in.x(1 << 12).Unique(64).Values }, sortCost(1<<12) + 3*square(1<<12), 2 * 90 * 1 << 12, 90, false},
	{"nonzero", func(in inputsOf) *tensor.Tensor { c, _ := in.x(1 << 12).Nonzero(1 << 12); return c }, 3 * square(1<<12), 4 * 1 << 12, 12, false},
	{"masked select", func(in inputsOf) *tensor.Tensor {
		v, _ := in.x(1<<12).MaskedSelect(in.integers("m", 1<<12).Cast(ir.Bool), 1<<12)
		return v
	}, 3 * square(1<<12), 5 * 1 << 12, 12, true},
	{"bincount", func(in inputsOf) *tensor.Tensor { return in.integers("x", many).Bincount(256) }, 256 * many, 2*many + 256, 4, false},
	{"searchsorted", func(in inputsOf) *tensor.Tensor { return in.x(1024).SearchSorted(in.y(1<<14), false) }, (1 << 14) * 10 * 4, 2*(1<<14) + 1024, 3, false},
	{"quantile", func(in inputsOf) *tensor.Tensor { return in.x(16, 1024).Quantile(0.3, -1) }, 16 * 4 * square(1024), 4 * 16 * 1024, 80, true},
	{"median", func(in inputsOf) *tensor.Tensor { return in.x(16, 1024).Median(-1) }, 16 * 4 * square(1024), 4 * 16 * 1024, 80, true},

	// A block of a GPU folds its rows in log2(1024) steps: does an element lie before, choose, combine.
	{"running product", func(in inputsOf) *tensor.Tensor { return in.x(64, 1024).Cumprod(1) }, 10 * 3 * many, 2 * many, 1, true},
	{"running maximum", func(in inputsOf) *tensor.Tensor { y, _ := in.x(64, 1024).Cummax(1); return y }, 10 * 3 * many, 2 * many, 1, true},
	{"running log of sums", func(in inputsOf) *tensor.Tensor { return in.x(64, 1024).LogCumSumExp(1) }, (30 + 10*4) * many, 3 * many, 2, true},

	{"nan to num", func(in inputsOf) *tensor.Tensor { return in.x(many).NanToNum() }, 6 * many, 2 * many, 1, true},
	{"is close", func(in inputsOf) *tensor.Tensor { return in.x(many).IsClose(in.y(many)) }, 8 * many, 3 * many, 1, false},
	{"logaddexp", func(in inputsOf) *tensor.Tensor { return in.x(many).LogAddExp(in.y(many)) }, 26 * many, 3 * many, 1, true},
	{"erfinv", func(in inputsOf) *tensor.Tensor { return in.x(many).Erfinv() }, 50 * many, 2 * many, 1, true},
	{"lgamma", func(in inputsOf) *tensor.Tensor { return in.x(many).Lgamma() }, 80 * many, 2 * many, 1, true},
	{"digamma", func(in inputsOf) *tensor.Tensor { return in.x(many).Digamma() }, 80 * many, 2 * many, 1, true},
	{"prelu", func(in inputsOf) *tensor.Tensor { return in.x(256, 256).PRelu(in.y(256)) }, 3 * many, 2*many + 256, 1, true},

	{"tensordot", func(in inputsOf) *tensor.Tensor {
		return in.x(16, 32, 64).Tensordot(in.y(32, 64, 48), []int{1, 2}, []int{0, 1})
	}, 2 * 16 * 32 * 64 * 48, 16*32*64 + 32*64*48 + 16*48, 3, true},
	{"kron", func(in inputsOf) *tensor.Tensor { return in.x(16, 16).Kron(in.y(16, 16)) }, many, many + 512, 1, true},
	{"cross", func(in inputsOf) *tensor.Tensor { return in.x(many, 3).Cross(in.y(many, 3), 1) }, 15 * many, 9 * many, 1, true},
	{"cdist", func(in inputsOf) *tensor.Tensor { return in.x(128, 32).CDist(in.y(128, 32), 2) }, 3*128*128*32 + 10*128*128, 2*128*32 + 128*128, 3, true},
	{"cdist of cubes", func(in inputsOf) *tensor.Tensor { return in.x(128, 32).CDist(in.y(128, 32), 3) }, 4*128*128*32 + 30*128*128, 2*128*32 + 128*128, 3, true},
	{"norm of cubes", func(in inputsOf) *tensor.Tensor { return in.x(256, 256).Norm(3, 1) }, 5*many + 30*256, many + 256, 2, true},
	{"adaptive mean", func(in inputsOf) *tensor.Tensor { return in.x(16, 64, 64).AdaptiveAvgPool(7, 7) }, 2 * 16 * 70 * 70, 16*64*64 + 16*49, 3, true},
	{"adaptive max", func(in inputsOf) *tensor.Tensor { return in.x(16, 64, 64).AdaptiveMaxPool(7, 7) }, 2 * 16 * 70 * 70, 16*64*64 + 16*49, 3, true},
	{"fold", func(in inputsOf) *tensor.Tensor {
		return in.x(1, 144, 1024).Fold([]int{32, 32}, []int{3, 3}, tensor.PoolOptions{Padding: []int{1}})
	}, 144 * 1024 * 4, 144*1024 + 16*1024, 2, true},
	{"unfold", func(in inputsOf) *tensor.Tensor { return in.x(64, 1024).Unfold(1, 8, 4) }, 2 * many, many + 2*many, 1, true},
	{"grid sample", func(in inputsOf) *tensor.Tensor { return in.x(1, 8, 64, 64).GridSample(in.y(1, 64, 64, 2)) }, 8*4096*8 + 30*4096, 2*8*4096 + 2*4096, 3, true},

	// T frames of 2S+1 states, three of which meet in a state by logarithms of sums.
	{"ctc", func(in inputsOf) *tensor.Tensor {
		i := in.integers
		return in.x(32, 4, 20).CTCLoss(i("t", 4, 8), i("n", 4), i("m", 4))
	}, 32 * 4 * 17 * 45, 32*4*17*4 + 32*4*20, 32*3 + 10, true},
	{"kl loss", func(in inputsOf) *tensor.Tensor { return in.x(256, 256).KLLoss(in.y(256, 256)) }, 14 * many, 2 * many, 3, true},
	{"cosine loss", func(in inputsOf) *tensor.Tensor {
		return in.x(256, 256).CosineLoss(in.y(256, 256), in.integers("t", 256), 0.5)
	}, 7 * many, 2 * many, 4, true},
	{"triplet loss", func(in inputsOf) *tensor.Tensor {
		return in.x(256, 256).TripletLoss(in.y(256, 256), in.graph.Input("z", ir.F32, 256, 256), 1)
	}, 7 * many, 3 * many, 4, true},
}

// panels is what the steps on panels of 16 columns of an n x n matrix take: masks, choices and
// products with a column.
func panels(n float64) float64 { return 10 * n * n * 16 }

// steps is what they read and write, and what follows each panel.
func steps(n float64) float64 { return 3*n*n*16 + n/16*4*n*n }

// worse are derivatives that are further from the book, with how many times as many
// instructions they take: sums over all positions in place of scattered ones.
var worse = map[string]float64{
	"adaptive mean": 8,   // each pixel asks all windows
	"adaptive max":  9,   // each pixel asks all windows
	"ctc":           6,   // each frame's adds to an array of all frames
	"grid sample":   140, // each pixel asks all points
}

func square(n float64) float64 { return n * n }
func cube(n float64) float64   { return n * n * n }

// sortCost is a network of comparisons: n log2(n) (log2(n)+1) / 4 of them, of 4 operations.
func sortCost(n float64) float64 { return n * math.Log2(n) * (math.Log2(n) + 1) }

// What the newer operations cost on a GPU, forward and backward, is what the book says they do.
func TestNewerCosts(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range costs {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, derivative := range []bool{false, true} {
				if derivative && !row.derivative {
					continue
				}
				g := tensor.NewGraph()
				var x *tensor.Tensor
				y := row.build(inputsOf{g, &x})
				operations, numbers, launches := row.operations, row.numbers, row.launches
				if derivative {
					y = grad.Gradients(y.Square().Sum(), x)[0]
					operations, numbers, launches = ofDerivative*max(worse[row.name], 1)*operations, ofDerivative*numbers, 3*launches+3
				}
				g.Output("out", y)
				c, err := g.Compile(t.Context(), desc, engine.Config{})
				if err != nil {
					t.Fatal(err)
				}
				instructions, bytes := counted(c)
				t.Logf("%-14s derivative %-5v: %9.0f instructions, %4.1f of the book; %9.0f bytes, %4.1f; %3d launches of %d",
					row.name, derivative, instructions, instructions/operations, bytes, bytes/(4*numbers), len(c.Launches), launches)
				if instructions > mostInstructions*operations || bytes > mostNumbers*4*numbers || len(c.Launches) > launches {
					t.Errorf("derivative %v: %.0f instructions of %.0f operations, %.0f bytes of %.0f, %d launches of %d",
						derivative, instructions, operations, bytes, 4*numbers, len(c.Launches), launches)
				}
			}
		})
	}
}

// counted is what the kernels of a graph execute and move.
func counted(c *engine.Compiled) (instructions, bytes float64) {
	arena := ir.NewArena()
	for _, launch := range c.Launches {
		for _, call := range launch {
			read, written := traffic.Of(arena, arena.Import(call.Kernel.AST), nil).Bytes()
			instructions += traffic.Instructions(call.Kernel.Program, nil, 4)
			bytes += float64(read + written)
		}
	}
	return instructions, bytes
}
