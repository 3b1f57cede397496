package packed

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
)

var encodable = []string{"Q8_0", "Q4_0", "Q5_0", "Q4_K", "Q5_K", "Q6_K"}

func mustLookup(t testing.TB, name string) *Format {
	t.Helper()
	f, ok := Lookup(name)
	if !ok {
		t.Fatalf("no format %q", name)
	}
	return f
}

// values draws blocks of values of all sorts: normal ones of any size, with
// outliers, of one sign, constant, zero.
func values(t *rapid.T, n int) []float32 {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
	scale := math.Ldexp(1, rapid.IntRange(-22, 12).Draw(t, "size"))
	kind := rapid.SampledFrom([]string{"normal", "outlier", "positive", "negative", "constant", "zero", "sparse"}).Draw(t, "kind")
	out := make([]float32, n)
	for i := range out {
		x := rng.NormFloat64()
		switch kind {
		case "outlier":
			if i%29 == 7 {
				x *= 20
			}
		case "positive":
			x = math.Abs(x) + 1
		case "negative":
			x = -math.Abs(x) - 1
		case "constant":
			x = -0.7
		case "zero":
			x = 0
		case "sparse":
			if rng.IntN(20) > 0 {
				x = 0
			}
		}
		out[i] = float32(x * scale)
	}
	return out
}

// encodeKept packs values and also returns what the encoder says it stored.
func encodeKept(f *Format, x []float32) (data []byte, kept []float32) {
	blocks := len(x) / f.BlockElems
	data, kept = make([]byte, blocks*f.BlockBytes), make([]float32, len(x))
	for b := range blocks {
		at := b * f.BlockElems
		f.encode(data[b*f.BlockBytes:(b+1)*f.BlockBytes], x[at:at+f.BlockElems], kept[at:at+f.BlockElems])
	}
	return data, kept
}

func squaresBetween(x, y []float32) (sum float64) {
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		sum += d * d
	}
	return sum
}

// TestEncodeKeeps wants the decode expression to give exactly what the encoder
// meant, and no element farther off than the block's range allows.
func TestEncodeKeeps(t *testing.T) {
	for _, name := range encodable {
		f := mustLookup(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x := values(t, f.BlockElems)
				data, kept := encodeKept(f, x)
				got, err := decodeValues(f, data)
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if got[i] != kept[i] {
						t.Fatalf("element %d decodes to %g, the encoder meant %g", i, got[i], kept[i])
					}
				}
				again := make([]byte, len(data))
				if err := f.Encode(again, x); err != nil || !bytes.Equal(again, data) {
					t.Fatalf("Encode differs from its block encoder: %v", err)
				}
				if name == "Q8_0" {
					checkQ8(t, x, got)
				}
				if loss, zero := squaresBetween(x, got), sumSquares(x); loss > zero*(1+1e-12) {
					t.Fatalf("loss %g, a block of zeros loses %g", loss, zero)
				}
			})
		})
	}
}

// decodeValues decodes one row by the format's own expression.
func decodeValues(f *Format, data []byte) ([]float32, error) {
	blocks := int64(len(data) / f.BlockBytes)
	length := blocks * int64(f.BlockElems)
	a := ir.NewArena()
	row, k := a.Index(0), a.Range(1, a.Index(length))
	e := newEvaluator(f, Identity.Place(f, 1, blocks), data, f.Decode(a, bufferFor(a, f, 1, length), row, k))
	out := make([]float32, length)
	for i := range out {
		e.vars[k] = int64(i)
		v, err := e.run()
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out[i] = float32(v)
	}
	return out, nil
}

// checkQ8 wants every element within half a step, plus what rounding the scale
// to f16 costs the largest level (2^-11, or half the smallest f16), and a step
// more where the last level is cut.
func checkQ8(t *rapid.T, x, got []float32) {
	outermost := math.Abs(extreme(x))
	step := outermost / 126
	bound := step/2*(1+1.0/1024) + outermost/1024 + 127*math.Ldexp(1, -25)
	for i := range x {
		if d := math.Abs(float64(x[i]) - float64(got[i])); d > bound {
			t.Fatalf("element %d is %g, was %g: off by %g, want at most %g", i, got[i], x[i], d, bound)
		}
	}
}

// TestEncodeLoss pins the root of the mean squared difference to values of a
// normal distribution, relative to theirs. Scales from the outermost values
// alone, without a search, lose 0.00515, 0.0860, 0.0786 and 0.0189 in Q8_0, Q4_0, Q4_K and Q6_K.
func TestEncodeLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, 1<<16)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for name, want := range map[string]float64{"Q8_0": 0.0052, "Q4_0": 0.0815, "Q4_K": 0.0703, "Q6_K": 0.0174, "Q5_0": 0.0402, "Q5_K": 0.0346} {
		_, kept := encodeKept(mustLookup(t, name), x)
		if loss := math.Sqrt(squaresBetween(x, kept) / sumSquares(x)); loss > want {
			t.Errorf("%s: loses %.4g, want at most %.4g", name, loss, want)
		}
	}
}

// TestEncodeTwice: what a block of a small format holds is packed again without
// a difference.
func TestEncodeTwice(t *testing.T) {
	for _, name := range []string{"Q8_0", "Q4_0", "Q5_0"} {
		f := mustLookup(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				_, once := encodeKept(f, values(t, f.BlockElems))
				checkTwice(t, f, once)
			})
		})
	}
}

