package word

import (
	"fmt"
	"strings"
	"sync"
)

// Method is a register of a class, or an array of them, to which words are sent.
type Method struct {
	Name   Name
	Offset int // bytes
	Step   int // bytes from one element to the next
	Count  int
	Value  Layout // the fields of its word
	array  bool
}

// Class is what stands behind a subchannel.
type Class struct {
	Name    string
	Methods []Method
	byName  map[Name]int
	byPlace map[int]place
}

// place is an element of a method.
type place struct{ method, element int }

// Classes of an Ampere GPU: the channel itself, compute, copy.
var (
	Host    = sync.OnceValue(func() *Class { return classFrom("C76F", "c76f") })
	Compute = sync.OnceValue(func() *Class { return classFrom("C7C0", "c7c0") })
	Copy    = sync.OnceValue(func() *Class { return classFrom("C7B5", "c7b5") })
)

// Subchannel says to whom a method goes. Methods below HostMethods are the channel's
// on any subchannel.
type Subchannel uint32

// Subchannels as every open runtime uses them.
const (
	OnHost    Subchannel = 0
	OnCompute Subchannel = 1
	OnCopy    Subchannel = 4
)

// HostMethods is the end of the channel's own methods, in bytes.
const HostMethods = 0x100

// Class is what stands behind a subchannel; nil for none.
func (s Subchannel) Class() *Class {
	switch s {
	case OnHost:
		return Host()
	case OnCompute:
		return Compute()
	case OnCopy:
		return Copy()
	}
	return nil
}

// method finds a method of what stands behind a subchannel by name. SET_OBJECT is the
// channel's, on each.
func (s Subchannel) method(name Name) (*Method, error) {
	class := s.Class()
	if class == nil {
		return nil, fmt.Errorf("method %s: no class on subchannel %d", name, s)
	}
	m, ok := class.Method(name)
	if !ok && name == SetObject {
		m, ok = Host().Method(name)
	}
	if !ok {
		return nil, fmt.Errorf("class %s: %w: method %s", class.Name, ErrField, name)
	}
	return m, nil
}

// Methods that somebody sends.
const (
	SetObject                Name = "SET_OBJECT"
	SemAddrLo                Name = "SEM_ADDR_LO"
	SemExecute               Name = "SEM_EXECUTE"
	WFI                      Name = "WFI"
	WaitForIdle              Name = "WAIT_FOR_IDLE"
	InvalidateShaderCaches   Name = "INVALIDATE_SHADER_CACHES"
	InvalidateSkedCaches     Name = "INVALIDATE_SKED_CACHES"
	InvalidateNoWFI          Name = "INVALIDATE_SHADER_CACHES_NO_WFI"
	SharedMemoryWindow       Name = "SET_SHADER_SHARED_MEMORY_WINDOW_A"
	LocalMemoryWindow        Name = "SET_SHADER_LOCAL_MEMORY_WINDOW_A"
	LocalMemory              Name = "SET_SHADER_LOCAL_MEMORY_A"
	LocalMemoryNonThrottled  Name = "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A"
	LocalMemoryNonThrottledC Name = "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C"
	SendPCAS                 Name = "SEND_PCAS_A"
	SendSignalingPCAS2       Name = "SEND_SIGNALING_PCAS2_B"
	ReportSemaphore          Name = "SET_REPORT_SEMAPHORE_A"
	OffsetInUpper            Name = "OFFSET_IN_UPPER"
	LineLengthIn             Name = "LINE_LENGTH_IN"
	LaunchDMA                Name = "LAUNCH_DMA"
	SetSemaphore             Name = "SET_SEMAPHORE_A"
)

// Fields of words that are sent.
const (
	Operation        Name = "OPERATION"
	ReleaseWFI       Name = "RELEASE_WFI"
	PayloadSize      Name = "PAYLOAD_SIZE"
	ReleaseTimestamp Name = "RELEASE_TIMESTAMP"
	PCASAction       Name = "PCAS_ACTION"
	Instruction      Name = "INSTRUCTION"
	Data             Name = "DATA"
	Constant         Name = "CONSTANT"
	ClassID          Name = "CLASS_ID" // of the compute class
	NVClass          Name = "NVCLASS"  // the same as the channel's own classes name it
	MaxSMCount       Name = "MAX_SM_COUNT"
	DataTransferType Name = "DATA_TRANSFER_TYPE"
	FlushEnable      Name = "FLUSH_ENABLE"
	SrcMemoryLayout  Name = "SRC_MEMORY_LAYOUT"
	DstMemoryLayout  Name = "DST_MEMORY_LAYOUT"
)

// Values of OPERATION, PCAS_ACTION, DATA_TRANSFER_TYPE and of the layouts of memory.
const (
	OperationRelease     = 1
	OperationAcquireGEQ  = 3 // circular: the difference is what counts
	ActionPrefetchLaunch = 9 // PREFETCH_SCHEDULE
	ActionCopyLaunch     = 3 // INVALIDATE_COPY_SCHEDULE
	TransferInOrder      = 2 // NON_PIPELINED: after the transfer before
	LayoutPitch          = 1 // bytes one after the other
)

func classFrom(name, file string) *Class {
	c := &Class{Name: name, byName: make(map[Name]int), byPlace: make(map[int]place)}
	readTable(file, func(indented bool, at string, name Name) {
		if indented {
			c.Methods[len(c.Methods)-1].Value.add(fieldFrom(at, name))
			return
		}
		m := Method{Name: name, Count: 1, Value: Layout{Name: string(name), Words: 1, byName: make(map[Name]int)}}
		first, repeat, array := strings.Cut(at, "+")
		if array {
			step, count, _ := strings.Cut(repeat, "*")
			m.Step, m.Count, m.array = number(step, 16), number(count, 10), true
		}
		m.Offset = number(first, 16)
		c.byName[name] = len(c.Methods)
		for i := range m.Count {
			c.byPlace[m.Offset+i*m.Step] = place{len(c.Methods), i}
		}
		c.Methods = append(c.Methods, m)
	})
	return c
}

// Method finds a method by name.
func (c *Class) Method(name Name) (*Method, bool) {
	i, ok := c.byName[name]
	if !ok {
		return nil, false
	}
	return &c.Methods[i], true
}

// At finds the method at an offset in bytes.
func (c *Class) At(offset int) (m *Method, element int, ok bool) {
	p, ok := c.byPlace[offset]
	if !ok {
		return nil, 0, false
	}
	return &c.Methods[p.method], p.element, true
}

func (m *Method) elementName(element int) string {
	if !m.array {
		return string(m.Name)
	}
	return fmt.Sprintf("%s(%d)", m.Name, element)
}
