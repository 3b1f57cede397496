package driver

import (
	"context"
	"time"
)

// Handles of the driver. They are opaque; zero is none.
type (
	Context   uintptr
	Module    uintptr
	Func      uintptr
	Stream    uintptr
	Event     uintptr
	Graph     uintptr
	GraphExec uintptr
	Node      uintptr
	Ptr       uint64 // an address in device memory
	Device    int32  // ordinal of a GPU
)

// Kernel is one launch: a function, its shape and its parameters, all of which
// are 8 bytes wide (addresses and I64 values).
type Kernel struct {
	Func   Func
	Grid   [3]uint32 // blocks by x, y, z
	Block  [3]uint32 // threads of a block by x, y, z
	Shared uint32    // bytes of dynamic shared memory
	Params []uint64
}

// Edge is the kind of a dependency between two nodes of a graph.
type Edge uint8

// The kinds of edge.
const (
	// FullEdge starts a node when the one before it has ended.
	FullEdge Edge = iota
	// ProgrammaticEdge starts a kernel when all blocks of the kernel before it
	// have allowed it (griddepcontrol.launch_dependents) or ended; the kernel
	// itself waits (griddepcontrol.wait) before it uses what that one wrote.
	ProgrammaticEdge
)

// Driver is what package cuda asks of a driver. Library is the real one. Host
// memory that a copy names must be HostAlloc's: asynchronous copies need pages
// that stay, and the collector does not see addresses held by the driver.
type Driver interface {
	// Version is the CUDA version of the driver: 13000 is 13.0.
	Version() int
	// Path is where the library was found.
	Path() string

	DeviceCount() (int, error)
	DeviceAt(index int) (Device, error)
	DeviceName(Device) (string, error)
	DeviceAttribute(Device, Attribute) (int, error)
	DeviceMemory(Device) (uint64, error)

	ContextCreate(Device) (Context, error)
	ContextDestroy(Context) error
	ContextSet(Context) error

	MemInfo() (free, total uint64, err error)
	MemAlloc(bytes uint64) (Ptr, error)
	MemFree(Ptr) error
	HostAlloc(bytes int) ([]byte, error)
	HostFree([]byte) error
	CopyToDevice(to Ptr, from []byte, s Stream) error
	CopyToHost(to []byte, from Ptr, s Stream) error
	Fill(to Ptr, value byte, bytes uint64, s Stream) error

	StreamCreate() (Stream, error)
	StreamSynchronize(Stream) error
	StreamDestroy(Stream) error

	EventCreate(timed bool) (Event, error)
	EventRecord(Event, Stream) error
	EventElapsed(from, to Event) (time.Duration, error)
	EventDestroy(Event) error

	// Link assembles PTX for the current context's GPU and returns the machine
	// code and what the assembler said, also when it failed.
	Link(name, ptx string) (cubin []byte, log string, err error)
	ModuleLoad(image []byte) (m Module, log string, err error)
	ModuleUnload(Module) error
	ModuleFunction(m Module, name string) (Func, error)
	FuncAttribute(Func, FuncAttribute) (int, error)
	FuncSetAttribute(Func, FuncAttribute, int) error

	Launch(k *Kernel, s Stream) error

	GraphCreate() (Graph, error)
	GraphDestroy(Graph) error
	GraphAddKernel(g Graph, after []Node, k *Kernel) (Node, error)
	GraphAddEmpty(g Graph, after []Node) (Node, error)
	GraphAddEventRecord(g Graph, after []Node, e Event) (Node, error)
	// GraphAddEdges makes to[i] depend on from[i].
	GraphAddEdges(g Graph, from, to []Node, kind Edge) error
	// Programmatic reports whether the driver knows ProgrammaticEdge.
	Programmatic() bool
	GraphInstantiate(Graph) (GraphExec, error)
	GraphUpload(GraphExec, Stream) error
	GraphLaunch(GraphExec, Stream) error
	// GraphSetKernel changes the parameters of a kernel node of an instance.
	GraphSetKernel(e GraphExec, n Node, k *Kernel) error
	GraphExecDestroy(GraphExec) error
}

// Checker is a Driver that finds mistakes which a GPU does not see: an emulator.
// Package cuda then lays memory out so that they show.
type Checker interface {
	Driver
	// Checks reports whether it does.
	Checks() bool
	// Poison queues making device memory undefined: reading it before something
	// writes it is an error from then on.
	Poison(p Ptr, bytes uint64, s Stream) error
	// StreamSynchronizeContext is StreamSynchronize that gives up when ctx is
	// cancelled: a step takes long.
	StreamSynchronizeContext(ctx context.Context, s Stream) error
}

// Attribute is a property of a device: CUdevice_attribute.
type Attribute int32

// The attributes in use.
const (
	MaxThreadsPerBlock Attribute = 1
	WarpSize           Attribute = 10
	ClockKHz           Attribute = 13
	Multiprocessors    Attribute = 16
	Integrated         Attribute = 18
	CacheL2Bytes       Attribute = 38
	ComputeMajor       Attribute = 75
	ComputeMinor       Attribute = 76
	SharedBytesOptIn   Attribute = 97
)

// FuncAttribute is a property of a function: CUfunction_attribute.
type FuncAttribute int32

// The function attributes in use, all in bytes but Registers.
const (
	FuncMaxThreads    FuncAttribute = 0 // threads of a block that its registers allow
	FuncSharedBytes   FuncAttribute = 1 // static shared memory
	FuncLocalBytes    FuncAttribute = 3 // stack and spilled registers of a thread
	FuncRegisters     FuncAttribute = 4
	FuncDynamicShared FuncAttribute = 8 // most dynamic shared memory; may be raised
	FuncCarveout      FuncAttribute = 9 // hundredths of a multiprocessor's most shared memory that are set aside; -1: the driver chooses
)
