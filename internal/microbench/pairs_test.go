package microbench_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"tgc/engine"
	"tgc/internal/microbench"
	"tgc/ir/program"
	"tgc/runtime/devices"
	"tgc/runtime/interp"
	"tgc/target"
)

var update = flag.Bool("update", false, "rewrite the list of programs that are dearer fused")

// dearer is how many times the price of the fenced program a fused one may cost.
const dearer = 1.3

// TestFusingPays prices every pair of everyday ops fused and fenced: fusing must not
// make a program more than 1.3 times as dear. Programs for which it still does are listed
// in testdata/dearer.txt with their ratios, which must not grow.
func TestFusingPays(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles some 2,000 programs")
	}
	f := &microbench.Fences{Target: parseTarget(t, "llvm:x86-64-v3")}
	checkPays(t, "dearer.txt", slices.Concat(microbench.Pairs(64, ""), microbench.Pairs(256, "")), f.Price)
}

// TestFusingPaysOnGPU is TestFusingPays on a GPU. A block that made the rows of a product again
// for each of their points took up to 270 times as long.
func TestFusingPaysOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles some 1,000 programs")
	}
	f := &microbench.Fences{Target: parseTarget(t, "ptx:sm_90")}
	checkPays(t, "dearer-gpu.txt", microbench.Pairs(256, ""), f.Price)
}

// TestFusingRandomProgramsPays is TestFusingPays for chains of ops with branches.
func TestFusingRandomProgramsPays(t *testing.T) {
	desc := parseTarget(t, "llvm:x86-64-v3")
	checkPays(t, "dearer-random.txt", microbench.RandomPrograms(200, 96), func(ctx context.Context, p *microbench.Program) (*microbench.Compared, error) {
		return p.Price(ctx, desc, engine.Config{})
	})
}

// TestFusingRandomProgramsPaysOnGPU is the same on a GPU, where a plan that asked for too many
// threads was 30 times as dear as the fenced kernels.
func TestFusingRandomProgramsPaysOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles 400 programs")
	}
	desc := parseTarget(t, "ptx:sm_90")
	checkPays(t, "dearer-random-gpu.txt", microbench.RandomPrograms(200, 96), func(ctx context.Context, p *microbench.Program) (*microbench.Compared, error) {
		return p.Price(ctx, desc, engine.Config{})
	})
}

// On a GPU a softmax whose rows are those of a product with one matrix is stored for it: each block
// would read all of the matrix. So are the offsets of running sums of which single columns are read.
func TestKernelsOfRows(t *testing.T) {
	desc := parseTarget(t, "ptx:sm_90")
	for name, kernels := range map[string]int{
		"softmax + linear": 2, "softmax + matmul": 2, "cumsum + gather": 2, "cumsum + center columns": 2,
		"cumsum columns + gather": 3, "sum of rows + conv": 2, "sum of rows + pool": 2, "gather + sort": 1, "top mask + relu": 2,
	} {
		for _, p := range microbench.Pairs(256, name) {
			if p.Name != name {
				continue
			}
			c, err := p.Price(t.Context(), desc, engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Fused.Kernels) != kernels {
				t.Errorf("%s: kernels %v, want %d", name, c.Fused.Kernels, kernels)
			}
		}
	}
}

