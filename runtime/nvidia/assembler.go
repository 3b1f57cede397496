package nvidia

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tgc/internal/nvjitlink"
)

// Assembler makes machine code of PTX without a driver.
type Assembler interface {
	// Fingerprint names all that the machine code depends on but the text.
	Fingerprint() string
	// Assemble makes machine code; log is what the assembler said.
	Assemble(ctx context.Context, text string) (cubin []byte, log string, err error)
}

// assemblers are those of a toolkit, the best first: ptxas runs a process a kernel, several
// at once; the library one kernel at a time.
var assemblers = []struct {
	name string
	find func(cudaPath, arch string) (Assembler, error)
}{
	{"ptxas", func(cudaPath, arch string) (Assembler, error) {
		a, err := FindPTXAS(cudaPath, arch)
		return a, err
	}},
	{"nvjitlink", func(cudaPath, arch string) (Assembler, error) {
		library, err := nvjitlink.Open(cudaPath)
		return &linker{library, arch}, err
	}},
}

// ErrNoAssembler is wrapped where no assembler is there.
var ErrNoAssembler = errors.New("no assembler")

// FindAssembler finds an assembler by name, or the best one that is there.
func FindAssembler(name, cudaPath, arch string) (Assembler, error) {
	var names []string
	var reasons []error
	for _, row := range assemblers {
		names = append(names, row.name)
		if name != "" && name != row.name {
			continue
		}
		a, err := row.find(cudaPath, arch)
		if err == nil {
			return a, nil
		}
		reasons = append(reasons, err)
	}
	if reasons == nil {
		return nil, fmt.Errorf("assembler %q: want %s", name, strings.Join(names, " or "))
	}
	return nil, fmt.Errorf("%w: %w", ErrNoAssembler, errors.Join(reasons...))
}

// linker is libnvJitLink.
type linker struct {
	library *nvjitlink.Library
	arch    string
}

func (l *linker) Fingerprint() string { return l.library.Version() + " " + l.arch }

func (l *linker) Assemble(ctx context.Context, text string) ([]byte, string, error) {
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	cubin, err := l.library.Assemble(text, l.arch)
	return cubin, "", err
}
