package target

import (
	"slices"
	"strings"
)

// cpuLevel is a row of the table of instruction-set levels. A level is what
// plans depend on; the exact CPU only steers LLVM's instruction scheduling.
type cpuLevel struct {
	name        string
	needs       []string // LLVM feature names, all present
	vectorBytes int
	vectorRegs  int
	fma         bool
	cost        Cost // Workers is set from the number of cores
	laneCost    int  // Desc.LaneCost
}

// Costs of one core, in picoseconds.
//
// x86-64-v4 was measured on an AMD Zen 5 server at 4.1-4.3 GHz: 40 GB/s read by
// one thread (25 ps a byte); 276 GFLOP/s of f32 FMA (7 ps an operation);
// 84 GB/s of packed bytes out of L2 with arithmetic, 64 bytes a cycle without
// (4 ps a byte); exp as a polynomial of degree 6 and a scale, 16 operations;
// a barrier of two threads 60 ns. The others are the same core with fewer
// lanes: operations scale with the vector width, memory does not.
var (
	costV4   = Cost{ByteDRAM: 25, ByteCache: 4, Op: 7, Transcend: 112, Launch: 60_000}
	costV3   = Cost{ByteDRAM: 25, ByteCache: 6, Op: 14, Transcend: 224, Launch: 60_000}
	costV2   = Cost{ByteDRAM: 25, ByteCache: 8, Op: 56, Transcend: 900, Launch: 60_000} // no FMA: two operations
	costNeon = Cost{ByteDRAM: 40, ByteCache: 8, Op: 40, Transcend: 640, Launch: 100_000}
)

// What a lane of a vector costs that becomes an address, in instructions of general registers (Desc.LaneCost): two, as many as
// take it out. With 16 registers of 32 bytes more: vectors wait for lanes that wait for vectors, and few of them fit what the core holds
// back. One Zen 4 core, ns for 1,000 weights of a grid of 8 or 4 bytes an entry, of lanes that take five instructions in general
// registers, two and five: IQ1_S 98 and 70, IQ2_S 135 and 97, IQ3_S 163 and 135, though with up to half as many instructions more. With
// VNNI and 64 bytes it was not timed.
const (
	extract       = 2
	extractHidden = 6
)

// x86Levels from best to least.
var x86Levels = []cpuLevel{
	{"x86-64-v4", []string{"avx512f", "avx512bw", "avx512dq", "avx512vl"}, 64, 32, true, costV4, extract},
	{"x86-64-v3", []string{"avx2", "fma"}, 32, 16, true, costV3, extractHidden},
	{"x86-64-v2", []string{"sse4.2"}, 16, 16, false, costV2, extract},
	{"x86-64", nil, 16, 16, false, costV2, extract},
}

var armLevels = []cpuLevel{
	{"arm64", nil, 16, 32, true, costNeon, extract},
}

// generic has no SIMD that a plan could count on: four lanes, as every 64-bit
// machine's vector unit has at least.
var genericLevel = cpuLevel{"generic", nil, 16, 16, false, costV2, extract}

