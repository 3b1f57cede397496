package ptx

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tgc/ir/program"
)

// copies is the program of a golden file.
func copies(t *testing.T) *program.Program {
	t.Helper()
	text, err := os.ReadFile("testdata/copies.txtar")
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Parse(section(txtar.Parse(text), "in.program"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What threads copy arrives, behind a wait and a barrier.
func TestCopies(t *testing.T) {
	const threads, of = 64, 32 // bytes of each
	x, y := make([]byte, threads*of), make([]byte, threads*of)
	for i := range len(x) / 4 {
		binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(float32(i)))
	}
	emulate(t, copies(t), "sm_87", Options{}, map[int][]byte{0: x, 1: y}, nil, 1)
	for thread := range threads {
		want, got := x[(thread+1)%threads*of:][:28], y[thread*of:][:28]
		if !bytes.Equal(got, want) {
			t.Errorf("thread %d: %x, want %x", thread, got, want)
		}
	}
}

func TestCopiesElsewhere(t *testing.T) {
	p := copies(t)
	if _, err := Render(p, describe(t, "sm_75"), Options{}); err == nil || !strings.Contains(err.Error(), "has no asynchronous copies") {
		t.Errorf("sm_75: %v", err)
	}
}
