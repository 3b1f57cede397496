package packed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
)

// encodable are the types that values can be packed in, plain ones apart.
var encodable = func() (names []string) {
	for _, f := range All() {
		if f.encode != nil {
			names = append(names, f.Name)
		}
	}
	return names
}()

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
func values(t *rapid.T, f *Format) []float32 {
	largest := min(largestHalf, float64(f.largest()))
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
	scale := math.Ldexp(1, rapid.IntRange(-22, 12).Draw(t, "size"))
	kind := rapid.SampledFrom([]string{"normal", "outlier", "positive", "negative", "constant", "zero", "sparse"}).Draw(t, "kind")
	out := make([]float32, f.BlockElems)
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
		out[i] = float32(min(max(x*scale, -largest), largest))
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
				x := values(t, f)
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

// encodeLosses are root mean squared differences to values of two sorts (see lossValues),
// relative to theirs: what encoders here lose, and what llama.cpp's do (its ggml-quants.c of
// 2026-08 from C, without an importance matrix; of ones where it wants one).
var encodeLosses = []struct {
	name                                   string
	normal, llamaNormal, tails, llamaTails float64
}{
	{"Q4_0", 0.08101, 0.08603, 0.10111, 0.10591},
	{"Q4_1", 0.06933, 0.07835, 0.0797, 0.08922},
	{"Q5_0", 0.04011, 0.04276, 0.0506, 0.05299},
	{"Q5_1", 0.0334, 0.03794, 0.03814, 0.04298},
	{"Q8_0", 0.00515, 0.00538, 0.00645, 0.00669},
	{"Q2_K", 0.25983, 0.29702, 0.28286, 0.33115},
	{"Q3_K", 0.14396, 0.15136, 0.16534, 0.17355},
	{"Q4_K", 0.07013, 0.07143, 0.08068, 0.08241},
	{"Q5_K", 0.03442, 0.03613, 0.03957, 0.04151},
	{"Q6_K", 0.01726, 0.0178, 0.02064, 0.02122},
	{"IQ4_NL", 0.07359, 0.07649, 0.08414, 0.08726},
	{"IQ4_XS", 0.07407, 0.07711, 0.08492, 0.08805},
	{"IQ3_S", 0.12924, 0.16602, 0.14358, 0.18651},
	{"IQ3_XXS", 0.17703, 0.21383, 0.18793, 0.24127},
	{"IQ2_S", 0.23998, 0.26732, 0.26637, 0.30676},
	{"IQ2_XS", 0.28543, 0.30047, 0.30025, 0.32382},
	{"IQ2_XXS", 0.32804, 0.34386, 0.351, 0.38081},
	{"IQ1_M", 0.41293, 0.581, 0.44277, 0.5986},
	{"IQ1_S", 0.44571, 0.48545, 0.49353, 0.55008},
	{"MXFP4", 0.11166, 0.11461, 0.12055, 0.12411},
	{"NVFP4", 0.08094, 0.09476, 0.08223, 0.0926},
	{"TQ1_0", 0.43443, 0.80913, 0.51351, 0.85278},
	{"TQ2_0", 0.43443, 0.80913, 0.51351, 0.85278},
	{"Q1_0", 0.60158, 0.60159, 0.66955, 0.66956},
	{"Q2_0", 0.35329, 0.71871, 0.40409, 0.7434},
}

// lossValues are 64 rows of 1,024 values of a normal distribution; or with heavy tails, of
// Student's with 5 degrees of freedom and rows of different sizes.
func lossValues(tails bool) []float32 {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, 1<<16)
	scale := 1.0
	for i := range x {
		if tails && i%1024 == 0 {
			scale = math.Exp(rng.NormFloat64() / 2)
		}
		v := rng.NormFloat64()
		if tails {
			squares := 0.0
			for range 5 {
				n := rng.NormFloat64()
				squares += n * n
			}
			v *= scale / math.Sqrt(squares/5)
		}
		x[i] = float32(v)
	}
	return x
}

// TestEncodeLoss: every encoder loses what the table says, and less than llama.cpp's.
func TestEncodeLoss(t *testing.T) {
	normal, tails := lossValues(false), lossValues(true)
	if len(encodeLosses) != len(encodable) {
		t.Errorf("%d types in the table, %d can be packed", len(encodeLosses), len(encodable))
	}
	for _, c := range encodeLosses {
		check := func(sort string, x []float32, want, llama float64) {
			_, kept := encodeKept(mustLookup(t, c.name), x)
			loss := math.Sqrt(squaresBetween(x, kept) / sumSquares(x))
			if math.Abs(loss/want-1) > 0.002 || loss > llama {
				t.Errorf("%s: %s values lose %.5g, want %.5g, and no more than llama.cpp's %.5g", c.name, sort, loss, want, llama)
			}
		}
		check("normal", normal, c.normal, c.llamaNormal)
		if !testing.Short() {
			check("heavy-tailed", tails, c.tails, c.llamaTails)
		}
	}
}