// cpuContractions are the dot-product instructions of CPUs by the feature that
// brings them. A is the unsigned side where signs differ (vpdpbusd, usdot). Of dots of bytes the first row that
// holds is taken.
var cpuContractions = []struct {
	feature string
	bytes   int // vector bytes of the level from which the row holds
	row     Contraction
}{
	{"avx512vnni", 64, Contraction{"vpdpbusd", "u8", "i8", "i32", 4, 1, 1, "llvm.x86.avx512.vpdpbusd.512"}},
	{"avx512vnni", 64, Contraction{"vpdpwssd", "i16", "i16", "i32", 2, 1, 1, "llvm.x86.avx512.vpdpwssd.512"}},
	{"avx512bf16", 64, Contraction{"vdpbf16ps", "bf16", "bf16", "f32", 2, 1, 1, "llvm.x86.avx512bf16.dpbf16ps.512"}},
	{"avxvnni", 32, Contraction{"vpdpbusd", "u8", "i8", "i32", 4, 1, 1, "llvm.x86.avx512.vpdpbusd.256"}},
	{"avxvnni", 32, Contraction{"vpdpwssd", "i16", "i16", "i32", 2, 1, 1, "llvm.x86.avx512.vpdpwssd.256"}},
	{"avx512bw", 64, Contraction{Pairs, "u8", "i8", "i32", 4, 1, 1, "llvm.x86.avx512.pmaddubs.w.512"}},
	{"avx2", 32, Contraction{Pairs, "u8", "i8", "i32", 4, 1, 1, "llvm.x86.avx2.pmadd.ub.sw"}},
	{"sse4.2", 16, Contraction{Pairs, "u8", "i8", "i32", 4, 1, 1, "llvm.x86.ssse3.pmadd.ub.sw.128"}},
	{"amx-int8", 64, Contraction{"tile", "u8", "u8", "i32", 64, 16, 16, "llvm.x86.tdpbuud"}},
	{"amx-int8", 64, Contraction{"tile", "u8", "i8", "i32", 64, 16, 16, "llvm.x86.tdpbusd"}},
	{"amx-int8", 64, Contraction{"tile", "i8", "u8", "i32", 64, 16, 16, "llvm.x86.tdpbsud"}},
	{"amx-int8", 64, Contraction{"tile", "i8", "i8", "i32", 64, 16, 16, "llvm.x86.tdpbssd"}},
	{"amx-bf16", 64, Contraction{"tile", "bf16", "bf16", "f32", 32, 16, 16, "llvm.x86.tdpbf16ps"}},
	{EmulatedTiles, 64, Contraction{"tile", "u8", "u8", "i32", 64, 16, 16, "emulated.tdpbuud"}},
	{EmulatedTiles, 64, Contraction{"tile", "u8", "i8", "i32", 64, 16, 16, "emulated.tdpbusd"}},
	{EmulatedTiles, 64, Contraction{"tile", "i8", "u8", "i32", 64, 16, 16, "emulated.tdpbsud"}},
	{EmulatedTiles, 64, Contraction{"tile", "i8", "i8", "i32", 64, 16, 16, "emulated.tdpbssd"}},
	{EmulatedTiles, 64, Contraction{"tile", "bf16", "bf16", "f32", 32, 16, 16, "emulated.tdpbf16ps"}},
	{"dotprod", 16, Contraction{"sdot", "i8", "i8", "i32", 4, 1, 1, "llvm.aarch64.neon.sdot.v4i32.v16i8"}},
	{"dotprod", 16, Contraction{"udot", "u8", "u8", "u32", 4, 1, 1, "llvm.aarch64.neon.udot.v4i32.v16i8"}},
	{"i8mm", 16, Contraction{"usdot", "u8", "i8", "i32", 4, 1, 1, "llvm.aarch64.neon.usdot.v4i32.v16i8"}},
	{"bf16", 16, Contraction{"bfdot", "bf16", "bf16", "f32", 2, 1, 1, "llvm.aarch64.neon.bfdot.v4f32.v8bf16"}},
}

// Pairs is the instruction by which CPUs without a dot of bytes add pairs of products, in 16 bits.
const Pairs = "vpmaddubsw"

// EmulatedTiles is a feature that no CPU has: the renderer writes functions in place of tile
// instructions. So what is made for them runs, slowly, on any CPU with the other features.
const EmulatedTiles = "tiles-emulated"

// prefetchBytes is how far ahead streamed weights are asked for. Zen 5, one
// thread, packed matvec, GB/s: none 28, 2 KB 35.7, 4 KB 42, 8 KB 41.4, 16 KB
// 37.4 with int8 activations; 20.9, 26, 34, 36.9, 36.9 with f32.
// Cores whose first cache waits for few lines at a time (16 on Intel's) read faster where the second one is asked first
// (Desc.PrefetchTwice). Model 207, C, one thread and two, share of a plain read: rows interleaved, 8 KiB ahead into the first
// cache Q8_0 exact 0.82 0.81, Q4_0 0.75 0.70; 16 KiB ahead into the second and 1 KiB into the first 0.91 0.87, 0.82 0.80.
// In whole steps Q8_0 exact gains 4 % (14 of 16 pairs), Q4_0 2 % (10 of 15), int8 nothing (12 of 27); on Zen 4 int8 falls from 0.82 to 0.66.
//
// What is read once does not gain by a place in the second cache, which throws out older lines into the third (cpuName.once). Zen 5,
// one thread, layers of LLaMA 1B, OLMoE and LLaMA 8B, tokens a second into all caches and into the first alone (ONCE): int8 Q4_K_M 287 and 321, Q6_K 222
// and 236, Q8_0 194 and 197, Q5_K_M 287 and 297, OLMoE 390 and 400; exact 254 and 264, 181 and 185, 198 and 198, 243 and 244, 321 and 329.
//
// Of interleaved rows some cores' own prefetchers fetch more than instructions can ask for (cpuName.follows): those lines wait in the
// few places that the first cache has for what it misses. Zen 4 (a plain read 31 GB/s; a matrix in the second cache 47 to 99), int8,
// one thread, GB/s at none and 8 KiB ahead: Q4_0 35.7 and 26.9, Q8_0 34.1 and 27.0, Q4_K 25.6 and 22.0.
const prefetchBytes = 8192

