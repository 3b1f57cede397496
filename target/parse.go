package target

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// costInterp are costs of the interpreter: an operation takes some 20 ns of
// dispatch, whatever its width.
var costInterp = Cost{ByteDRAM: 25, ByteCache: 25, Op: 20_000, Transcend: 40_000, Launch: 1_000, Workers: 1}

// Interp describes the interpreter. Its dispatch costs far more than its
// arithmetic, so vectors pay there too.
func Interp() *Desc {
	return &Desc{
		Name: "interp", Kind: Interpreter, VectorBytes: 64, VectorRegs: 32, WarpSize: 1, MaxThreads: 1, FMA: true,
		CacheL1Bytes: 32 << 10, CacheL2Bytes: 1 << 20, Cost: costInterp, Tuning: tuningCPU(),
	}
}

// families are the targets by the name before the colon, which is that of the
// language their programs are printed in (package render).
var families = []struct {
	name, form string
	parse      func(name, rest string) (*Desc, error)
}{
	{"llvm", "llvm[:CPU]", parseCPU},
	{"ptx", "ptx:sm_NN", parseGPU},
	{"cuda", "cuda:sm_NN", parseGPU},
	{"interp", "interp", parseInterp},
}

// Names lists the forms of the names that Parse reads.
func Names() string {
	var forms []string
	for _, f := range families {
		forms = append(forms, f.form)
	}
	return strings.Join(forms, ", ")
}

// Parse reads a target's name: "interp"; "llvm" or "llvm:" with a CPU or level
// that LLVM knows, as in llvm:x86-64-v4, and features, as in
// llvm:x86-64-v4+avx512vnni; "ptx:sm_90a" or "cuda:sm_80". Bare "llvm" is the
// level of the build's architecture that every machine has: who knows the
// machine uses ForCPU.
func Parse(name string) (*Desc, error) {
	kind, rest, _ := strings.Cut(name, ":")
	for _, f := range families {
		if f.name == kind {
			return f.parse(name, rest)
		}
	}
	return nil, fmt.Errorf("target: %q: want one of %s", name, Names())
}

func parseInterp(name, rest string) (*Desc, error) {
	if rest != "" {
		return nil, fmt.Errorf("target: %q: want interp", name)
	}
	return Interp(), nil
}

// assumedCores is the number of cores of a target that is only named: fixed, so
// that a listing is the same wherever it is made.
const assumedCores = 4

func parseCPU(name, rest string) (*Desc, error) {
	parts := strings.Split(rest, "+")
	cpu := parts[0]
	if cpu == "" {
		cpu = map[string]string{"amd64": "x86-64-v2", "arm64": "arm64"}[runtime.GOARCH]
	}
	if _, known := cpuNames[cpu]; !known {
		return nil, fmt.Errorf("target: %q: unknown CPU %q", name, cpu)
	}
	var features []string
	for _, f := range parts[1:] {
		if !knownFeature(f) {
			return nil, fmt.Errorf("target: %q: unknown feature %q", name, f)
		}
		features = append(features, expandFeature(cpu, f))
	}
	return ForCPU(cpu, features, assumedCores), nil
}

// expandFeature spells a short name from Desc.Name, "vnni", as LLVM does.
func expandFeature(cpu, f string) string {
	if f != "vnni" && f != "bf16" || cpuNames[cpu].arm {
		return f
	}
	for _, level := range cpuNames[cpu].features {
		if level == "avx512f" {
			return "avx512" + f
		}
	}
	return "avx" + f
}

func knownFeature(f string) bool {
	if f == "vnni" || f == "bf16" {
		return true
	}
	for _, c := range cpuContractions {
		if c.feature == f {
			return true
		}
	}
	for _, level := range x86Levels {
		for _, need := range level.needs {
			if need == f {
				return true
			}
		}
	}
	return false
}

func parseGPU(name, rest string) (*Desc, error) {
	digits, special := strings.CutSuffix(strings.TrimPrefix(rest, "sm_"), "a")
	sm, err := strconv.Atoi(digits)
	if err != nil || sm < 10 || sm > 999 || !strings.HasPrefix(rest, "sm_") {
		return nil, fmt.Errorf("target: %q: want an architecture such as sm_80", name)
	}
	d, err := ForGPU(sm, special)
	if err != nil {
		return nil, err
	}
	d.Name = name // ptx:sm_90, or cuda:sm_90 where the source is CUDA C
	return d, nil
}
