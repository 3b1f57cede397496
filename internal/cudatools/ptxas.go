package cudatools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// Assembled is machine code and what the assembler says of its one entry.
type Assembled struct {
	Cubin       []byte
	Registers   int
	Stack       int // bytes of local memory per thread
	SpillStores int // bytes
	SpillLoads  int
	Shared      int // bytes, static
	Log         string
}

// ErrArchitecture says that the installed ptxas is older than an architecture.
var ErrArchitecture = errors.New("unknown architecture")

var unknownArchitecture = regexp.MustCompile(`Value '\w+' is not defined for option 'gpu-name'`)

// Ptxas assembles PTX for an architecture as ptxas names it, "sm_90a".
func (t Tools) Ptxas(ctx context.Context, ptx, arch string) (*Assembled, error) {
	return t.assemble(ctx, ptx, arch)
}

func (t Tools) assemble(ctx context.Context, ptx, arch string, flags ...string) (*Assembled, error) {
	if err := t.need(t.PtxasPath, "ptxas"); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tgc-ptxas")
	if err != nil {
		return nil, fmt.Errorf("cudatools: %w", err)
	}
	defer os.RemoveAll(dir)
	source, object := filepath.Join(dir, "kernel.ptx"), filepath.Join(dir, "kernel.cubin")
	if err := os.WriteFile(source, []byte(ptx), 0o600); err != nil {
		return nil, fmt.Errorf("cudatools: %w", err)
	}
	log, err := run(ctx, t.PtxasPath, append(flags, "-v", "--gpu-name", arch, source, "-o", object)...)
	if unknownArchitecture.MatchString(log) {
		return nil, fmt.Errorf("cudatools: ptxas: %s: %w", arch, ErrArchitecture)
	}
	if err != nil {
		return nil, fmt.Errorf("cudatools: ptxas for %s: %w:\n%s", arch, err, log)
	}
	a := &Assembled{Log: log}
	if a.Cubin, err = os.ReadFile(object); err != nil {
		return nil, fmt.Errorf("cudatools: %w", err)
	}
	a.readLog()
	return a, nil
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(cause, err)
	}
	return out.String(), err
}

// The lines of ptxas -v: "Used 12 registers, 64 bytes smem, ..." and "0 bytes
// stack frame, 0 bytes spill stores, 0 bytes spill loads".
var (
	usedPattern   = regexp.MustCompile(`Used (\d+) registers`)
	sharedPattern = regexp.MustCompile(`(\d+) bytes smem`)
	stackPattern  = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
)

func (a *Assembled) readLog() {
	if m := usedPattern.FindStringSubmatch(a.Log); m != nil {
		a.Registers = number(m[1])
	}
	if m := sharedPattern.FindStringSubmatch(a.Log); m != nil {
		a.Shared = number(m[1])
	}
	if m := stackPattern.FindStringSubmatch(a.Log); m != nil {
		a.Stack, a.SpillStores, a.SpillLoads = number(m[1]), number(m[2]), number(m[3])
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