// hostileBlocks are values that search loops and divisions fall over.
func hostileBlocks(n int) map[string][]float32 {
	blocks := make(map[string][]float32)
	add := func(name string, value func(i int) float64) {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(value(i))
		}
		blocks[name] = x
	}
	one := func(value float64) func(int) float64 {
		return func(i int) float64 {
			if i == n/2 {
				return value
			}
			return 0
		}
	}
	add("zeros", func(int) float64 { return 0 })
	add("minus zeros", func(int) float64 { return math.Copysign(0, -1) })
	add("smallest", func(int) float64 { return math.SmallestNonzeroFloat32 })
	add("subnormal", func(i int) float64 { return math.Ldexp(float64(i-n/2), -140) })
	add("around the smallest half", func(i int) float64 { return math.Ldexp(float64(i%7-3), -24) })
	add("largest", func(i int) float64 { return 65504 * float64(1-i%2*2) })
	add("all largest", func(int) float64 { return -65504 })
	add("one large", one(65504))
	add("one small", one(-math.Ldexp(1, -24)))
	add("large among small", func(i int) float64 { return one(60000)(i) + math.Ldexp(float64(i), -30) })
	add("a ramp", func(i int) float64 { return float64(i) })
	add("a constant", func(int) float64 { return 1.0 / 3 })
	add("groups of other sizes", func(i int) float64 { return math.Ldexp(float64(i%16)-7.5, i/16) })
	add("two values", func(i int) float64 { return []float64{-1, 3}[i*7/5%2] })
	return blocks
}

// Whatever the values are, a block decodes to finite numbers that are no worse than zeros.
func TestEncodeHostile(t *testing.T) {
	for _, name := range encodable {
		f := mustLookup(t, name)
		for what, x := range hostileBlocks(f.BlockElems) {
			data := make([]byte, f.BlockBytes)
			if err := f.Encode(data, x); (err != nil) != (f.firstUnfit(x) >= 0) {
				t.Errorf("%s, %s: %v", name, what, err)
			} else if err != nil {
				continue
			}
			got, err := decodeValues(f, data)
			if err != nil {
				t.Fatal(err)
			}
			if loss, zero := squaresBetween(x, got), sumSquares(x); !(loss <= zero*(1+1e-9)) { // NaN too
				t.Errorf("%s, %s: loss %g, a block of zeros loses %g", name, what, loss, zero)
			}
		}
	}
}

// FuzzEncode packs any bits as floats: refused where no block holds them, else decoded to
// what the encoder meant, no worse than zeros.
func FuzzEncode(f *testing.F) {
	f.Add(uint8(0), []byte{0, 0, 128, 63, 0, 0, 0, 128})
	f.Add(uint8(9), []byte{1, 0, 0, 0, 255, 255, 127, 71})
	f.Fuzz(func(t *testing.T, kind uint8, bits []byte) {
		f := mustLookup(t, encodable[int(kind)%len(encodable)])
		x := make([]float32, f.BlockElems)
		for i := range x {
			var word [4]byte
			for b := range word {
				if len(bits) > 0 {
					word[b] = bits[(4*i+b)%len(bits)]
				}
			}
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(word[:]))
		}
		data := make([]byte, f.BlockBytes)
		err := f.Encode(data, x)
		if unfit := f.firstUnfit(x) >= 0; unfit != (err != nil) {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if err != nil {
			return
		}
		_, kept := encodeKept(f, x)
		got, err := decodeValues(f, data)
		if err != nil || !slices.Equal(got, kept) {
			t.Fatalf("%s: decodes to %v, the encoder meant %v (%v)", f.Name, got, kept, err)
		}
		if loss, zero := squaresBetween(x, got), sumSquares(x); !(loss <= zero*(1+1e-9)) {
			t.Fatalf("%s: loss %g, a block of zeros loses %g", f.Name, loss, zero)
		}
	})
}

// TestEncodeTwice: what a block of a small format holds is packed again without
// a difference.
func TestEncodeTwice(t *testing.T) {
	for _, name := range []string{"Q8_0", "Q4_0", "Q5_0"} {
		f := mustLookup(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				_, once := encodeKept(f, values(t, f))
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
		{"MXFP4", 17, append(make([]float32, 31), 0x1.8p127), "value 31 is 2.5521178e+38, want a finite number of size up to 1.7014118e+38"},
		{"NVFP4", 36, with(-3000), "value 3 is -3000, want a finite number of size up to 2688"},
		{"TQ1_0", 54, append(make([]float32, 255), 66000), "value 255 is 66000, want a finite number of size up to 65504"},
		{"Q4_1", 40, with(70000), "value 3 is 70000, want a finite number of size up to 65504"},
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
	read := Format{Name: "read", BlockElems: 32, BlockBytes: 18}
	if err := read.Encode(make([]byte, 36), ones); err == nil || !strings.Contains(err.Error(), "cannot be packed") {
		t.Errorf("a type that is only read: %v", err)
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
