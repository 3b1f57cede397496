package hcq

import "fmt"

// Use is what memory is for: how the CPU sees it depends on that.
type Use int

// Uses of memory.
const (
	// UseData is for what programs work on, for code, words and signals: both sides
	// cache it coherently.
	UseData Use = iota
	// UseRing is for the ring and its pointers.
	UseRing
)

// Buffer is memory that the CPU and the GPU see.
type Buffer struct {
	Address uint64 // of the GPU
	Host    []byte // all of it
	Handle  uint32 // the board's
}

// Engine is what carries out the work of a channel.
type Engine int

// Engines that have a channel.
const (
	Compute Engine = iota
	Copies
	engineCount
)

func (e Engine) String() string { return [engineCount]string{"compute", "copy"}[e] }

// Channel is a queue of the GPU: a ring of entries, and where its pointers lie.
type Channel struct {
	Ring    []byte // 8 bytes an entry
	Control []byte // the block with the pointers, see USERD in the vendor's pages
	Entries int
}

// Info is what a board says of its GPU.
type Info struct {
	Chip         string
	SM           int // architecture: 87
	GPCs         int
	TPCsPerGPC   int
	SMsPerTPC    int
	WarpsPerSM   int
	ComputeClass uint32
	CopyClass    uint32
	// SharedWindow and LocalWindow are where nothing is mapped: addresses there mean
	// the memory of blocks and threads.
	SharedWindow, LocalWindow uint64
	MemoryBytes               int64
}

// Board is a GPU with its kernel driver.
type Board interface {
	Info() Info
	// Channel is the queue of an engine.
	Channel(Engine) Channel
	// Alloc returns zeroed memory.
	Alloc(bytes int64, use Use) (*Buffer, error)
	Free(*Buffer) error
	// Publish is a full barrier: what was stored before is seen by the GPU.
	Publish()
	// Ring tells the GPU that the ring of an engine has more.
	Ring(Engine)
	// Waited notes that a word of 64 bits was waited for, and has a value or a later one.
	Waited(cell []byte, value uint64)
	// Fault is what the kernel driver says went wrong with a channel; nil for nothing. What
	// ends one ends them all.
	Fault() error
	Close() error
}

// BoardFault is an error of the GPU that ended the channels.
type BoardFault struct {
	Code    uint32 // of the error notifier
	Meaning string // of the code
	WarpESR uint32 // what a multiprocessor says, 0 for nothing
	Warp    string // the meaning of that
	PC      uint64 // of the kernel's code, where a multiprocessor says so
}

func (f *BoardFault) Error() string {
	text := fmt.Sprintf("error notifier %d: %s", f.Code, f.Meaning)
	if f.WarpESR != 0 {
		text += fmt.Sprintf("; warp ESR %#x: %s, at %#x", f.WarpESR, f.Warp, f.PC)
	}
	return text
}
