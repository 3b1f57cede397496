package tensor_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// fourier is the definition.
func fourier(x []complex128, sign float64) []complex128 {
	out := make([]complex128, len(x))
	for k := range out {
		for j, v := range x {
			out[k] += v * cmplx.Rect(1, sign*2*math.Pi*float64(j*k%len(x))/float64(len(x)))
		}
	}
	return out
}

func parts(list []complex128) (re, im []float64) {
	for _, z := range list {
		re, im = append(re, real(z)), append(im, imag(z))
	}
	return re, im
}

// Sizes of one product, of factors, prime, and prime and large.
func TestFFT(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		sizes := []int{6, 34, 67}
		if dev.Name() == "cpu" {
			sizes = []int{1, 2, 5, 34, 61, 67, 90, 1024}
		}
		g := tensor.NewGraph().On(dev)
		var list []computed
		for _, n := range sizes {
			a, b := sample(21, 2*n), sample(22, 2*n)
			x := make([]complex128, 2*n)
			for i := range x {
				x[i] = complex(a[i], b[i])
			}
			c := tensor.Complex{Real: tensor.FromSlice(g, f32s(a), 2, n), Imag: tensor.FromSlice(g, f32s(b), 2, n)}
			re, im := parts(append(fourier(x[:n], -1), fourier(x[n:], -1)...))
			onlyReal := make([]complex128, n)
			for i := range onlyReal {
				onlyReal[i] = complex(a[i], 0)
			}
			realRe, realIm := parts(fourier(onlyReal, -1)[:n/2+1])
			rounding := 4 * unit * float64(n)
			add := func(what string, got *tensor.Tensor, want []float64) {
				list = append(list, computed{fmt.Sprint(what, " of ", n), got, want, rounding})
			}
			f, h := c.FFT(1), c.Real.SliceInts(0, 0, 1).RFFT(-1)
			add("real part", f.Real, re)
			add("imaginary part", f.Imag, im)
			add("real part of reals", h.Real, realRe)
			add("imaginary part of reals", h.Imag, realIm)
			add("back", f.IFFT(1).Imag, b)
			add("back to reals", h.IRFFT(-1, n), a[:n])
			columns := tensor.Complex{Real: c.Real.Transpose(0, 1), Imag: c.Imag.Transpose(0, 1)}
			add("of columns", columns.FFT(0).Real.Transpose(0, 1), re)
		}
		doubles := sample(23, 48)
		z := make([]complex128, 48)
		for i := range z {
			z[i] = complex(doubles[i], 0)
		}
		_, im := parts(fourier(z, -1))
		list = append(list,
			computed{"of doubles", tensor.FromSlice(g, doubles, 48).FFT(0).Imag, im, 1e-13},
			computed{"of integers", tensor.FromSlice(g, []int32{1, 2, 4}, 3).FFT(0).Real, []float64{7, -2, -2}, unit * 4})
		compareAll(t, list)
	})
	for want, build := range map[string]func(x *tensor.Tensor){
		"FFT: axis 2 of f32[4 3]; want one of constant size from 1 on": func(x *tensor.Tensor) { x.FFT(2) },
		"IRFFT: f32[4 3] to 9 elements of axis 1; want 5 here":         func(x *tensor.Tensor) { tensor.Complex{Real: x}.IRFFT(1, 9) },
	} {
		g := tensor.NewGraph()
		build(g.Input("x", ir.F32, 4, 3))
		wantError(t, want, g.Err(), want)
	}
}

