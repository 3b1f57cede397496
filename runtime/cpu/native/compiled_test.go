package native

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"tgc/runtime/cpu/llvmc"
)

// Kernels compiled for this machine, with every release of LLVM at hand.

// addIR: a[i] += b[i] over <16 x i32>.
const addIR = `
define void @add(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %a = load ptr, ptr %args
  %pb = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %pb
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %qa = getelementptr <16 x i32>, ptr %a, i64 %i
  %qb = getelementptr <16 x i32>, ptr %b, i64 %i
  %x = load <16 x i32>, ptr %qa, align 4
  %y = load <16 x i32>, ptr %qb, align 4
  %z = add <16 x i32> %x, %y
  store <16 x i32> %z, ptr %qa, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}
`

// dotIR: out[i] = sum over 64 columns of w[i][k]*x[k].
const dotIR = `
declare float @llvm.vector.reduce.fadd.v16f32(float, <16 x float>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
define void @dot(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %out = load ptr, ptr %args
  %pw = getelementptr ptr, ptr %args, i64 1
  %w = load ptr, ptr %pw
  %px = getelementptr ptr, ptr %args, i64 2
  %x = load ptr, ptr %px
  br label %row
row:
  %i = phi i64 [ %lo, %entry ], [ %nexti, %rowdone ]
  %r = mul i64 %i, 4
  br label %loop
loop:
  %k = phi i64 [ 0, %row ], [ %nextk, %loop ]
  %acc = phi <16 x float> [ zeroinitializer, %row ], [ %sum, %loop ]
  %rk = add i64 %r, %k
  %qw = getelementptr <16 x float>, ptr %w, i64 %rk
  %vw = load <16 x float>, ptr %qw, align 4
  %qx = getelementptr <16 x float>, ptr %x, i64 %k
  %vx = load <16 x float>, ptr %qx, align 4
  %sum = call <16 x float> @llvm.fma.v16f32(<16 x float> %vw, <16 x float> %vx, <16 x float> %acc)
  %nextk = add i64 %k, 1
  %morek = icmp slt i64 %nextk, 4
  br i1 %morek, label %loop, label %rowdone
rowdone:
  %total = call reassoc float @llvm.vector.reduce.fadd.v16f32(float -0.0, <16 x float> %sum)
  %qo = getelementptr float, ptr %out, i64 %i
  store float %total, ptr %qo
  %nexti = add i64 %i, 1
  %morei = icmp slt i64 %nexti, %hi
  br i1 %morei, label %row, label %done
done:
  ret void
}
`

// zeroIR: a loop that LLVM's loop passes know to be memset.
const zeroIR = `
define void @zero(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %a = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %p = getelementptr i64, ptr %a, i64 %i
  store i64 0, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}
`

// eachLLVM runs a test with each release of LLVM that is installed.
func eachLLVM(t *testing.T, test func(t *testing.T)) {
	found := false
	for n := 15; n <= 22; n++ {
		for _, pattern := range []string{"libLLVM.so.%d.1", "libLLVM-%d.so.1"} {
			name := fmt.Sprintf(pattern, n)
			t.Run(name, func(t *testing.T) {
				t.Setenv("TGC_LLVM", name)
				c, err := llvmc.Start(t.Context(), llvmc.Options{Workers: 1})
				skipWithoutLLVM(t, err)
				c.Close()
				found = true
				test(t)
			})
		}
	}
	if !found {
		t.Skip("no libLLVM 15 to 22 under its usual names")
	}
}

func TestCompiledKernels(t *testing.T) {
	eachLLVM(t, func(t *testing.T) {
		p := newPool(t, 2)
		t.Run("add", func(t *testing.T) { checkAdd(t, p) })
		t.Run("dot", func(t *testing.T) { checkDot(t, p) })
		t.Run("zero", func(t *testing.T) { checkZero(t, p) })
	})
}

func checkAdd(t *testing.T, p *Pool) {
	kernel := entries(t, compile(t, llvmc.Options{Workers: 1}, addIR))
	const units = 37
	a, x := numbers(t, units*8)
	b, y := numbers(t, units*8)
	for i := range a {
		a[i], b[i] = int64(i)<<32|int64(i), 3<<32|5
	}
	run(t, p, newStep(t, []Call{{Fn: kernel("add"), Args: []uint64{x, y}, Units: units}}))
	for i, v := range a {
		if want := (int64(i)+3)<<32 | (int64(i) + 5); v != want {
			t.Fatalf("a[%d]: got %#x, want %#x", i, v, want)
		}
	}
}

func checkDot(t *testing.T, p *Pool) {
	kernel := entries(t, compile(t, llvmc.Options{Workers: 1}, dotIR))
	const rows, columns = 33, 64
	floats := func(n int) ([]float32, uint64) {
		values, address := numbers(t, (n+1)/2)
		return unsafe.Slice((*float32)(unsafe.Pointer(&values[0])), n), address
	}
	w, pw := floats(rows * columns)
	x, px := floats(columns)
	out, pout := floats(rows)
	for i := range w {
		w[i] = float32(math.Sin(float64(i)))
	}
	for i := range x {
		x[i] = float32(math.Cos(float64(i)))
	}
	run(t, p, newStep(t, []Call{{Fn: kernel("dot"), Args: []uint64{pout, pw, px}, Units: rows, Granularity: 4}}))
	for i, got := range out {
		want, terms := 0.0, 0.0
		for k := range x {
			product := float64(w[i*columns+k]) * float64(x[k])
			want += product
			terms += math.Abs(product)
		}
		if math.Abs(float64(got)-want) > 1e-6*terms {
			t.Errorf("row %d: got %v, want %v", i, got, want)
		}
	}
}

// checkZero has LLVM turn a loop into memset, which the loader resolves.
func checkZero(t *testing.T, p *Pool) {
	file := compile(t, llvmc.Options{Workers: 1, Passes: "default<O2>"}, zeroIR)
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	imported := false
	for _, s := range symbols {
		imported = imported || s.Name == "memset" && s.Section == elf.SHN_UNDEF
	}
	if !imported {
		t.Error("the object does not import memset: this test shows nothing")
	}
	kernel := entries(t, file)
	a, x := numbers(t, 1000)
	for i := range a {
		a[i] = -1
	}
	run(t, p, newStep(t, []Call{{Fn: kernel("zero"), Args: []uint64{x}, Units: 999}}))
	for i, v := range a {
		if want := -b2i(i == 999); v != want {
			t.Fatalf("a[%d]: got %d, want %d", i, v, want)
		}
	}
}

// TestWideVectorsSurvive: 512-bit vectors of the IR must not be split, even
// where the CPU's tuning prefers 256 bits.
func TestWideVectorsSurvive(t *testing.T) {
	disassembler, err := exec.LookPath("objdump")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("needs objdump on amd64")
	}
	eachLLVM(t, func(t *testing.T) {
		for _, cpu := range []string{"skylake-avx512", "sapphirerapids"} {
			file := compile(t, llvmc.Options{Workers: 1, CPU: cpu, Features: llvmc.NoFeatures}, dotIR)
			path := filepath.Join(t.TempDir(), "dot.o")
			if err := os.WriteFile(path, file, 0o666); err != nil {
				t.Fatal(err)
			}
			text, err := exec.Command(disassembler, "-d", path).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if !strings.Contains(string(text), "zmm") || !strings.Contains(string(text), "vfmadd") {
				t.Errorf("%s: no FMA on zmm registers in\n%s", cpu, text)
			}
		}
	})
}
