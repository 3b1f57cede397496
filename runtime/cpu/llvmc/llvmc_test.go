package llvmc

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// start starts a compiler or skips the test where there is no libLLVM.
func start(t testing.TB, options Options) *Compiler {
	t.Helper()
	c, err := Start(t.Context(), options)
	if errors.Is(err, ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// addIR is a kernel that adds two i32 arrays of 16 lanes per unit.
const addIR = `
define void @add(i8** %args, i64 %lo, i64 %hi) nounwind {
entry:
  %a0 = load i8*, i8** %args
  %a = bitcast i8* %a0 to <16 x i32>*
  %p1 = getelementptr i8*, i8** %args, i64 1
  %b0 = load i8*, i8** %p1
  %b = bitcast i8* %b0 to <16 x i32>*
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %pa = getelementptr <16 x i32>, <16 x i32>* %a, i64 %i
  %pb = getelementptr <16 x i32>, <16 x i32>* %b, i64 %i
  %x = load <16 x i32>, <16 x i32>* %pa, align 4
  %y = load <16 x i32>, <16 x i32>* %pb, align 4
  %z = add <16 x i32> %x, %y
  store <16 x i32> %z, <16 x i32>* %pa, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}
`

// abortIR asks x86 for an ARM instruction: LLVM cannot select it and aborts.
const abortIR = `
declare <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32>, <16 x i8>, <16 x i8>)
define <4 x i32> @f(<4 x i32> %a, <16 x i8> %b) {
  %r = call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32> %a, <16 x i8> %b, <16 x i8> %b)
  ret <4 x i32> %r
}
`

func definesFunction(t *testing.T, object []byte, name string) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == name && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			return
		}
	}
	t.Fatalf("the object does not define %s", name)
}

func TestCompile(t *testing.T) {
	c := start(t, Options{Workers: 1})
	object, err := c.Compile(t.Context(), []byte(addIR))
	if err != nil {
		t.Fatal(err)
	}
	definesFunction(t, object, "add")
	again, err := c.Compile(t.Context(), []byte(addIR))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(object, again) {
		t.Error("the same IR gave two different objects")
	}
	h := c.Host()
	if h.Major < oldestVersion || h.CPU == "" || h.Features == "" {
		t.Errorf("host: %+v", h)
	}
	for _, part := range []string{h.Version, h.CPU, h.Features, DefaultPasses} {
		if !strings.Contains(c.Fingerprint(), part) {
			t.Errorf("fingerprint lacks %q", part)
		}
	}
}

func TestRejectedIR(t *testing.T) {
	c := start(t, Options{Workers: 1})
	for name, test := range map[string]struct{ ir, want string }{
		"empty":  {"", "empty module"},
		"syntax": {"define void @f( {", "expected type"},
		"verify": {"define i32 @f(i32 %a) {\n %b = add i32 %c, 1\n %c = add i32 %a, 1\n ret i32 %b\n}", "dominate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Compile(t.Context(), []byte(test.ir))
			var rejected *CompileError
			if !errors.As(err, &rejected) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want a CompileError that says %q", err, test.want)
			}
		})
	}
	if _, err := c.Compile(t.Context(), []byte(addIR)); err != nil {
		t.Errorf("a good compile after rejected ones: %v", err)
	}
}

func TestUnknownPassIsReported(t *testing.T) {
	c := start(t, Options{Workers: 1, Passes: "function(no-such-pass)"})
	_, err := c.Compile(t.Context(), []byte(addIR))
	var rejected *CompileError
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "no-such-pass") {
		t.Fatalf("got %v, want an error naming the pass", err)
	}
}

func TestAbortIsAnErrorAndTheNextCompileWorks(t *testing.T) {
	c := start(t, Options{Workers: 1, Triple: "x86_64-pc-linux-gnu", CPU: "x86-64", Features: NoFeatures})
	_, err := c.Compile(t.Context(), []byte(abortIR))
	var rejected *CompileError
	if err == nil || errors.As(err, &rejected) {
		t.Fatalf("got %v, want the death of the child", err)
	}
	if !strings.Contains(err.Error(), "LLVM ERROR") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("the error does not carry just LLVM's message: %v", err)
	}
	if _, err := c.Compile(t.Context(), []byte(addIR)); err != nil {
		t.Errorf("the compile after an abort: %v", err)
	}
}

// bigIR takes LLVM about a second: long enough to be interrupted.
func bigIR() []byte {
	var b bytes.Buffer
	b.WriteString("define i64 @big(i64 %v0, i64 %s) {\n")
	const lines = 60_000
	for i := range lines {
		fmt.Fprintf(&b, "  %%t%d = mul i64 %%v%d, %%s\n  %%v%d = xor i64 %%t%d, %d\n", i, i, i+1, i, i+3)
	}
	fmt.Fprintf(&b, "  ret i64 %%v%d\n}\n", lines)
	return b.Bytes()
}

