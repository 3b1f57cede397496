package tegra

import (
	"encoding/binary"
	"fmt"

	"tgc/runtime/hcq/port"
)

// Nodes.
const (
	nvmapNode   = "/dev/nvmap"
	controlNode = "/dev/nvgpu/igpu0/ctrl"
)

// request is a number with its name, for errors: direction, size of the argument, letter
// of the driver and number.
type request struct {
	number uint32
	name   string
}

// Requests, as the kernel of L4T r36 has them.
var (
	nvmapCreate64       = request{0xc0084e01, "NVMAP_IOC_CREATE_64"}
	nvmapAlloc          = request{0x40144e03, "NVMAP_IOC_ALLOC"}
	nvmapFree           = request{0x00004e04, "NVMAP_IOC_FREE"}
	nvmapGetFD          = request{0xc0084e0f, "NVMAP_IOC_GET_FD"}
	getCharacteristics  = request{0xc0104705, "GPU_GET_CHARACTERISTICS"}
	allocAS             = request{0xc0404708, "GPU_ALLOC_AS"}
	openTSG             = request{0xc0184709, "GPU_OPEN_TSG"}
	openChannel         = request{0xc004470b, "GPU_OPEN_CHANNEL"}
	numVSMs             = request{0xc0084712, "GPU_NUM_VSMS"}
	asBindChannel       = request{0xc0044101, "AS_BIND_CHANNEL"}
	asAllocSpace        = request{0xc0204106, "AS_ALLOC_SPACE"}
	asMapBuffer         = request{0xc0284107, "AS_MAP_BUFFER_EX"}
	asUnmapBuffer       = request{0xc0084105, "AS_UNMAP_BUFFER"}
	tsgCreateSubcontext = request{0xc0105412, "TSG_CREATE_SUBCONTEXT"}
	tsgBindChannel      = request{0xc018540b, "TSG_BIND_CHANNEL_EX"}
	tsgReadSMStates     = request{0xc0185411, "TSG_READ_ALL_SM_ERROR_STATES"}
	channelWatchdog     = request{0x40084877, "CHANNEL_WDT"}
	channelSetupBind    = request{0xc0684880, "CHANNEL_SETUP_BIND"}
	channelAllocObject  = request{0xc010486c, "CHANNEL_ALLOC_OBJ_CTX"}
	channelSetNotifier  = request{0xc018486f, "CHANNEL_SET_ERROR_NOTIFIER"}
)

// Structures, as a 64-bit little-endian ABI lays them out: all padding is written down.
type (
	createArgs struct{ Size uint64 } // in; out: the handle in the lower half
	allocArgs  struct {
		Handle, HeapMask, Flags, Align uint32
		Node                           int32
	}
	getFDArgs struct {
		FD     int32 // out
		Handle uint32
	}
	characteristicsArgs struct{ BufferSize, BufferAddress uint64 }
	allocASArgs         struct {
		BigPageSize                 uint32
		FD                          int32 // out
		Flags, Reserved             uint32
		RangeStart, RangeEnd, Split uint64
		Padding                     [6]uint32
	}
	openTSGArgs struct {
		FD                               uint32 // out
		Flags                            uint32
		SourceDeviceInstance, ShareToken uint64
	}
	openChannelArgs struct{ Channel int32 } // in: the runlist; out: the descriptor
	numVSMsArgs     struct{ Count, Reserved uint32 }
	bindArgs        struct{ ChannelFD uint32 }
	allocSpaceArgs  struct {
		Pages           uint64
		PageSize, Flags uint32
		Offset          uint64
		Padding         [2]uint32
	}
	mapArgs struct {
		Flags                              uint32
		CompressedKind, Kind               int16
		FD, PageSize                       uint32
		BufferOffset, MappingSize, Address uint64 // the last one out
	}
	unmapArgs      struct{ Address uint64 }
	subcontextArgs struct {
		Type     uint32
		ASFD     int32
		VEID     uint32 // out
		Reserved uint32
	}
	bindExArgs struct {
		ChannelFD int32
		VEID      uint32
		Reserved  [16]uint8
	}
	watchdogArgs  struct{ Status, Timeout uint32 }
	setupBindArgs struct {
		Entries, InflightJobs, Flags           uint32
		UserdFD, RingFD                        int32
		Token                                  uint32 // out
		UserdOffset, RingOffset                uint64
		RingAddress, UserdAddress, MMIOAddress uint64 // out
		Reserved                               [9]uint32
		Padding                                uint32
	}
	allocObjectArgs struct {
		Class, Flags uint32
		Object       uint64 // out
	}
	notifierArgs struct {
		Offset, Size uint64
		FD, Padding  uint32
	}
	smStatesArgs struct {
		Count, Reserved           uint32
		BufferAddress, BufferSize uint64
	}
)

// Values in these structures.
const (
	heapIOVMM         = 1 << 30
	memoryCacheable   = 2 // inner: the CPU reads back what it wrote, coherent with the GPU
	memoryCombined    = 1 // write-combined
	memoryZeroed      = 1 << 5
	memoryTag         = 0x0900 << 16 // of the allocation: without one the kernel warns
	spaceUnified      = 1 << 1
	spaceFixed        = 1 << 0
	kindNone          = -1
	subcontextAsync   = 1
	watchdogDisable   = 1
	primaryRunlist    = -1
	bindDeterministic = 1 << 1
	bindUserMode      = 1 << 3
)

// Places in the characteristics.
const (
	characteristicsBytes = 328
	atGPCs               = 0x0c
	atTPCs               = 0x28
	atFlags              = 0x40
	atComputeClass       = 0x50
	atCopyClass          = 0x5c
	atSMVersion          = 0x64
	atWarps              = 0x6c
	atChip               = 0xa0
	chipBytes            = 8
	flagUserModeSubmit   = 1 << 30
)

// call makes a request with a structure, which holds the result afterwards.
func call[T any](p port.Port, fd int, r request, args *T) error {
	return callPointing(p, fd, r, args, nil, -1)
}

// callPointing is call where the structure points to memory.
func callPointing[T any](p port.Port, fd int, r request, args *T, pointee []byte, pointer int) error {
	b, err := binary.Append(nil, binary.LittleEndian, args)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	if err := p.Ioctl(fd, r.number, b, pointee, pointer); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	if _, err := binary.Decode(b, binary.LittleEndian, args); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}
