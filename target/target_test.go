package target_test

import (
	"strings"
	"testing"

	"tgc/target"
)

func TestCPULevels(t *testing.T) {
	tests := []struct {
		name, features string
		want           string
		vectorBytes    int
		fma            bool
		contraction    string
	}{
		{"znver5", "", "llvm:x86-64-v4+vnni+bf16", 64, true, "vpdpbusd"},
		{"skylake-avx512", "", "llvm:x86-64-v4", 64, true, ""},
		{"haswell", "", "llvm:x86-64-v3", 32, true, ""},
		{"alderlake", "", "llvm:x86-64-v3+vnni", 32, true, "vpdpbusd"},
		{"x86-64-v2", "", "llvm:x86-64-v2", 16, false, ""},
		{"x86-64", "", "llvm:x86-64", 16, false, ""},
		{"unheard-of", "+sse4.2,+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni", "llvm:x86-64-v4+vnni", 64, true, "vpdpwssd"},
		{"znver5", "-avx512f", "llvm:x86-64-v3", 32, true, ""},
		{"cortex-a78ae", "", "llvm:arm64+dotprod", 16, true, "sdot"},
		{"unheard-of", "+neon", "llvm:arm64", 16, true, ""},
		{"unheard-of", "", "llvm:generic", 16, false, ""},
	}
	for _, tt := range tests {
		var features []string
		if tt.features != "" {
			features = strings.Split(tt.features, ",")
		}
		d := target.ForCPU(tt.name, features, 2)
		if d.Name != tt.want || d.VectorBytes != tt.vectorBytes || d.FMA != tt.fma || d.Cost.Workers != 2 {
			t.Errorf("%s %s: got %s, %d bytes, fma %v, want %s, %d, %v", tt.name, tt.features, d.Name, d.VectorBytes, d.FMA, tt.want, tt.vectorBytes, tt.fma)
		}
		found := tt.contraction == ""
		for _, c := range d.Contractions {
			found = found || c.Name == tt.contraction
		}
		if !found {
			t.Errorf("%s: no contraction %s in %v", tt.name, tt.contraction, d.Contractions)
		}
	}
}

// Sizes of caches that are known replace the assumed ones, in a copy.
func TestWithCaches(t *testing.T) {
	d := target.ForCPU("znver5", nil, 2)
	l1, l2 := d.CacheL1Bytes, d.CacheL2Bytes
	if got := d.WithCaches(48<<10, 0, 0); got.CacheL1Bytes != 48<<10 || got.CacheL2Bytes != l2 || d.CacheL1Bytes != l1 {
		t.Errorf("got %d and %d, of which the first is known; the original has %d", got.CacheL1Bytes, got.CacheL2Bytes, d.CacheL1Bytes)
	}
	if got := d.WithCaches(0, 2<<20, 0); got.CacheL1Bytes != l1 || got.CacheL2Bytes != 2<<20 {
		t.Errorf("got %d and %d, of which the second is known", got.CacheL1Bytes, got.CacheL2Bytes)
	}
	for _, c := range []struct{ l2, l3, want int }{{1 << 20, 0, 1 << 20}, {1 << 20, 2 << 20, 2 << 20}, {1 << 20, 32 << 20, 4 << 20}, {8 << 20, 16 << 20, 8 << 20}} {
		if got := d.WithCaches(0, c.l2, c.l3).PanelBytes(); got != int64(c.want) {
			t.Errorf("caches of %d and %d bytes: panels of %d bytes, want %d", c.l2, c.l3, got, c.want)
		}
	}
}

// A description's name parses back to the same description.
func TestNamesParse(t *testing.T) {
	names := []string{"interp", "llvm:x86-64-v4+vnni+bf16", "llvm:x86-64-v3", "llvm:x86-64-v3+vnni", "llvm:x86-64-v2", "llvm:arm64+dotprod",
		"llvm:generic", "ptx:sm_75", "ptx:sm_87", "ptx:sm_90", "ptx:sm_90a"}
	for _, name := range names {
		d, err := target.Parse(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if d.Name != name {
			t.Errorf("%s parses to %s", name, d.Name)
		}
	}
	for _, bad := range []string{"", "llvm:pentium", "llvm:x86-64-v4+magic", "ptx:sm_70", "ptx:90", "ptx:sm_", "interp:2", "metal"} {
		if _, err := target.Parse(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestGPURows(t *testing.T) {
	count := make(map[string]int)
	for _, name := range []string{"sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"} {
		d, err := target.Parse("ptx:" + name)
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind != target.GPU || d.WarpSize != 32 || d.SharedBytes < 48<<10 || d.Cost.Workers == 0 {
			t.Errorf("%s: %+v", name, d)
		}
		count[name] = len(d.Contractions)
	}
	if count["sm_80"] <= count["sm_75"] || count["sm_90a"] <= count["sm_90"] {
		t.Errorf("contractions by architecture: %v", count)
	}
}

func TestBareLLVM(t *testing.T) {
	d, err := target.Parse("llvm")
	if err != nil || d.Kind != target.CPU {
		t.Errorf("got %v, %v", d, err)
	}
}
