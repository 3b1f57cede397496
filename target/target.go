package target

import (
	"slices"
	"strings"
)

// Kind is the family of a target.
type Kind uint8

// The families.
const (
	CPU Kind = iota
	GPU
	Interpreter
)

// Desc describes one target.
type Desc struct {
	Name            string // as --target prints it, e.g. "llvm:x86-64-v4"
	Kind            Kind
	VectorBytes     int // widest SIMD register; 16 bytes per thread for a GPU load
	VectorRegs      int // architectural vector registers
	WarpSize        int // 1 on a CPU
	MaxThreads      int // per block; 1 on a CPU
	SharedBytes     int
	Carveouts       []int // of a GPU: KB of a multiprocessor's first cache that may be shared memory, the least first
	CacheL1Bytes    int
	CacheL2Bytes    int
	CacheL3Bytes    int  // of a CPU: a core's share; 0 is unknown
	PrefetchBytes   int  // distance ahead of streamed weights; 0 is none
	PrefetchRows    int  // the same of interleaved rows and of plain elements, which are one stream: 0 where the core follows it faster when nothing is asked for
	PrefetchOnce    bool // what is read once is asked for past the second cache: its lines would go through that one to the third
	PrefetchTwice   bool // interleaved rows that become floats are asked for twice: early by the second cache, late by the first
	FMA             bool // fused multiply-add in hardware, at the rate of a product
	SM              int  // of an NVIDIA GPU: architecture, major*10 + minor; 0 elsewhere
	Special         bool // of an NVIDIA GPU: the "a" form, sm_90a
	Cluster         int  // blocks of a cluster, at most, which run at once and reach each other's shared memory; 0: a GPU has no clusters
	ApproxMath      bool // EXP2, LOG2, SIN, RSQRT of f32 as the hardware's approximations, which no other device repeats bit for bit
	Planes          bool // packed weights are re-laid at load: packed.Planes instead of the file's order
	Records         int  // packed weights of up to so many bits are re-laid at load where they suit: packed.Records; 0: none
	RecordDots      bool // dots of bytes run faster from Records than in the file's order
	LaneCost        int  // of a CPU: instructions of general registers that a lane of a vector costs which becomes an address
	Contractions    []Contraction
	Cost            Cost
	Threads         Threads // of a GPU
	Tiles           Tiles   // of a GPU, of packed rows
	FloatTiles      Tiles   // of a GPU, of rows that are more than one term each
	PlainTiles      Tiles   // of a GPU, of rows of F16 and BF16
	ByteTiles       Tiles   // of a GPU, of sums of bytes without panels
	HalfTiles       Tiles   // of a GPU, of products of halves
	TermTiles       Tiles   // of a GPU, of packed weights with activations stored as two terms
	GroupTiles      Tiles   // of a GPU, of products by warpgroups
	FloatGroupTiles Tiles   // of a GPU, of rows that are more than one term each, by warpgroups
	HalfGroupTiles  Tiles   // of a GPU, of products of halves by warpgroups
	Tuning          Tuning
}

// Contraction is a dot-product or matrix instruction.
type Contraction struct {
	Name      string
	A, B, Acc string // dtypes; A is the unsigned side where signs differ
	K         int    // products summed per lane
	M, N      int    // 1 for a lane-wise dot
	Intrinsic string
}

// Matrix reports the matrix instruction of a shape and types.
func (d *Desc) Matrix(a, b string, m, n, k int) bool {
	return slices.ContainsFunc(d.Contractions, func(c Contraction) bool {
		return c.Name == "mma" && c.A == a && c.B == b && c.M == m && c.N == n && c.K == k
	})
}

// HasGroupMatrices reports a GPU whose warpgroups multiply matrices in shared memory (wgmma).
func (d *Desc) HasGroupMatrices() bool {
	return slices.ContainsFunc(d.Contractions, func(c Contraction) bool { return c.Name == "wgmma" })
}

// HasTiles reports a CPU with instructions that multiply tiles.
func (d *Desc) HasTiles() bool {
	return slices.ContainsFunc(d.Contractions, func(c Contraction) bool { return c.Name == "tile" })
}

// EmulatesTiles reports a CPU on which functions do what tile instructions would.
func (d *Desc) EmulatesTiles() bool {
	return slices.ContainsFunc(d.Contractions, func(c Contraction) bool { return c.Name == "tile" && strings.HasPrefix(c.Intrinsic, "emulated.") })
}

// TileDot is the instruction that multiplies tiles of two types; nil: the target has none.
func (d *Desc) TileDot(a, b string) *Contraction {
	i := slices.IndexFunc(d.Contractions, func(c Contraction) bool { return c.Name == "tile" && c.A == a && c.B == b })
	if i < 0 {
		return nil
	}
	return &d.Contractions[i]
}

// StartsEarly reports a GPU whose kernels may start before the kernel before has ended,
// and wait for its end themselves (programmatic dependent launch).
func (d *Desc) StartsEarly() bool { return d.SM >= 90 }

// Clusters is how many blocks may share work through shared memory, at most; 1: none do.
func (d *Desc) Clusters() int64 { return int64(max(d.Cluster, 1)) }

// ByteDots reports an instruction that sums products of four unsigned and signed bytes in
// each lane of a vector.
func (d *Desc) ByteDots() bool {
	return slices.ContainsFunc(d.Contractions, Contraction.IsByteDot)
}

// BytePairs reports that they are summed by pairs in 16 bits.
func (d *Desc) BytePairs() bool {
	return slices.ContainsFunc(d.Contractions, func(c Contraction) bool { return c.Name == Pairs })
}

// IsByteDot reports a row that sums products of four unsigned and signed bytes a lane.
func (c Contraction) IsByteDot() bool {
	return c.K == 4 && c.M == 1 && c.A == "u8" && c.B == "i8" && c.Acc == "i32"
}

// Cost holds the integer constants of the cost model: picoseconds of one core of a
// CPU, femtoseconds of the whole of a GPU; launches in picoseconds.
type Cost struct {
	ByteDRAM  int // per byte read from memory
	ByteCache int // per byte read from cache
	Op        int // per scalar operation, vectorised
	Transcend int // per exp2, log2, sin
	Launch    int // per launch edge (barrier on a CPU)
	Workers   int // parallel workers assumed
}
