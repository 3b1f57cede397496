package hcq

import (
	"context"

	"tgc/runtime/hcq/word"
)

// stackReserved is what code takes away from the top of a thread's stack: it begins at
// 16 MiB less this (stackTop).
const stackReserved = 0x240

// localBytes is the local memory of a thread with a stack of a number of bytes; a
// kernel without one needs none.
func localBytes(stack int) int {
	if stack == 0 {
		return 0
	}
	return roundUp(stack+stackReserved, 32)
}

// localSizes are the sizes of local memory: of a warp, of all warps of a TPC, and of
// the whole GPU.
func (i Info) localSizes(thread int) (perWarp, perTPC, all int) {
	perWarp = roundUp(thread*32, 0x200)
	perTPC = roundUp(perWarp*i.WarpsPerSM*i.SMsPerTPC, 0x8000)
	return perWarp, perTPC, roundUp(perTPC*i.TPCsPerGPC*i.GPCs, 0x20000)
}

// mostSMs goes into the word that says how many multiprocessors share local memory.
const mostSMs = 0x100

// growLocal makes local memory large enough for a stack of a number of bytes. What there
// was before is given back when nothing uses it any more. The lock is held.
func (d *Device) growLocal(stack int) error {
	perWarp, perTPC, all := d.board.Info().localSizes(localBytes(stack))
	if stack == 0 || perWarp <= d.perWarp {
		return nil
	}
	if err := d.idle(context.Background()); err != nil {
		return err
	}
	m, err := d.board.Alloc(int64(all), UseData)
	if err != nil {
		return err
	}
	old := d.local
	d.local = m // also where the words are refused: the GPU may have it
	b := &word.Builder{}
	b.Send(word.OnCompute, word.LocalMemory, word.High(m.Address), word.Low(m.Address))
	b.Send(word.OnCompute, word.LocalMemoryNonThrottled, word.High(uint64(perTPC)), word.Low(uint64(perTPC)),
		b.Value(word.OnCompute, word.LocalMemoryNonThrottledC, word.Part{Field: word.MaxSMCount, Value: mostSMs}))
	if err := d.sendOnce(b); err != nil {
		return d.noteFault(err, nil)
	}
	d.perWarp = perWarp
	if old == nil {
		return nil
	}
	return d.board.Free(old)
}
