package word

import (
	"errors"
	"fmt"
)

// Bank is a constant bank that a kernel reads.
type Bank struct {
	Number  int
	Address uint64 // a multiple of 64
	Bytes   int
}

// Grid is a launch of a kernel, as a QMD V03_00 says it.
type Grid struct {
	Program      uint64 // address of the code, a multiple of 128
	ProgramBytes int
	Blocks       [3]uint32
	Threads      [3]uint32
	Registers    int // of a thread
	Barriers     int
	SharedBytes  int // of a block, with what the hardware keeps for itself
	// MinConfig, TargetConfig and MaxConfig are shared memories of a multiprocessor
	// (SharedConfig): the least that will do, what is wanted, the most there is.
	MinConfig, TargetConfig, MaxConfig int
	LocalBytes                         int // of a thread
	SassVersion                        int // 0x87 of sm_87
	Banks                              []Bank
	// Next is the address of the descriptor that is launched when this grid has ended and
	// what it wrote is seen; 0 for none.
	Next uint64
}

const (
	qmdMajorVersion = 3
	qmdGroup        = 0x3f
	prefetchUnit    = 256 // bytes
	prefetchMost    = 0x1ff
	maxBankBytes    = 64 << 10
	bankUnit        = 16 // bytes
	qmdAlign        = 256
	// dependentSchedule is the action of a dependent that starts.
	dependentSchedule = 1
)

// QMD is the descriptor of a launch, 64 words.
func (g *Grid) QMD() ([]uint32, error) {
	l := QMD3()
	words := make([]uint32, l.Words)
	var errs []error
	set := func(name Name, v uint64) { errs = append(errs, l.Set(words, name, 0, v)) }
	set(QMDMajorVersion, qmdMajorVersion)
	set(QMDGroupID, qmdGroup)
	for _, name := range []Name{
		SMGlobalCachingEnable, InvalidateTextureHeader, InvalidateTextureSampler, InvalidateTextureData, InvalidateShaderData,
		InvalidateShaderConstant, CWDMembarType, APIVisibleCallLimit, SamplerIndex,
	} {
		set(name, 1)
	}
	for axis, name := range []Name{CTARasterWidth, CTARasterHeight, CTARasterDepth} {
		set(name, uint64(g.Blocks[axis]))
	}
	for axis, name := range []Name{CTAThreadDimension0, CTAThreadDimension1, CTAThreadDimension2} {
		set(name, uint64(g.Threads[axis]))
	}
	set(RegisterCountV, uint64(g.Registers))
	set(BarrierCount, uint64(g.Barriers))
	set(SharedMemorySize, uint64(g.SharedBytes))
	set(MinSMConfigSharedMemSize, uint64(g.MinConfig))
	set(TargetSMConfigSharedMemSize, uint64(g.TargetConfig))
	set(MaxSMConfigSharedMemSize, uint64(g.MaxConfig))
	set(ShaderLocalMemoryHighSize, uint64(g.LocalBytes))
	set(SassVersion, uint64(g.SassVersion))
	set(ProgramAddressLower, uint64(Low(g.Program)))
	set(ProgramAddressUpper, uint64(High(g.Program)))
	set(ProgramPrefetchAddrLower, uint64(uint32(g.Program/prefetchUnit)))
	set(ProgramPrefetchAddrUpper, g.Program/prefetchUnit>>32)
	set(ProgramPrefetchSize, uint64(min(g.ProgramBytes/prefetchUnit, prefetchMost)))
	if g.Next != 0 {
		set(DependentQMD0Pointer, g.Next/qmdAlign)
		set(DependentQMD0Enable, 1)
		set(DependentQMD0Action, dependentSchedule)
		set(DependentQMD0Prefetch, 1)
	}
	for _, b := range g.Banks {
		errs = append(errs, setBank(l, words, b))
	}
	if err := errors.Join(append(errs, g.check())...); err != nil {
		return nil, err
	}
	return words, nil
}

func setBank(l *Layout, words []uint32, b Bank) error {
	if b.Address%64 != 0 || b.Bytes < 1 || b.Bytes > maxBankBytes {
		return fmt.Errorf("constant bank %d: %d bytes at %#x, want up to %d at a multiple of 64", b.Number, b.Bytes, b.Address, maxBankBytes)
	}
	return errors.Join(
		l.Set(words, ConstantBufferValid, b.Number, 1),
		l.Set(words, ConstantBufferInvalidate, b.Number, 1),
		l.Set(words, ConstantBufferAddrLower, b.Number, uint64(Low(b.Address))),
		l.Set(words, ConstantBufferAddrUpper, b.Number, uint64(High(b.Address))),
		l.Set(words, ConstantBufferSizeShifted4, b.Number, uint64((b.Bytes+bankUnit-1)/bankUnit)),
	)
}

// Limits of a launch.
const (
	mostThreads  = 1024
	mostThreadsZ = 64
	fileOf       = 65536 // registers of a multiprocessor
	warpSize     = 32
)

// check reports what the scheduler would refuse, and what would hang.
func (g *Grid) check() error {
	threads := uint64(g.Threads[0]) * uint64(g.Threads[1]) * uint64(g.Threads[2])
	switch {
	case g.Program%128 != 0 || g.Program>>40 != 0:
		return fmt.Errorf("program at %#x, want a multiple of 128 below 1<<40", g.Program)
	case g.Next%qmdAlign != 0:
		return fmt.Errorf("the next descriptor is at %#x, want a multiple of %d", g.Next, qmdAlign)
	case threads < 1 || threads > mostThreads || g.Threads[2] > mostThreadsZ:
		return fmt.Errorf("%v threads a block, want 1 to %d, at most %d in z", g.Threads, mostThreads, mostThreadsZ)
	case g.Registers < 1:
		return fmt.Errorf("%d registers a thread", g.Registers)
	case int(threads) > MostThreads(g.Registers):
		return fmt.Errorf("%d threads a block of %d registers each, want at most %d", threads, g.Registers, MostThreads(g.Registers))
	case SharedConfig(g.SharedBytes) > g.MinConfig || g.MinConfig > g.TargetConfig || g.TargetConfig > g.MaxConfig:
		return fmt.Errorf("%d bytes of shared memory with configurations %d, %d, %d", g.SharedBytes, g.MinConfig, g.TargetConfig, g.MaxConfig)
	}
	return nil
}

// MostThreads is the number of threads of a block that the registers allow.
func MostThreads(registers int) int {
	ofWarp := (max(registers, 1)*warpSize + 255) / 256 * 256
	return fileOf / ofWarp / 4 * 4 * warpSize
}

// sharedKiB are the shared memories that a multiprocessor of sm_87 can be given.
var sharedKiB = [...]int{8, 16, 32, 64, 100, 132, 164}

// MaxSharedConfig is the largest of them.
const MaxSharedConfig = 164/4 + 1

// SharedConfig is the smallest configuration with a number of bytes; past all of them,
// a larger one than there is.
func SharedConfig(bytes int) int {
	for _, k := range sharedKiB {
		if bytes <= k<<10 {
			return k/4 + 1
		}
	}
	return MaxSharedConfig + 1
}

// SharedBytes is what a block of a number of bytes takes: the hardware keeps 1 KiB.
func SharedBytes(bytes int) int { return (bytes + 0x400 + 127) / 128 * 128 }