// Rows for which threads of a GPU make results side by side, four rows of factors each.
func TestFFTOfManyRows(t *testing.T) {
	dev, _, err := devices.Open(t.Context(), "cuda:emu", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const rows, n = 512, 1024
	g, a := tensor.NewGraph().On(dev), sample(25, rows*n)
	f := tensor.FromSlice(g, f32s(a), rows, n).RFFT(-1)
	var list []computed
	for _, row := range []int{0, 101, rows - 1} {
		x := make([]complex128, n)
		for i := range x {
			x[i] = complex(a[row*n+i], 0)
		}
		re, im := parts(fourier(x, -1)[:n/2+1])
		of := func(x *tensor.Tensor) *tensor.Tensor { return x.SliceInts(0, row, 1) }
		list = append(list, computed{fmt.Sprint("real part of row ", row), of(f.Real), re, 4 * unit * n},
			computed{fmt.Sprint("imaginary part of row ", row), of(f.Imag), im, 4 * unit * n})
	}
	compareAll(t, list)
}

// folded adds windows up by their definition.
func folded(x []float64, channels int, size, kernel, stride, padding, dilation [2]int) []float64 {
	var counts [2]int
	for i := range counts {
		counts[i] = (size[i]+2*padding[i]-(kernel[i]-1)*dilation[i]-1)/stride[i] + 1
	}
	out := make([]float64, channels*size[0]*size[1])
	for c := range channels {
		for e := range kernel[0] * kernel[1] {
			for l := range counts[0] * counts[1] {
				row := l/counts[1]*stride[0] + e/kernel[1]*dilation[0] - padding[0]
				column := l%counts[1]*stride[1] + e%kernel[1]*dilation[1] - padding[1]
				if row >= 0 && row < size[0] && column >= 0 && column < size[1] {
					out[(c*size[0]+row)*size[1]+column] += x[((c*kernel[0]*kernel[1])+e)*counts[0]*counts[1]+l]
				}
			}
		}
	}
	return out
}

func TestFold(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		g := tensor.NewGraph().On(dev)
		var list []computed
		for i, row := range []struct{ size, kernel, stride, padding, dilation [2]int }{
			{[2]int{5, 4}, [2]int{2, 2}, [2]int{1, 1}, [2]int{0, 0}, [2]int{1, 1}},
			{[2]int{6, 7}, [2]int{3, 2}, [2]int{2, 3}, [2]int{1, 1}, [2]int{1, 2}},
			{[2]int{8, 8}, [2]int{2, 4}, [2]int{2, 4}, [2]int{0, 0}, [2]int{1, 1}},
		} {
			count := func(k int) int {
				return (row.size[k]+2*row.padding[k]-(row.kernel[k]-1)*row.dilation[k]-1)/row.stride[k] + 1
			}
			rows, windows := 2*row.kernel[0]*row.kernel[1], count(0)*count(1)
			a := sample(uint64(30+i), rows*windows)
			got := tensor.FromSlice(g, f32s(a), 1, rows, windows).Fold(row.size[:], row.kernel[:], tensor.PoolOptions{Stride: row.stride[:], Padding: row.padding[:], Dilation: row.dilation[:]})
			list = append(list, computed{fmt.Sprint("fold ", i), got, folded(a, 2, row.size, row.kernel, row.stride, row.padding, row.dilation), 2 * unit})
		}
		line := tensor.FromSlice(g, []float32{1, 2, 3, 10, 20, 30}, 1, 2, 3).Fold([]int{4}, []int{2})
		list = append(list, computed{"one axis", line, []float64{1, 12, 23, 30}, 0})
		compareAll(t, list)
	})
}

// gridSampled reads one image at one place by PyTorch's definition.
func gridSampled(image []float64, h, w int, x, y float64, o tensor.GridOptions) float64 {
	place := func(v float64, n int) float64 {
		size := float64(n)
		at, low, high := ((v+1)*size-1)/2, -0.5, size-0.5
		if o.AlignCorners {
			at, low, high = (v+1)/2*(size-1), 0, size-1
		}
		if o.Outside == tensor.PadReflect {
			for at < low || at > high {
				if at < low {
					at = 2*low - at
				} else {
					at = 2*high - at
				}
			}
		}
		if o.Outside != tensor.PadConstant {
			at = min(max(at, 0), size-1)
		}
		return at
	}
	pixel := func(row, column float64) float64 {
		if row < 0 || column < 0 || row >= float64(h) || column >= float64(w) {
			return 0
		}
		return image[int(row)*w+int(column)]
	}
	px, py := place(x, w), place(y, h)
	if o.Nearest {
		return pixel(math.RoundToEven(py), math.RoundToEven(px))
	}
	left, top := math.Floor(px), math.Floor(py)
	fx, fy := px-left, py-top
	return (1-fy)*((1-fx)*pixel(top, left)+fx*pixel(top, left+1)) + fy*((1-fx)*pixel(top+1, left)+fx*pixel(top+1, left+1))
}

