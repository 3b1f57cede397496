package cpu

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"tgc/ir/program"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/interp"
)

// What package render/llvm makes of these programs, compared there as text, computes on random bytes what the interpreter does.
func TestGoldenProgramsEqualInterpreter(t *testing.T) {
	for _, name := range []string{"lanes-alone", "parity"} {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("..", "..", "render", "llvm", "testdata", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			p, err := program.Parse(string(archive.Files[0].Data))
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(3, 5))
			buffers := make(map[int][]byte)
			for _, x := range p.Params {
				buffers[x.Slot] = make([]byte, x.Bytes)
				for i := range buffers[x.Slot] {
					buffers[x.Slot][i] = byte(r.Uint32())
				}
			}
			equalOnLevels(t, p, buffers)
		})
	}
}

// equalOnLevels compares the first buffer that a program writes on the levels of this machine with the interpreter's.
func equalOnLevels(t *testing.T, p *program.Program, buffers map[int][]byte) {
	reference := interp.New(interp.Options{Debug: true})
	interpreted, err := reference.Load(t.Context(), []*program.Program{p})
	if err != nil {
		t.Fatal(err)
	}
	want := runOn(t, reference, interpreted[0], buffers, nil)[0]
	for _, options := range []Options{{}, {CPU: "x86-64-v3", Features: llvmc.NoFeatures}, {CPU: "x86-64-v2", Features: llvmc.NoFeatures}} {
		d := newDevice(t, options)
		compiled, err := d.Load(t.Context(), expanded(d, []*program.Program{p}))
		if err != nil {
			t.Fatal(err)
		}
		if got := runOn(t, d, compiled[0], buffers, nil)[0]; !bytes.Equal(got, want) {
			t.Errorf("%s: %x, the interpreter %x", d.Target().Name, got, want)
		}
	}
}
