package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"tgc/internal/cudatools"
)

// Assemblers, for Options.Assembler.
const (
	// AssembleDriver is the driver's own: always there, of its version.
	AssembleDriver = "driver"
	// AssemblePTXAS is the toolkit's ptxas, where package cudatools finds it.
	AssemblePTXAS = "ptxas"
)

// assembler turns PTX into machine code for the device.
type assembler interface {
	// fingerprint names all that the machine code depends on but the text.
	fingerprint() string
	// assemble runs outside Device.with.
	assemble(ctx context.Context, entry, text string) (cubin []byte, log string, err error)
}

func newAssembler(d *Device) (assembler, error) {
	switch d.options.Assembler {
	case "", AssembleDriver:
		return &driverAssembler{d}, nil
	case AssemblePTXAS:
		return findPTXAS(d.options.CUDAPath, d.architecture())
	}
	return nil, fmt.Errorf("assembler %q: want %s or %s", d.options.Assembler, AssembleDriver, AssemblePTXAS)
}

// architecture is the GPU's as ptxas names it: sm_90a.
func (d *Device) architecture() string {
	if d.desc.Special {
		return fmt.Sprintf("sm_%da", d.desc.SM)
	}
	return fmt.Sprintf("sm_%d", d.desc.SM)
}

// driverAssembler is the compiler inside libcuda.
type driverAssembler struct{ device *Device }

// releaseFile says which release of the driver runs: several share one CUDA
// version.
const releaseFile = "/proc/driver/nvidia/version"

func (a *driverAssembler) fingerprint() string {
	release, err := os.ReadFile(releaseFile)
	if err != nil {
		release = nil // then the CUDA version has to do
	}
	first, _, _ := strings.Cut(string(release), "\n")
	return fmt.Sprintf("driver %d %s %s", a.device.info.CUDAVersion, a.device.architecture(), first)
}

func (a *driverAssembler) assemble(_ context.Context, entry, text string) (cubin []byte, log string, err error) {
	err = a.device.with(func() error {
		var err error
		cubin, log, err = a.device.drv.Link(entry, text)
		return err
	})
	return cubin, log, err
}

// ptxas is the toolkit's assembler, a process per kernel.
type ptxas struct {
	tools         cudatools.Tools
	version, arch string
}

func findPTXAS(cudaPath, arch string) (*ptxas, error) {
	tools := cudatools.Find(cudaPath)
	if tools.PtxasPath == "" {
		return nil, errors.New("no ptxas: set TGC_CUDA_PATH to a CUDA toolkit")
	}
	version, err := exec.Command(tools.PtxasPath, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", tools.PtxasPath, err)
	}
	lines := strings.Split(strings.TrimSpace(string(version)), "\n")
	return &ptxas{tools: tools, version: lines[len(lines)-1], arch: arch}, nil
}

func (a *ptxas) fingerprint() string { return "ptxas " + a.version + " " + a.arch }

func (a *ptxas) assemble(ctx context.Context, _, text string) (cubin []byte, log string, err error) {
	made, err := a.tools.Ptxas(ctx, text, a.arch)
	if err != nil {
		return nil, "", err
	}
	return made.Cubin, made.Log, nil
}