func TestGridSample(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		const h, w, places = 3, 4, 8
		g := tensor.NewGraph().On(dev)
		images, grid := sample(41, 2*h*w), sample(42, 2*places)
		grid[0], grid[1], grid[2] = 1, -1, -1.25 // on corners and far outside
		x := tensor.FromSlice(g, images, 1, 2, h, w)
		at := tensor.FromSlice(g, grid, 1, 2, places/2, 2)
		var list []computed
		for _, nearest := range []bool{false, true} {
			for _, outside := range []tensor.PadMode{tensor.PadConstant, tensor.PadReplicate, tensor.PadReflect} {
				for _, align := range []bool{false, true} {
					o := tensor.GridOptions{Nearest: nearest, Outside: outside, AlignCorners: align}
					var want []float64
					for c := range 2 {
						for p := range places {
							want = append(want, gridSampled(images[c*h*w:][:h*w], h, w, grid[2*p], grid[2*p+1], o))
						}
					}
					list = append(list, computed{fmt.Sprintf("%+v", o), x.GridSample(at, o), want, 1e-12})
				}
			}
		}
		compareAll(t, list)
	})
}

// spelled is the probability that frames, of which each class has one, spell a target: the sum
// over all sequences of classes.
func spelled(p [][]float64, target []int, blank int) (sum float64) {
	path := make([]int, len(p))
	var visit func(at int, product float64)
	visit = func(at int, product float64) {
		if at < len(p) {
			for c, v := range p[at] {
				path[at] = c
				visit(at+1, product*v)
			}
			return
		}
		var text []int
		for i, c := range path {
			if c != blank && (i == 0 || path[i-1] != c) {
				text = append(text, c)
			}
		}
		if slices.Equal(text, target) {
			sum += product
		}
	}
	visit(0, 1)
	return sum
}

func TestCTCLoss(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		const frames, batch, classes, blank = 5, 4, 3, 1
		g := tensor.NewGraph().On(dev)
		logits := sample(51, frames*batch*classes)
		targets := [][]int{{0, 2}, {2, 2}, {0, 2}, {0, 0}} // of which two, two, none, two count
		steps, lengths := []int32{5, 4, 3, 2}, []int32{2, 2, 0, 2}
		var want []float64
		mean := 0.0
		for n := range batch {
			p := make([][]float64, steps[n])
			for s := range p {
				row, total := logits[(s*batch+n)*classes:][:classes], 0.0
				for _, v := range row {
					total += math.Exp(v)
				}
				for _, v := range row {
					p[s] = append(p[s], math.Exp(v)/total)
				}
			}
			loss := -math.Log(spelled(p, targets[n][:lengths[n]], blank))
			want = append(want, loss) // the last one cannot be: two frames have no blank between
			if n < 3 {
				mean += loss / max(1, float64(lengths[n])) / 3
			}
		}
		x := tensor.FromSlice(g, logits, frames, batch, classes).LogSoftmax(-1)
		spell := tensor.FromSlice(g, []int32{0, 2, 2, 2, 0, 2, 0, 0}, batch, 2)
		in, long := tensor.FromSlice(g, steps, batch), tensor.FromSlice(g, lengths, batch)
		three := func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.SliceInts(axis, 0, 3) }
		compareAll(t, []computed{
			{"each", x.CTCLoss(spell, in, long, tensor.CTCOptions{Blank: blank, Reduction: tensor.ReduceNone}), want, 1e-12},
			{"mean", three(x, 1).CTCLoss(three(spell, 0), three(in, 0), three(long, 0), tensor.CTCOptions{Blank: blank}), []float64{mean}, 1e-12},
			{"in f32", x.Cast(ir.F32).CTCLoss(spell, in, long, tensor.CTCOptions{Blank: blank, Reduction: tensor.ReduceNone}), want, 4 * unit},
		})
	})
}

