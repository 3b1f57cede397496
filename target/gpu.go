package target

import "fmt"

// gpuRow is an NVIDIA architecture: limits of one block and of the device.
// Limits are CUDA's "compute capabilities" table; bandwidths name their board.
type gpuRow struct {
	sm        int // major*10 + minor
	shared    int // bytes a block may use, after opting in
	l1, l2    int
	byteDRAM  int   // femtoseconds per byte
	units     int   // streaming multiprocessors
	op        int   // femtoseconds per f32 operation of the whole device
	carveouts []int // KB of a multiprocessor's first cache that may be shared memory
}

// What CUDA's guide lists as "shared memory capacity" of compute capabilities 7.5, 8.0 and 8.7, 8.6 and 8.9, and from 9.0 on.
var (
	carveoutsTuring = []int{32, 64}
	carveoutsAmpere = []int{8, 16, 32, 64, 100, 132, 164}
	carveoutsSmall  = carveoutsAmpere[:5]
	carveoutsHopper = []int{8, 16, 32, 64, 100, 132, 164, 196, 228}
)

var gpuRows = []gpuRow{
	{75, 64 << 10, 96 << 10, 4 << 20, 3125, 40, 123, carveoutsTuring},     // T4: 320 GB/s, 8.1 TFLOP/s
	{80, 163 << 10, 192 << 10, 40 << 20, 643, 108, 51, carveoutsAmpere},   // A100: 1,555 GB/s, 19.5
	{86, 99 << 10, 128 << 10, 6 << 20, 1068, 82, 28, carveoutsSmall},      // RTX 3090: 936 GB/s, 35.6
	{87, 163 << 10, 192 << 10, 4 << 20, 9800, 16, 188, carveoutsAmpere},   // Orin AGX: 102 GB/s reached, 5.3
	{89, 99 << 10, 128 << 10, 72 << 20, 992, 128, 12, carveoutsSmall},     // RTX 4090: 1,008 GB/s, 82.6
	{90, 227 << 10, 256 << 10, 50 << 20, 222, 132, 15, carveoutsHopper},   // H200: 4.51 TB/s measured, 66.9
	{100, 227 << 10, 256 << 10, 126 << 20, 125, 148, 12, carveoutsHopper}, // B200: 8 TB/s, 80
}

// gpuContraction is a row that holds from one architecture on; exact rows hold
// on that architecture's "a" form only.
type gpuContraction struct {
	from  int
	exact bool
	row   Contraction
}