// TestEncodeTwiceSuper: the scales of a super-block can be told from its values
// when every group holds its outermost levels and the outermost group scale is
// the largest integer. Then nothing differs either.
func TestEncodeTwiceSuper(t *testing.T) {
	for _, name := range []string{"Q4_K", "Q5_K", "Q6_K"} {
		f := mustLookup(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
				block := RandomBlocks(f, 1, rng)
				map[string]func([]byte, *rand.Rand){"Q4_K": fullQ4K, "Q5_K": fullQ5K, "Q6_K": fullQ6}[name](block, rng)
				once, err := decodeValues(f, block)
				if err != nil {
					t.Fatal(err)
				}
				checkTwice(t, f, once)
			})
		})
	}
}

func checkTwice(t *rapid.T, f *Format, once []float32) {
	_, twice := encodeKept(f, once)
	for i := range once {
		if once[i] != twice[i] {
			t.Fatalf("element %d: %g, then %g", i, once[i], twice[i])
		}
	}
}

// fullQ6 puts level -32 into every group and -128 among the scales.
func fullQ6(block []byte, rng *rand.Rand) {
	for g := range 16 {
		e := 16*g + rng.IntN(16)
		half, e2 := e/128, e%128
		block[64*half+e2%64] &^= 15 << (4 * (e2 / 64))
		block[128+32*half+e2%32] &^= 3 << (2 * (e2 / 32))
		if block[192+g] == 0 {
			block[192+g] = 3
		}
	}
	block[192+rng.IntN(16)] = 0x80
}

// fullQ4K puts levels 0 and 15 into every group, 63 among scales and minima,
// and makes d and dmin positive.
func fullQ4K(block []byte, _ *rand.Rand) {
	fullMinima(block)
	for e := range 256 {
		setLevel(block[16:], e, e%32, 0xf)
	}
}

// fullQ5K does the same with levels 0 and 31.
func fullQ5K(block []byte, _ *rand.Rand) {
	fullMinima(block)
	for e := range 256 {
		setLevel(block[48:], e, e%32, 0xf)
		switch bit := byte(1) << (e / 32); e % 32 {
		case 5:
			block[16+e%32] &^= bit
		case 9:
			block[16+e%32] |= bit
		}
	}
}

// setLevel makes the fifth level of a group 0 and the ninth the highest.
func setLevel(levels []byte, e, place int, all byte) {
	at, shift := 32*(e/64)+e%32, 4*(e/32%2)
	switch place {
	case 5:
		levels[at] &^= all << shift
	case 9:
		levels[at] |= all << shift
	}
}

func fullMinima(block []byte) {
	block[1] &= 0x7f
	block[3] &= 0x7f
	for i := range 12 {
		block[4+i] |= 1 // no scale or minimum of the first groups is 0
	}
	block[4], block[8] = block[4]|63, block[8]|63
}

// TestEncodeRefuses names what is wrong.
func TestEncodeRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	ones := make([]float32, 64)
	with := func(v float32) []float32 { x := append([]float32(nil), ones...); x[3] = v; return x }
	for _, c := range []struct {
		format string
		bytes  int
		values []float32
		want   string
	}{
		{"Q2_K", 84, make([]float32, 256), "cannot be packed"},
		{"Q8_0", 68, with(nan), "value 3 is NaN"},
		{"Q8_0", 68, with(inf), "value 3 is +Inf"},
		{"Q4_0", 36, with(-1e6), "value 3 is -1e+06"},
		{"Q8_0", 67, ones, "want 68 bytes"},
		{"Q8_0", 68, ones[:63], "want a multiple of 32"},
	} {
		err := mustLookup(t, c.format).Encode(make([]byte, c.bytes), c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.format, err, c.want)
		}
	}
}

// TestEncodePlain rounds to nearest even and keeps infinities.
func TestEncodePlain(t *testing.T) {
	x := []float32{1, 1 + 1.0/4096, 1 + 3.0/2048, -65504, float32(math.Inf(-1)), 1e-7}
	for name, want := range map[string][]float32{
		"F32":  x,
		"F16":  {1, 1, 1 + 2.0/1024, -65504, float32(math.Inf(-1)), 1.1920929e-07},
		"BF16": {1, 1, 1, -65536, float32(math.Inf(-1)), 1.0011718e-07},
	} {
		f := mustLookup(t, name)
		data := make([]byte, len(x)*f.BlockBytes)
		if err := f.Encode(data, x); err != nil {
			t.Fatal(err)
		}
		got, err := decodeValues(f, data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if got[i] != want[i] {
				t.Errorf("%s: %g became %g, want %g", name, x[i], got[i], want[i])
			}
		}
	}
}

// TestFillChunks: chunks in any order hold what the whole holds.
func TestFillChunks(t *testing.T) {
	f := mustLookup(t, "Q4_0")
	x := make([]float32, 32*5)
	for i := range x {
		x[i] = float32(i) - 70
	}
	whole, parts := make([]byte, 18*5), make([]byte, 18*5)
	if err := f.Encode(whole, x); err != nil {
		t.Fatal(err)
	}
	fill := f.Fill(x)
	for _, cut := range [][2]int{{54, 90}, {0, 18}, {18, 54}} {
		if err := fill(parts[cut[0]:cut[1]], int64(cut[0])); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(whole, parts) {
		t.Error("chunks differ from the whole")
	}
	for _, bad := range []int64{9, 90} {
		if err := fill(make([]byte, 18), bad); err == nil {
			t.Errorf("a chunk at %d was filled", bad)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, 1<<14)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for _, name := range encodable {
		f := mustLookup(b, name)
		dst := make([]byte, len(x)/f.BlockElems*f.BlockBytes)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				if err := f.Encode(dst, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