// Caches of a core that is only named: those that the levels' machines have at least. Who knows
// the machine has WithCaches.
const (
	assumedL1 = 32 << 10
	assumedL2 = 1 << 20
)

// ForCPU describes a CPU from LLVM's name and features ("avx2" or "+avx2"; "-avx2"
// takes one away) and its number of cores. Without features the name decides:
// see cpuNames. The name of the result is the level with the contractions it
// has: two CPUs of one level and equal caches get the same plans.
func ForCPU(name string, features []string, cores int) *Desc {
	set := make(map[string]bool)
	row, known := cpuNames[name]
	for _, f := range row.features {
		set[f] = true
	}
	for _, f := range features {
		set[strings.TrimLeft(f, "+-")] = !strings.HasPrefix(f, "-")
	}
	levels := x86Levels
	switch {
	case row.arm || set["neon"]:
		levels = armLevels
	case len(set) == 0 && (!known || name == "generic"):
		levels = []cpuLevel{genericLevel}
	}
	level := levels[len(levels)-1]
	for i := len(levels) - 1; i >= 0; i-- {
		if hasAll(set, levels[i].needs) {
			level = levels[i]
		}
	}
	d := level.describe(set, cores).WithCaches(row.l1, row.l2, 0)
	if row.follows {
		d.PrefetchRows = 0
	}
	d.PrefetchOnce = row.once
	return d
}

func (l *cpuLevel) describe(set map[string]bool, cores int) *Desc {
	d := &Desc{
		Name: "llvm:" + l.name, Kind: CPU, VectorBytes: l.vectorBytes, VectorRegs: l.vectorRegs, FMA: l.fma,
		WarpSize: 1, MaxThreads: 1, CacheL1Bytes: assumedL1, CacheL2Bytes: assumedL2,
		PrefetchBytes: prefetchBytes, PrefetchRows: prefetchBytes, LaneCost: l.laneCost, Cost: l.cost, Tuning: tuningCPU(),
	}
	d.Cost.Workers = max(cores, 1)
	seen := ""
	d.RecordDots = set["avx512vnni"] && l.vectorBytes == 64 || l.vectorBytes == 32 // both measured: recordsFor of package llm
	d.PrefetchTwice = set[twiceFeature] && l.vectorBytes == 64
	for _, c := range cpuContractions {
		if !set[c.feature] || l.vectorBytes < c.bytes || l.vectorBytes > c.bytes && c.bytes != 64 {
			continue
		}
		if c.row.IsByteDot() && d.ByteDots() {
			continue // there is a better one
		}
		d.Contractions = append(d.Contractions, c.row)
		if slices.Contains(l.needs, c.feature) {
			continue // the level's name tells
		}
		if short := strings.TrimPrefix(strings.TrimPrefix(c.feature, "avx512"), "avx"); seen != short {
			d.Name += "+" + short
			seen = short
		}
	}
	return d
}

// twiceFeature tells the cores that read what becomes floats faster when it is asked for twice: Intel's since Sapphire Rapids.
const twiceFeature = "avx512fp16"

// CanInterleave reports a target on which weights in records pay: the words of a record's rows
// are one register, or two.
func (d *Desc) CanInterleave() bool {
	return d.Kind == CPU && d.VectorBytes >= 32 && d.FMA
}