func TestCancelKillsTheCompile(t *testing.T) {
	c := start(t, Options{Workers: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := c.Compile(ctx, bigIR())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("after %v: got %v, want the context's error", time.Since(begin), err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the cancelled compile returned after %v", took)
	}
	if _, err := c.Compile(t.Context(), []byte(addIR)); err != nil {
		t.Errorf("the compile after a cancelled one: %v", err)
	}
}

func TestDeadlineOfOneCompile(t *testing.T) {
	c := start(t, Options{Workers: 1, Timeout: 30 * time.Millisecond})
	if _, err := c.Compile(t.Context(), bigIR()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "longer than") {
		t.Fatalf("got %v, want the compiler's own deadline", err)
	}
}

func TestChildKilledFromOutside(t *testing.T) {
	c := start(t, Options{Workers: 1})
	worker := <-c.slots
	process := worker.cmd.Process
	c.slots <- worker
	time.AfterFunc(30*time.Millisecond, func() { process.Kill() })
	_, err := c.Compile(t.Context(), bigIR())
	if err == nil || !strings.Contains(err.Error(), "died (signal: killed)") {
		t.Fatalf("got %v, want an error naming the signal", err)
	}
	if _, err := c.Compile(t.Context(), []byte(addIR)); err != nil {
		t.Errorf("the compile after the child's death: %v", err)
	}
}

func TestConcurrentCompiles(t *testing.T) {
	c := start(t, Options{Workers: 2})
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			if i%8 == 3 {
				if _, err := c.Compile(t.Context(), []byte("nonsense")); err == nil {
					t.Error("nonsense compiled")
				}
				return
			}
			name := fmt.Sprint("kernel", i)
			object, err := c.Compile(t.Context(), []byte(strings.ReplaceAll(addIR, "@add", "@"+name)))
			if err != nil {
				t.Error(err)
				return
			}
			if !bytes.Contains(object, []byte(name)) {
				t.Errorf("compile %d got another compile's object", i)
			}
		})
	}
	group.Wait()
}

func TestClose(t *testing.T) {
	c := start(t, Options{Workers: 2})
	worker := <-c.slots
	if worker == nil {
		other := <-c.slots
		c.slots <- worker
		worker = other
	}
	c.slots <- worker
	c.Close()
	c.Close()
	if worker.cmd.ProcessState == nil {
		t.Error("the child was not waited for")
	}
	if _, err := c.Compile(t.Context(), []byte(addIR)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("compile after Close: %v, want os.ErrClosed", err)
	}
}

func TestNoLibraryIsErrNoLLVM(t *testing.T) {
	t.Setenv("TGC_LLVM", filepath.Join(t.TempDir(), "libLLVM-none.so"))
	if _, err := Start(t.Context(), Options{}); !errors.Is(err, ErrNoLLVM) || !strings.Contains(err.Error(), "TGC_LLVM") {
		t.Fatalf("got %v, want ErrNoLLVM naming the variable", err)
	}
}

func TestTooOldLibrary(t *testing.T) {
	t.Setenv("TGC_LLVM", "libLLVM-14.so.1")
	_, err := Start(t.Context(), Options{})
	if err != nil && strings.Contains(err.Error(), "cannot open") {
		t.Skip("libLLVM 14 is not installed")
	}
	if !errors.Is(err, ErrNoLLVM) || !strings.Contains(err.Error(), "want 15") {
		t.Fatalf("got %v, want ErrNoLLVM naming the oldest release", err)
	}
}

// TestEachInstalledVersion compiles with every release that is installed.
func TestEachInstalledVersion(t *testing.T) {
	start(t, Options{Workers: 1}).Close() // skips where there is none
	for n := oldestVersion; n <= newestVersion; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for _, pattern := range []string{"libLLVM.so.%d.1", "libLLVM-%d.so.1"} {
				t.Setenv("TGC_LLVM", fmt.Sprintf(pattern, n))
				c, err := Start(t.Context(), Options{Workers: 1})
				if errors.Is(err, ErrNoLLVM) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if c.Host().Major != n {
					t.Errorf("version: got %s, want %d", c.Host().Version, n)
				}
				object, err := c.Compile(t.Context(), []byte(addIR))
				if err != nil {
					t.Fatal(err)
				}
				definesFunction(t, object, "add")
				return
			}
			t.Skip("not installed")
		})
	}
}

func TestCrossCompile(t *testing.T) {
	c := start(t, Options{Workers: 1, Triple: "aarch64-unknown-linux-gnu", CPU: "generic", Features: "+dotprod"})
	object, err := c.Compile(t.Context(), []byte(abortIR))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	if f.Machine != elf.EM_AARCH64 {
		t.Errorf("machine: got %v, want aarch64", f.Machine)
	}
}

func TestFrames(t *testing.T) {
	var pipe bytes.Buffer
	for _, frame := range []string{"", "a", strings.Repeat("long", 1000)} {
		if err := writeFrame(&pipe, []byte(frame)); err != nil {
			t.Fatal(err)
		}
		got, err := readFrame(&pipe)
		if err != nil || string(got) != frame {
			t.Fatalf("a frame of %d bytes came back as %d bytes, %v", len(frame), len(got), err)
		}
	}
	for name, raw := range map[string][]byte{"short length": {1, 0}, "short frame": {4, 0, 0, 0, 'a'}, "too long": {0xff, 0xff, 0xff, 0xff}} {
		if _, err := readFrame(bytes.NewReader(raw)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	start(b, Options{Workers: 1}).Close()
	for b.Loop() {
		c, err := Start(b.Context(), Options{Workers: 1})
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

func BenchmarkCompileSmall(b *testing.B) {
	c := start(b, Options{Workers: 1})
	for b.Loop() {
		if _, err := c.Compile(b.Context(), []byte(addIR)); err != nil {
			b.Fatal(err)
		}
	}
}
