package cuda

import (
	"context"
	"fmt"
	"os"
	"strings"

	"tgc/runtime/nvidia"
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
func (d *Device) architecture() string { return nvidia.Architecture(d.desc) }

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

// ptxas is the toolkit's assembler.
type ptxas struct{ *nvidia.PTXAS }

func findPTXAS(cudaPath, arch string) (ptxas, error) {
	found, err := nvidia.FindPTXAS(cudaPath, arch)
	return ptxas{found}, err
}

func (a ptxas) fingerprint() string { return a.Fingerprint() }

func (a ptxas) assemble(ctx context.Context, _, text string) (cubin []byte, log string, err error) {
	return a.Assemble(ctx, text)
}