// Rows that are stored in blocks of 64 are read side by side, tails too, and masks compare
// positions in 32 bits.
func TestLanesOfDigitsAndMasks(t *testing.T) {
	for name, never := range map[string]string{"cumsum + rms norm": "= gather", "shift + rms norm": ":i64x"} {
		for _, p := range microbench.Pairs(200, name) {
			if p.Name != name {
				continue
			}
			g, err := p.Graph(false)
			if err != nil {
				t.Fatal(err)
			}
			c, err := g.Compile(t.Context(), parseTarget(t, "llvm:x86-64-v4"), engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range c.Kernels {
				if text := program.Print(k.Program); strings.Contains(text, never) {
					t.Errorf("%s: %q in\n%s", name, never, text)
				}
			}
		}
	}
}

// Halves of fenced programs cost together what the programs cost.
func TestFences(t *testing.T) {
	for _, name := range []string{"llvm:x86-64-v3", "ptx:sm_90"} {
		desc := parseTarget(t, name)
		f, list := &microbench.Fences{Target: desc}, microbench.Pairs(256, "")
		for i := 0; i < len(list); i += 67 {
			p := &list[i]
			want, err := p.Price(t.Context(), desc, engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Price(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if d := got.Fenced.Price/want.Fenced.Price - 1; math.Abs(d) > 1e-9 || got.Fused.Price != want.Fused.Price {
				t.Errorf("%s on %s: %g us fenced and %g fused by halves, %g and %g compiled", p.Name, name, got.Fenced.Price, got.Fused.Price, want.Fenced.Price, want.Fused.Price)
			}
		}
	}
}

func parseTarget(t *testing.T, name string) *target.Desc {
	t.Helper()
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// pricing compares the two forms of a program.
type pricing func(context.Context, *microbench.Program) (*microbench.Compared, error)

// checkPays compares the programs of a list that are dearer fused with a list of them.
func checkPays(t *testing.T, file string, list []microbench.Program, price pricing) {
	t.Helper()
	ratios := make(map[string]float64)
	for _, c := range priced(t, list, price) {
		if r := c.PriceRatio(); r > dearer {
			ratios[fmt.Sprintf("%d %s", c.Size, c.Name)] = r
		}
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, listOf(ratios), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	known := dearerBefore(t, path)
	fixed := 0
	for name := range known {
		if ratios[name] == 0 {
			fixed++
		}
	}
	if fixed > 0 {
		t.Logf("%d of %d programs in %s are no longer dearer: -update removes them", fixed, len(known), path)
	}
	for name, r := range ratios {
		if limit, listed := known[name]; !listed {
			t.Errorf("%s: %.2f times as dear fused, want at most %g", name, r, dearer)
		} else if r > 1.1*limit {
			t.Errorf("%s: %.2f times as dear fused, was %.2f", name, r, limit)
		}
	}
}

// dearerBefore reads a list of programs and their ratios.
func dearerBefore(t *testing.T, path string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]float64)
	for line := range bytes.Lines(text) {
		var ratio float64
		number, name, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if _, err := fmt.Sscan(string(number), &ratio); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		known[string(name)] = ratio
	}
	return known
}

// listOf writes programs and their ratios, worst first.
func listOf(ratios map[string]float64) []byte {
	names := make([]string, 0, len(ratios))
	for name := range ratios {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(ratios[y], ratios[x]), cmp.Compare(x, y)) })
	var b bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&b, "%.2f %s\n", ratios[name], name)
	}
	return b.Bytes()
}

// priced prices programs, several at a time.
func priced(t *testing.T, list []microbench.Program, price pricing) []*microbench.Compared {
	t.Helper()
	all := make([]*microbench.Compared, len(list))
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				c, err := price(t.Context(), &list[i])
				if err != nil {
					t.Error(err)
					c = &microbench.Compared{}
				}
				all[i] = c
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	wait.Wait()
	return all
}

// A pair is measured in both forms, and its prices are those of its kernels.
func TestMeasurePair(t *testing.T) {
	dev := interp.New(interp.Options{})
	defer dev.Close()
	list := microbench.Pairs(8, "relu + softmax columns")
	if len(list) != 1 {
		t.Fatalf("%d programs, want 1", len(list))
	}
	c, err := list[0].Measure(t.Context(), dev, engine.Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, side := range map[string]microbench.Side{"fused": c.Fused, "fenced": c.Fenced} {
		if side.Time <= 0 || side.Price <= 0 || side.Bytes < 2*4*64 || side.Instructions < 64 || len(side.Kernels) == 0 {
			t.Errorf("%s: %+v", name, side)
		}
	}
}

// Programs of a GPU are compiled ahead of those that are measured and come in order; the
// first error ends the list.
func TestMeasureAll(t *testing.T) {
	dev, _, err := devices.Open(t.Context(), "cuda:emu", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	list := slices.Concat(microbench.Pairs(8, "relu + relu"), microbench.Pairs(8, "flip + bias"), microbench.RandomPrograms(1, 8))
	var names []string
	take := func(c *microbench.Compared) error {
		names = append(names, c.Name)
		if c.Fused.Time <= 0 || c.Fenced.Time <= 0 {
			t.Errorf("%+v", c)
		}
		return nil
	}
	if err := microbench.MeasureAll(t.Context(), dev, engine.Config{}, list, 1, take); err != nil {
		t.Fatal(err)
	}
	want := []string{list[0].Name, list[1].Name, list[2].Name}
	if !slices.Equal(names, want) {
		t.Errorf("measured %q, want %q", names, want)
	}
	end, taken := errors.New("enough"), 0
	err = microbench.MeasureAll(t.Context(), dev, engine.Config{}, list, 1, func(*microbench.Compared) error {
		taken++
		return end
	})
	if !errors.Is(err, end) || taken != 1 {
		t.Errorf("after the first: %v, %d taken", err, taken)
	}
}
