package ptxemu

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// words are operands that break things: zeros, ends of ranges, NaN, subnormals.
var words = []uint32{0, 1, 31, 32, 33, 0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0x7fc00000, 0x00000001, 0x007fffff, 0x4b800000}

func randomWord(r *rand.Rand) uint64 {
	if r.IntN(2) == 0 {
		return uint64(words[r.IntN(len(words))])
	}
	return uint64(r.Uint32())
}

// A loop over all lanes gives what the function of one lane gives, which runs
// when a lane is missing.
func TestLoopsAreTheFunctions(t *testing.T) {
	names := slices.Sorted(maps.Keys(loops1))
	names = slices.AppendSeq(names, maps.Keys(loops2))
	names = slices.AppendSeq(names, maps.Keys(loops3))
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range names {
		operands := 1
		switch {
		case loops2[name] != nil:
			operands = 2
		case loops3[name] != nil:
			operands = 3
		}
		register := "%r"
		if strings.HasSuffix(name, "64") {
			register = "%d"
		}
		text := name
		for i := range operands + 1 {
			text += fmt.Sprintf("%s %s%d", map[bool]string{true: "", false: ","}[i == 0], register, i)
		}
		m, err := Parse(header + text + ";\n" + footer)
		if err != nil {
			t.Fatal(err)
		}
		k := m.kernels[0]
		step := &k.program.steps[len(k.program.steps)-1]
		for range 50 {
			whole, part := newWarp(&Grid{kernel: k}), newWarp(&Grid{kernel: k})
			for _, slot := range step.reads {
				for lane := range lanes {
					v := randomWord(r)
					if register == "%d" {
						v |= randomWord(r) << 32
					}
					whole.data[slot][lane], part.data[slot][lane] = v, v
				}
			}
			missing := uint32(1) << r.IntN(lanes)
			for _, run := range []struct {
				w      *warp
				active uint32
			}{{whole, all}, {part, all &^ missing}, {part, missing}} {
				if err := step.run(run.w, run.active); err != nil {
					t.Fatal(err)
				}
			}
			for lane := range lanes {
				if x, y := whole.data[step.writes[0]][lane], part.data[step.writes[0]][lane]; x != y {
					t.Errorf("%s: lane %d: %#x, and %#x alone", name, lane, x, y)
				}
			}
		}
	}
}

// The short way to a multiply-add rounds as the long one does, also in the
// middle between two results and among subnormals.
func TestMultiplyAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 200000 {
		x, y, z := float(randomWord(r)), float(randomWord(r)), float(randomWord(r))
		switch i % 4 {
		case 0: // a product far below a sum's last bit, and a middle
			z = float(uint64(0x3f800000 + r.Uint32N(64)))
			x, y = float32(math.Ldexp(1, -24+r.IntN(2))), 1+float32(r.IntN(3)-1)*0x1p-23
		case 1:
			x, y, z = x*0x1p-60, y*0x1p-60, z*0x1p-120
		}
		got, want := fma32(x, y, z), float32(sumToOdd(float64(x)*float64(y), float64(z)))
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			t.Fatalf("fma(%g, %g, %g) = %g, want %g", x, y, z, got, want)
		}
	}
}