// WithCaches is d for a core whose caches hold so many bytes; a size of 0 or less is unknown.
func (d *Desc) WithCaches(l1, l2, l3 int) *Desc {
	out := *d
	if l1 > 0 {
		out.CacheL1Bytes = l1
	}
	if l2 > 0 {
		out.CacheL2Bytes = l2
	}
	if l3 > 0 {
		out.CacheL3Bytes = l3
	}
	return &out
}

// mostPanelBytes is half of the stack that a worker has at least, where panels lie.
const mostPanelBytes = 4 << 20

// PanelBytes is the size of decoded weights, at most, that a core reads again and again: what its second cache holds and half
// of its share of the third, through which activations pass, too. One Zen 5 core with 1 MiB and 16 MiB, 128 tokens in exact
// mode, GFLOP/s, panels within the second cache and such: K = 14,336 163 and 245, 28,672 37 and 195.
func (d *Desc) PanelBytes() int64 {
	return int64(max(d.CacheL2Bytes, min(d.CacheL2Bytes+d.CacheL3Bytes/2, mostPanelBytes)))
}

// WithRecords is d for packed weights of up to so many bits whose rows are interleaved where they suit.
func (d *Desc) WithRecords(bits int) *Desc {
	out := *d
	out.Records = bits
	return &out
}

func hasAll(set map[string]bool, needs []string) bool {
	return !slices.ContainsFunc(needs, func(f string) bool { return !set[f] })
}

// cpuName is a CPU or level that can be asked for by name alone.
type cpuName struct {
	arm      bool
	features []string
	l1, l2   int  // bytes of a core's caches, 0 where those of its level's machines are assumed
	once     bool // lines that are read once are asked for past the second cache: see prefetchBytes
	follows  bool // what reads one stream is faster where nothing is asked for: see prefetchBytes
}

var (
	featuresV2     = []string{"sse4.2"}
	featuresV3     = append([]string{"avx2", "fma", "f16c"}, featuresV2...)
	featuresV4     = append([]string{"avx512f", "avx512bw", "avx512dq", "avx512vl"}, featuresV3...)
	featuresVNNI   = append([]string{"avx512vnni"}, featuresV4...)
	featuresBF16   = append([]string{"avx512bf16"}, featuresVNNI...)
	featuresFP16   = append([]string{"avx512fp16"}, featuresBF16...)
	featuresTiles  = append([]string{"amx-tile", "amx-int8", "amx-bf16"}, featuresFP16...)
	featuresNeon   = []string{"neon"}
	featuresDot    = append([]string{"dotprod"}, featuresNeon...)
	featuresMatrix = append([]string{"i8mm", "bf16"}, featuresDot...)
)

// cpuNames are LLVM's names of CPUs and levels with the features that matter
// here.
var cpuNames = map[string]cpuName{
	"x86-64":         {},
	"x86-64-v2":      {features: featuresV2},
	"x86-64-v3":      {features: featuresV3},
	"x86-64-v4":      {features: featuresV4},
	"haswell":        {features: featuresV3},
	"skylake":        {features: featuresV3},
	"alderlake":      {features: append([]string{"avxvnni"}, featuresV3...)},
	"znver1":         {features: featuresV3},
	"znver2":         {features: featuresV3},
	"znver3":         {features: featuresV3},
	"znver4":         {features: featuresBF16, follows: true},
	"znver5":         {features: featuresBF16, once: true},
	"skylake-avx512": {features: featuresV4},
	"cascadelake":    {features: featuresVNNI},
	"icelake-server": {features: featuresVNNI},
	"sapphirerapids": {features: featuresTiles, l1: 48 << 10, l2: 2 << 20},
	"emeraldrapids":  {features: featuresTiles, l1: 48 << 10, l2: 2 << 20},
	"arm64":          {arm: true, features: featuresNeon},
	"cortex-a72":     {arm: true, features: featuresNeon},
	"cortex-a78ae":   {arm: true, features: featuresDot},
	"neoverse-n1":    {arm: true, features: featuresDot},
	"neoverse-v1":    {arm: true, features: featuresMatrix},
	"apple-m1":       {arm: true, features: featuresDot},
	"apple-m2":       {arm: true, features: featuresMatrix},
	"generic":        {},
}
