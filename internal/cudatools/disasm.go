package cudatools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Listing is what machine code consists of.
type Listing struct {
	Text         string
	Instructions int            // without the padding behind the end
	ByPipe       map[string]int // see pipes
	ByOpcode     map[string]int // by the name before the first dot
	// WidestLoad is the widest access in bytes by space ("global", "shared",
	// "local"), 4 for one register.
	WidestLoad  map[string]int
	WidestStore map[string]int
	Entry       int    // instructions of the entry itself, without its subroutines
	Loops       []Loop // of the entry, in order
}

// Nvdisasm lists the instructions of machine code.
func (t Tools) Nvdisasm(ctx context.Context, cubin []byte) (*Listing, error) {
	text, err := t.list(ctx, cubin)
	if err != nil {
		return nil, err
	}
	return summarise(text), nil
}

func (t Tools) list(ctx context.Context, cubin []byte, flags ...string) (string, error) {
	if err := t.need(t.NvdisasmPath, "nvdisasm"); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "tgc-nvdisasm")
	if err != nil {
		return "", fmt.Errorf("cudatools: %w", err)
	}
	defer os.RemoveAll(dir)
	object := filepath.Join(dir, "kernel.cubin")
	if err := os.WriteFile(object, cubin, 0o600); err != nil {
		return "", fmt.Errorf("cudatools: %w", err)
	}
	text, err := run(ctx, t.NvdisasmPath, append(flags, "--print-code", object)...)
	if err != nil {
		return "", fmt.Errorf("cudatools: nvdisasm: %w:\n%s", err, text)
	}
	return text, nil
}

// An instruction: address, perhaps a predicate, opcode with modifiers.
var instruction = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)`)

func summarise(text string) *Listing {
	l := &Listing{Text: text, ByPipe: make(map[string]int), ByOpcode: make(map[string]int),
		WidestLoad: make(map[string]int), WidestStore: make(map[string]int)}
	var opcodes []string
	for line := range strings.Lines(text) {
		if m := instruction.FindStringSubmatch(line); m != nil {
			opcodes = append(opcodes, m[1])
		}
	}
	// Behind the last exit stand a branch to itself and padding.
	for n := len(opcodes); n > 0 && (opcodes[n-1] == "NOP" || strings.HasPrefix(opcodes[n-1], "BRA")); n-- {
		opcodes = opcodes[:n-1]
	}
	for _, full := range opcodes {
		name, _, _ := strings.Cut(full, ".")
		l.Instructions++
		l.ByOpcode[name]++
		l.ByPipe[pipeOf(name)]++
		l.access(name, full)
	}
	l.control()
	return l
}

// pipes groups opcodes by the unit that executes them (Volta to Hopper).
var pipes = map[string][]string{
	"fma":     {"FFMA", "FMUL", "FADD", "IMAD", "HFMA2", "HMUL2", "HADD2"},
	"alu":     {"LOP3", "SHF", "PRMT", "IADD3", "IABS", "ISETP", "FSETP", "SEL", "FSEL", "FMNMX", "IMNMX", "VIMNMX", "LEA", "MOV", "PLOP3", "SGXT", "BMSK", "FCHK", "HSETP2", "VIADD", "P2R", "R2P", "CS2R"},
	"dot":     {"IDP", "IDP4A"},
	"xu":      {"MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "I2FP", "F2FP"},
	"tensor":  {"HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA"},
	"memory":  {"LDG", "STG", "LDS", "STS", "LDL", "STL", "LD", "ST", "LDC", "LDSM", "LDGSTS", "ATOM", "ATOMG", "ATOMS", "RED", "SHFL", "CCTL", "LDGDEPBAR", "DEPBAR", "MEMBAR", "S2R", "ACQBULK", "UBLKPF", "ERRBAR"},
	"control": {"BRA", "EXIT", "BAR", "BSSY", "BSYNC", "CALL", "RET", "NOP", "WARPSYNC", "BREAK", "YIELD", "PREEXIT", "VOTE", "NANOSLEEP", "BRX", "JMP", "BMOV"},
	"f64":     {"DFMA", "DADD", "DMUL", "DSETP", "DMNMX"},
	"uniform": {"R2UR", "ULDC", "S2UR"},
}

var pipeByOpcode = func() map[string]string {
	m := make(map[string]string)
	for pipe, opcodes := range pipes {
		for _, o := range opcodes {
			m[o] = pipe
		}
	}
	return m
}()

func pipeOf(name string) string {
	if p, ok := pipeByOpcode[name]; ok {
		return p
	}
	if strings.HasPrefix(name, "U") {
		return "uniform"
	}
	return "other"
}

// memoryOpcodes are accesses by space.
var memoryOpcodes = map[string]struct {
	space string
	store bool
}{
	"LDG": {"global", false}, "STG": {"global", true}, "LDS": {"shared", false}, "STS": {"shared", true},
	"LDL": {"local", false}, "STL": {"local", true},
}

func (l *Listing) access(name, full string) {
	m, ok := memoryOpcodes[name]
	if !ok {
		return
	}
	width := 4
	for _, part := range strings.Split(full, ".")[1:] {
		switch part {
		case "128":
			width = 16
		case "64":
			width = 8
		case "U16", "S16":
			width = 2
		case "U8", "S8":
			width = 1
		}
	}
	widest := l.WidestLoad
	if m.store {
		widest = l.WidestStore
	}
	widest[m.space] = max(widest[m.space], width)
}