// The shapes are PTX's: m16n8k16 is {M: 16, N: 8, K: 16}. A dp4a is a lane-wise
// dot of four bytes.
var gpuContractions = []gpuContraction{
	{61, false, Contraction{"dp4a", "u8", "i8", "i32", 4, 1, 1, "dp4a.u32.s32"}},
	{61, false, Contraction{"dp4a", "i8", "i8", "i32", 4, 1, 1, "dp4a.s32.s32"}},
	{75, false, Contraction{"mma", "f16", "f16", "f32", 8, 16, 8, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"}},
	{75, false, Contraction{"mma", "i8", "i8", "i32", 16, 8, 8, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"}},
	{80, false, Contraction{"mma", "f16", "f16", "f32", 16, 16, 8, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"}},
	{80, false, Contraction{"mma", "bf16", "bf16", "f32", 16, 16, 8, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"}},
	{80, false, Contraction{"mma", "tf32", "tf32", "f32", 8, 16, 8, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"}},
	{80, false, Contraction{"mma", "u8", "i8", "i32", 16, 16, 8, "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32"}},
	{80, false, Contraction{"mma", "i8", "i8", "i32", 16, 16, 8, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32"}},
	{80, false, Contraction{"mma", "i8", "u8", "i32", 16, 16, 8, "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32"}},
	{80, false, Contraction{"mma", "u8", "u8", "i32", 16, 16, 8, "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32"}},
	{80, false, Contraction{"mma", "u8", "i8", "i32", 32, 16, 8, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"}},
	{80, false, Contraction{"mma", "i8", "i8", "i32", 32, 16, 8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"}},
	{80, false, Contraction{"mma", "i8", "u8", "i32", 32, 16, 8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"}},
	{80, false, Contraction{"mma", "u8", "u8", "i32", 32, 16, 8, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"}},
	{89, false, Contraction{"mma", "f8e4m3", "f8e4m3", "f32", 32, 16, 8, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"}},
	{90, false, Contraction{"mma", "f64", "f64", "f64", 16, 16, 8, "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"}},
	{90, true, Contraction{"wgmma", "f16", "f16", "f32", 16, 64, 256, "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"}},
	{90, true, Contraction{"wgmma", "bf16", "bf16", "f32", 16, 64, 256, "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"}},
	{90, true, Contraction{"wgmma", "i8", "i8", "i32", 32, 64, 256, "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8"}},
}

// WithPlanes is d for packed weights whose fields lie in planes: rows start at
// multiples of 16 bytes, so that threads read whole words.
func (d *Desc) WithPlanes() *Desc {
	out := *d
	out.Planes = true
	return &out
}

// WithoutLayout is d for packed weights as files have them: what a device is, whatever runs on it.
func (d *Desc) WithoutLayout() *Desc {
	out := *d
	out.Planes, out.Records = false, 0
	return &out
}

// portableCluster is how many blocks a cluster has at most on every GPU that has clusters (CUDA's
// "portable cluster size").
const portableCluster = 8

// halfRows of a GPU: batches of 16 in int8 gained 4 to 30 % or lost up to 2 on an H100, of 8 LLaMA 1B gained 6 to 9, LLaMA 8B
// lost 15 (docs/bench/h100-halves.txt).
const halfRows = 16

// exactRows of a GPU whose warpgroups multiply scaled halves. H200, us of prompts in i16, of digits and exact, 256 tokens: Q4_K_M 835 and 794, TQ1_0 1,275
// and 812, Q8_0 658 and 753; 512 tokens: 1,353 and 1,055, 2,161 and 975, 1,083 and 980; of 128 half of the types are slower (docs/bench/h200-i16.txt).
const exactRows = 256

// ForGPU describes an NVIDIA architecture from 75 up, 90 say; special is the
// "a" form, whose instructions no later architecture has.
func ForGPU(sm int, special bool) (*Desc, error) {
	var row *gpuRow
	for i := range gpuRows {
		if gpuRows[i].sm <= sm {
			row = &gpuRows[i]
		}
	}
	if row == nil {
		return nil, fmt.Errorf("target: sm_%d: want sm_%d or later", sm, gpuRows[0].sm)
	}
	d := &Desc{
		Name: fmt.Sprintf("ptx:sm_%d", sm), Kind: GPU, SM: sm, Special: special,
		VectorBytes: 16, VectorRegs: 255, WarpSize: 32, MaxThreads: 1024, FMA: true,
		SharedBytes: row.shared, Carveouts: row.carveouts, CacheL1Bytes: row.l1, CacheL2Bytes: row.l2,
		// Edge between kernels of a CUDA graph with early launch: 81 kernels
		// took 22 us more than one that reads as much (H200).
		Cost:            Cost{ByteDRAM: row.byteDRAM, ByteCache: row.byteDRAM / 3, Op: row.op, Transcend: 8 * row.op, Launch: 270_000, Workers: row.units},
		Threads:         threadsNVIDIA(),
		Tiles:           tilesNVIDIA(),
		FloatTiles:      floatTilesNVIDIA(),
		PlainTiles:      plainTilesNVIDIA(),
		ByteTiles:       byteTilesNVIDIA(),
		HalfTiles:       halfTilesNVIDIA(),
		TermTiles:       termTilesNVIDIA(),
		GroupTiles:      groupTilesNVIDIA(),
		FloatGroupTiles: floatGroupTilesNVIDIA(),
		HalfGroupTiles:  halfGroupTilesNVIDIA(),
		Tuning:          tuningGPU(),
	}
	if sm >= 80 { // with matrix instructions of bf16
		d.Tuning.HalfRows = halfRows
	}
	if sm >= 90 {
		d.Cluster = portableCluster
		d.Tuning.ShortCaches = []int{256, 512, 1024}
	}
	if special {
		d.Name += "a"
	}
	for _, c := range gpuContractions {
		if sm >= c.from && (!c.exact || special && sm/10 == c.from/10) {
			d.Contractions = append(d.Contractions, c.row)
		}
	}
	if d.HasGroupMatrices() {
		d.Tuning.ExactRows = exactRows
	}
	return d, nil
}
