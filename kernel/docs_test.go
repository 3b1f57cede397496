package kernel_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is out of date (go test ./kernel -update)\n%s", path, firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// Program texts, and the figures that a missed hoist or fold would change.
func TestProgramGoldens(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		build      func(b *builder) *ir.UOp
		weights    int64 // of one iteration of the innermost loop
	}{
		{"elementwise", "VECTOR s0 16; UPCAST s0 2", func(b *builder) *ir.UOp { return elementwise(b, 128) }, 0},
		{"matvec_q8_0", "VECTOR r0 32; UNROLL r0 2; STAGE r0; PREFETCH p2 8192; FMA", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 4, 256, true) }, 64},
		{"matvec_q6_k", "VECTOR r0 32; UNROLL r0 8; STAGE r0; PREFETCH p2 8192; FMA", func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 4, 1024, false) }, 256},
		{"matvec_q4_k", "VECTOR r0 32; UNROLL r0 8; STAGE r0; PREFETCH p2 8192; FMA", func(b *builder) *ir.UOp { return packedMatvec(b, "Q4_K", 4, 1024, false) }, 256},
		{"pack_q6_k", "PACK r0; PREFETCH p2 8192; FMA", func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 4, 1024, false) }, 256},
		{"pack_q4_k", "PACK r0; PREFETCH p2 8192; FMA", func(b *builder) *ir.UOp { return packedMatvec(b, "Q4_K", 4, 1024, false) }, 256},
		{"attention", "VECTOR s1 16; VECTOR r1 16; FMA", func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) }, 0},
		{"tiles", "UPCAST s1; UNROLL z0; VECTOR r0 16; FMA", func(b *builder) *ir.UOp { return tiles(b, 4, 2, 32) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder()
			p := evaluate(t, b.Arena, c.build(b), c.plan, map[string]int64{"pos": 4})
			figures := "innermost loop: " + fmt.Sprint(innermost(p.Body)) + " instructions"
			if c.weights > 0 {
				figures += fmt.Sprintf(", %.2f register operations for 16 weights", float64(registers(p.Body))/float64(c.weights/16))
			}
			a := &txtar.Archive{Comment: []byte("plan: " + c.plan + "\n" + figures + "\n"), Files: []txtar.File{{Name: "program", Data: []byte(program.Print(p))}}}
			golden(t, filepath.Join("testdata", c.name+".txtar"), string(txtar.Format(a)))
		})
	}
}

// deepest finds the largest loop body without a loop in it.
func deepest(b *program.Block) *program.Block {
	var best *program.Block
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Body == nil {
			continue
		}
		inner := deepest(in.Body)
		if inner == nil && in.Op == program.For {
			inner = in.Body
		}
		if inner != nil && (best == nil || len(inner.Instrs) >= len(best.Instrs)) {
			best = inner
		}
	}
	return best
}

func innermost(b *program.Block) int {
	if d := deepest(b); d != nil {
		return len(d.Instrs)
	}
	return 0
}

// registers counts the vector instructions of the innermost loop, each as often
// as its result fills 512-bit registers (addresses and free bitcasts left out).
func registers(b *program.Block) int {
	n := 0
	for _, in := range deepest(b).Instrs {
		if in.Result == nil || in.Result.Type.Ptr || in.Result.Type.Lanes == 1 {
			continue
		}
		bits := in.Result.Type.Lanes * in.Result.Type.Elem.Size() * 8
		n += max((bits+511)/512, 1)
	}
	return n
}

func TestLegality(t *testing.T) {
	for _, c := range []struct{ plan, want string }{
		{"AHEAD 16", "refused on test:avx512: a CPU loads no weights ahead of a wait"},
		{"PACK r0 32", "32 words, want a power of two below 16"},
		{"PACK r0 16", "has no effect: 16 words are what a register holds"},
		{"LINES 2", "has no effect: no PREFETCH"},
		{"VECTOR q0 4", `no axis "q0"`},
		{"UPCAST r0 4", "r0 is no store axis"},
		{"GROUP s0 4", "s0 is no reduce axis"},
		{"CLUSTER r0 4", "refused on test:avx512: its blocks share no memory"},
		{"UNROLL r0 2; TC r0", "lowest"},
		{"PRELOAD p0", "refused"},
		{"PREFETCH p9 64", "no buffer in slot 9"},
		{"VECTOR r0 512", "at most 256 are allowed"},
		{"VECTOR r0 64; VECTOR r0 16", "at most 4 are allowed"},
		{"UNROLL r0 2000", "at most 1024 are allowed"},
		{"SWAP s0 7", "no axis s7"},
	} {
		b := newBuilder()
		chosen, err := plan.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		err = plan.Legality(matvec(b, 6, 4096), chosen, avx512)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.plan, err, c.want)
		}
	}
}

// Opts that choose what passes over programs do are refused where they change nothing.
func TestLegalityOfOptions(t *testing.T) {
	for _, c := range []struct{ plan, want string }{
		{"AHEAD 16", "has no effect: no weight is loaded early, which PRELOAD asks for"},
		{"PRELOAD p2; AHEAD 64", "has no effect: it is so without the Opt"},
		{"PRELOAD p2; AHEAD 1000", "want 1..255"},
		{"PRELOAD p2; REFILL on", "has no effect: it is so without the Opt"},
		{"ORDER 32", "has no effect: no weight is loaded early"},
		{"PRELOAD p2; ORDER 32; TRIGGER wait", "opt 1 \"ORDER 32\" has no effect: permissions for the next kernel"},
		{"LOCAL s0 4; WARP r0 32; BLOCKS 17", "has no effect: blocks of 128 threads, of which a multiprocessor holds 2048"},
		{"REGS 64; BLOCKS 2", "opt 0 \"REGS 64\" has no effect: BLOCKS says"},
		{"REGS 16", "want 24..255"},
		{"BLOCKS 33", "want 1..32"},
		{"CARVEOUT 12", "amount 12, the target has [8 16 32 64 100 132 164 196 228]"},
		{"TRIGGER start", "has no effect: it is so without the Opt"},
		{"LOCAL s0 4; TURNS 1", "has no effect: no tiles in shared memory"},
		{"TURNS 3", "want 1..2"},
		{"KEEP 4", "has no effect: no weight is loaded early"},
		{"CACHE p0 const", "p0 is no packed weight: the kernel before may have written it"},
		{"CACHE p5 const", "no buffer in slot 5"},
		{"AHEAD 16; PRELOAD p2; AHEAD 32", "says it once"},
		{"CLUSTER r0 3", "3 blocks, want a power of two up to 8"},
		{"CLUSTER r0 16", "16 blocks, want a power of two up to 8"},
		{"CLUSTER r0 2; CLUSTER r0 2", "2 blocks share r0"},
	} {
		b := newBuilder()
		chosen, err := plan.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		err = plan.Legality(packedMatvec(b, "Q8_0", 4, 256, false), chosen, hopper(t))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.plan, err, c.want)
		}
	}
}
