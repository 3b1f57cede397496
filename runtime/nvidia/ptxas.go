package nvidia

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"tgc/internal/cudatools"
	"tgc/target"
)

// Architecture is a GPU's as ptxas names it: sm_90a.
func Architecture(desc *target.Desc) string {
	if desc.Special {
		return fmt.Sprintf("sm_%da", desc.SM)
	}
	return fmt.Sprintf("sm_%d", desc.SM)
}

// PTXAS is the toolkit's assembler, a process per kernel.
type PTXAS struct {
	tools         cudatools.Tools
	version, arch string
}

// FindPTXAS finds ptxas in a toolkit, where package cudatools finds it.
func FindPTXAS(cudaPath, arch string) (*PTXAS, error) {
	tools := cudatools.Find(cudaPath)
	if tools.PtxasPath == "" {
		return nil, errors.New("no ptxas: set TGC_CUDA_PATH to a CUDA toolkit")
	}
	version, err := exec.Command(tools.PtxasPath, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", tools.PtxasPath, err)
	}
	lines := strings.Split(strings.TrimSpace(string(version)), "\n")
	return &PTXAS{tools: tools, version: lines[len(lines)-1], arch: arch}, nil
}

// Fingerprint names all that the machine code depends on but the text.
func (a *PTXAS) Fingerprint() string { return "ptxas " + a.version + " " + a.arch }

// Assemble makes machine code.
func (a *PTXAS) Assemble(ctx context.Context, text string) (cubin []byte, log string, err error) {
	made, err := a.tools.Ptxas(ctx, text, a.arch)
	if err != nil {
		return nil, "", err
	}
	return made.Cubin, made.Log, nil
}
