package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Assemblers, for Options.Assembler.
const (
	// AssembleDriver is the driver's own: always there, of its version.
	AssembleDriver = "driver"
	// AssemblePTXAS is the toolkit's ptxas, found in $TGC_CUDA_PATH, $PATH or
	// /usr/local/cuda.
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
	_, name, _ := strings.Cut(d.desc.Name, ":")
	name, _, _ = strings.Cut(name, "+")
	return name
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
type ptxas struct{ path, version, arch string }

func findPTXAS(cudaPath, arch string) (*ptxas, error) {
	names := []string{"ptxas", "/usr/local/cuda/bin/ptxas"}
	if cudaPath != "" {
		names = append([]string{filepath.Join(cudaPath, "bin", "ptxas")}, names...)
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version, err := exec.Command(path, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("%s --version: %w", path, err)
		}
		lines := strings.Split(strings.TrimSpace(string(version)), "\n")
		return &ptxas{path: path, version: lines[len(lines)-1], arch: arch}, nil
	}
	return nil, errors.New("no ptxas: set TGC_CUDA_PATH to a CUDA toolkit")
}

func (a *ptxas) fingerprint() string { return "ptxas " + a.version + " " + a.arch }

func (a *ptxas) assemble(ctx context.Context, entry, text string) (cubin []byte, log string, err error) {
	dir, err := os.MkdirTemp("", "tgc-ptxas-")
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in, out := filepath.Join(dir, entry+".ptx"), filepath.Join(dir, entry+".cubin")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	said, err := exec.CommandContext(ctx, a.path, "-v", "-arch="+a.arch, "-o", out, in).CombinedOutput()
	if err != nil {
		return nil, string(said), fmt.Errorf("%s: %w", a.path, err)
	}
	cubin, err = os.ReadFile(out)
	return cubin, string(said), err
}