// Derivatives of these are differences of their values, in f64.
func TestTransformGradients(t *testing.T) {
	const h = 1e-5
	for name, row := range map[string]struct {
		shape []int
		build func(x *tensor.Tensor) *tensor.Tensor
	}{
		"fft":         {[]int{1, 12}, func(x *tensor.Tensor) *tensor.Tensor { f := x.FFT(-1); return f.Real.Square().Add(f.Imag) }},
		"fft of many": {[]int{1, 34}, func(x *tensor.Tensor) *tensor.Tensor { f := x.RFFT(-1); return f.Mul(f).Imag }},
		"fold":        {[]int{1, 4, 6}, func(x *tensor.Tensor) *tensor.Tensor { return x.Fold([]int{3, 4}, []int{2, 2}).Square() }},
		"image":       {[]int{1, 1, 3, 3}, func(x *tensor.Tensor) *tensor.Tensor { return x.GridSample(gridFor(x, 0.3)).Square() }},
		"grid": {[]int{1, 2, 2, 2}, func(x *tensor.Tensor) *tensor.Tensor {
			image := x.Graph().Linspace(ir.F64, 0, 3, 16).Square().Reshape(1, 1, 4, 4)
			return image.ExpandDims(append(x.Graph().Dims(x.Extent(0)), x.Graph().Dims(1, 4, 4)...)...).GridSample(x)
		}},
		"ctc": {[]int{1, 4, 3}, func(x *tensor.Tensor) *tensor.Tensor {
			g, n := x.Graph(), x.Extent(0)
			return x.Transpose(0, 1).LogSoftmax(-1).CTCLoss(g.Full(ir.I32, 1, n, 2), g.Full(ir.I32, 4, n), g.Full(ir.I32, 2, n), tensor.CTCOptions{Reduction: tensor.ReduceNone}).Unsqueeze(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := 1
			for _, d := range row.shape {
				n *= d
			}
			a := sample(61, n)
			for i := range a {
				a[i] *= 0.4
			}
			var moved []float64
			for i := range a {
				for _, step := range []float64{h, -h} {
					moved = append(moved, a...)
					moved[len(moved)-n+i] += step
				}
			}
			g := tensor.NewGraph()
			losses := func(x *tensor.Tensor) *tensor.Tensor {
				y := row.build(x)
				y = y.Reshape(x.Extent(0), -1)
				return y.Mul(g.Linspace(ir.F64, 1, 2, y.Extent(1))).Sum(1)
			}
			many := slices.Clone(row.shape)
			many[0] = 2 * n
			x := tensor.FromSlice(g, a, row.shape...)
			got, values := grad.Gradients(losses(x).Sum(), x)[0], losses(tensor.FromSlice(g, moved, many...))
			if err := tensor.Realize(t.Context(), got, values); err != nil {
				t.Fatal(err)
			}
			v := realised[float64](t, values)
			for i, got := range realised[float64](t, got) {
				want := (v[2*i] - v[2*i+1]) / (2 * h)
				if !(math.Abs(got-want) <= 1e-6*max(1, math.Abs(want))) {
					t.Errorf("by element %d: %v, want %v", i, got, want)
				}
			}
		})
	}
}

// gridFor is 5 places for each of the images.
func gridFor(x *tensor.Tensor, step float64) *tensor.Tensor {
	g, n := x.Graph(), x.Extent(0)
	line := g.Linspace(ir.F64, -0.9, -0.9+9*step, 10).Reshape(1, 1, 5, 2)
	return line.ExpandDims(g.Dims(n, 1, 5, 2)...)
}
