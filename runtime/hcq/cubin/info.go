package cubin

import (
	"encoding/binary"
	"fmt"
)

// attribute is a record of a .nv.info section: the table attributes names them.
type attribute struct {
	kind  byte
	half  uint16 // of a short one
	value []byte // of a long one
}

// How a record ends: with nothing, a byte, a half word, or a length and as many bytes.
const (
	formatNone  = 1
	formatByte  = 2
	formatHalf  = 3
	formatBytes = 4
)

// Attributes that are read.
const (
	attributeMaxThreads  = 0x05
	attributeParamBank   = 0x0a
	attributeRequired    = 0x10
	attributeMinStack    = 0x12
	attributeParam       = 0x17
	attributeParamBytes  = 0x19
	attributeRegisters   = 0x2f
	attributeNumBarriers = 0x4c
)

// attributes are all that ptxas was seen to write for kernels of ours; what is not read
// says nothing that a launch needs.
var attributes = map[byte]string{
	attributeMaxThreads: "MAX_THREADS", attributeParamBank: "PARAM_CBANK", attributeRequired: "REQNTID", 0x11: "FRAME_SIZE",
	attributeMinStack: "MIN_STACK_SIZE", attributeParam: "KPARAM_INFO", attributeParamBytes: "CBANK_PARAM_SIZE", 0x1b: "MAXREG_COUNT",
	0x1c: "EXIT_INSTR_OFFSETS", 0x1e: "CRS_STACK_SIZE", 0x23: "MAX_STACK_SIZE", 0x28: "COOP_GROUP_INSTR_OFFSETS", 0x29: "COOP_GROUP_MASK_REGIDS",
	attributeRegisters: "REGCOUNT", 0x35: "SW_WAR", 0x36: "SW_WAR_2", 0x37: "CUDA_API_VERSION", attributeNumBarriers: "NUM_BARRIERS",
}

// readAttributes calls use for every record of a section.
func readAttributes(s *section, use func(attribute) error) error {
	for at := 0; at < len(s.data); {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("%s: record at %#x: %s", s.name, at, fmt.Sprintf(format, args...))
		}
		if len(s.data)-at < 4 {
			return fail("%d bytes are left", len(s.data)-at)
		}
		format, a := s.data[at], attribute{kind: s.data[at+1], half: binary.LittleEndian.Uint16(s.data[at+2:])}
		size := 4
		switch format {
		case formatNone, formatByte, formatHalf:
		case formatBytes:
			size += int(a.half)
			if size > len(s.data)-at {
				return fail("%d bytes, %d are left", a.half, len(s.data)-at-4)
			}
			a.value = s.data[at+4 : at+size]
		default:
			return fail("format %d of attribute %#x", format, a.kind)
		}
		if err := use(a); err != nil {
			return fail("%v", err)
		}
		at += size
	}
	return nil
}

// words are the words of a record, which has to have a number of them.
func (a attribute) words(n int) ([]uint32, error) {
	if len(a.value) != 4*n {
		return nil, fmt.Errorf("%s: %d bytes, want %d", attributes[a.kind], len(a.value), 4*n)
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(a.value[4*i:])
	}
	return out, nil
}

// readShared reads what .nv.info says of every function by its symbol.
func (c *Cubin) readShared(s *section) error {
	return readAttributes(s, func(a attribute) error {
		c.note(a)
		if a.kind != attributeRegisters && a.kind != attributeMinStack {
			return nil
		}
		w, err := a.words(2)
		if err != nil {
			return err
		}
		for _, k := range c.Kernels {
			switch {
			case k.symbol != int(w[0]):
			case a.kind == attributeRegisters:
				k.Registers = int(w[1])
			default:
				k.StackBytes = int(w[1])
			}
		}
		return nil
	})
}

// readOwn reads what .nv.info.KERNEL says of a kernel.
func (c *Cubin) readOwn(k *Kernel, s *section) error {
	return readAttributes(s, func(a attribute) error {
		c.note(a)
		switch a.kind {
		case attributeMaxThreads, attributeRequired:
			w, err := a.words(3)
			if err != nil {
				return err
			}
			k.MaxThreads = [3]int{int(w[0]), int(w[1]), int(w[2])}
		case attributeParamBank:
			w, err := a.words(2)
			if err != nil {
				return err
			}
			k.ParamBase, k.ParamBytes = int(w[1]&0xffff), int(w[1]>>16)
		case attributeParam:
			w, err := a.words(3)
			if err != nil {
				return err
			}
			k.Params = append(k.Params, Param{Ordinal: int(w[1] & 0xffff), Offset: int(w[1] >> 16), Bytes: int(w[2] >> 18)})
		case attributeNumBarriers:
			k.Barriers = max(k.Barriers, int(a.half))
		}
		return nil
	})
}

// note keeps the number of an attribute that is not known.
func (c *Cubin) note(a attribute) {
	if attributes[a.kind] == "" {
		c.UnknownAttributes[a.kind]++
	}
}
