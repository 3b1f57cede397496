package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// relocValue says what a relocation computes, in the notation of the ABI
// documents: S symbol, A addend, P place, G the symbol's GOT slot.
type relocValue int

const (
	valueAbs     relocValue = iota // S + A
	valueRel                       // S + A - P
	valuePage                      // Page(S + A) - Page(P), in 4 KiB pages
	valueLow12                     // (S + A) mod 4096
	valueGotRel                    // G + A - P
	valueGotPage                   // Page(G + A) - Page(P)
	valueGotLow                    // (G + A) mod 4096
)

// relocField says how the value is stored at the place.
type relocField int

const (
	fieldWord64  relocField = iota
	fieldWord32             // must fit in 32 bits unsigned
	fieldWord32S            // must fit in 32 bits signed
	fieldBranch             // aarch64 B/BL: 26 bits of a multiple of 4
	fieldCond               // aarch64 B.cond: 19 bits of a multiple of 4
	fieldAdr                // aarch64 ADR: 21 bits, split
	fieldAdrp               // aarch64 ADRP: 21 bits of pages, split
	fieldImm0               // aarch64 12-bit immediate, bytes
	fieldImm1               // the same in units of 2, 4, 8 and 16 bytes
	fieldImm2
	fieldImm3
	fieldImm4
)

type relocRule struct {
	value relocValue
	field relocField
	// call: the target is a function, so an imported one gets a jump stub.
	call bool
}

// relocRules holds what LLVM emits for position independent code in the small
// code model, per machine.
var relocRules = map[elf.Machine]map[uint32]relocRule{
	elf.EM_X86_64: {
		uint32(elf.R_X86_64_64):            {value: valueAbs, field: fieldWord64},
		uint32(elf.R_X86_64_32):            {value: valueAbs, field: fieldWord32},
		uint32(elf.R_X86_64_32S):           {value: valueAbs, field: fieldWord32S},
		uint32(elf.R_X86_64_PC64):          {value: valueRel, field: fieldWord64},
		uint32(elf.R_X86_64_PC32):          {value: valueRel, field: fieldWord32S, call: true},
		uint32(elf.R_X86_64_PLT32):         {value: valueRel, field: fieldWord32S, call: true},
		uint32(elf.R_X86_64_GOTPCREL):      {value: valueGotRel, field: fieldWord32S},
		uint32(elf.R_X86_64_GOTPCRELX):     {value: valueGotRel, field: fieldWord32S},
		uint32(elf.R_X86_64_REX_GOTPCRELX): {value: valueGotRel, field: fieldWord32S},
	},
	elf.EM_AARCH64: {
		uint32(elf.R_AARCH64_ABS64):               {value: valueAbs, field: fieldWord64},
		uint32(elf.R_AARCH64_PREL64):              {value: valueRel, field: fieldWord64},
		uint32(elf.R_AARCH64_PREL32):              {value: valueRel, field: fieldWord32S},
		uint32(elf.R_AARCH64_JUMP26):              {value: valueRel, field: fieldBranch, call: true},
		uint32(elf.R_AARCH64_CALL26):              {value: valueRel, field: fieldBranch, call: true},
		uint32(elf.R_AARCH64_CONDBR19):            {value: valueRel, field: fieldCond},
		uint32(elf.R_AARCH64_ADR_PREL_LO21):       {value: valueRel, field: fieldAdr},
		uint32(elf.R_AARCH64_ADR_PREL_PG_HI21):    {value: valuePage, field: fieldAdrp},
		uint32(elf.R_AARCH64_ADD_ABS_LO12_NC):     {value: valueLow12, field: fieldImm0},
		uint32(elf.R_AARCH64_LDST8_ABS_LO12_NC):   {value: valueLow12, field: fieldImm0},
		uint32(elf.R_AARCH64_LDST16_ABS_LO12_NC):  {value: valueLow12, field: fieldImm1},
		uint32(elf.R_AARCH64_LDST32_ABS_LO12_NC):  {value: valueLow12, field: fieldImm2},
		uint32(elf.R_AARCH64_LDST64_ABS_LO12_NC):  {value: valueLow12, field: fieldImm3},
		uint32(elf.R_AARCH64_LDST128_ABS_LO12_NC): {value: valueLow12, field: fieldImm4},
		uint32(elf.R_AARCH64_ADR_GOT_PAGE):        {value: valueGotPage, field: fieldAdrp},
		uint32(elf.R_AARCH64_LD64_GOT_LO12_NC):    {value: valueGotLow, field: fieldImm3},
	},
}

// usesGot reports whether the rule needs a GOT slot for its symbol.
func (r relocRule) usesGot() bool { return r.value >= valueGotRel }

// compute is the relocation's value; target is S or G.
func (r relocRule) compute(target uint64, addend int64, place uint64) int64 {
	const page = 4096
	sum := target + uint64(addend)
	switch r.value {
	case valueAbs:
		return int64(sum)
	case valueRel, valueGotRel:
		return int64(sum - place)
	case valuePage, valueGotPage:
		return int64(sum&^(page-1)-place&^(page-1)) / page
	default: // valueLow12, valueGotLow
		return int64(sum & (page - 1))
	}
}

// width is the size of the patched field in bytes.
func (f relocField) width() uint64 {
	if f == fieldWord64 {
		return 8
	}
	return 4
}

// store patches the field at p.
func (f relocField) store(p []byte, value int64) error {
	switch {
	case f == fieldWord64:
		binary.LittleEndian.PutUint64(p, uint64(value))
		return nil
	case f == fieldWord32:
		if value != int64(uint32(value)) {
			return fmt.Errorf("value %#x does not fit in 32 bits", uint64(value))
		}
		binary.LittleEndian.PutUint32(p, uint32(value))
		return nil
	case f == fieldWord32S:
		if value != int64(int32(value)) {
			return fmt.Errorf("value %#x does not fit in 32 signed bits", uint64(value))
		}
		binary.LittleEndian.PutUint32(p, uint32(value))
		return nil
	}
	insn, err := f.patchAarch64(binary.LittleEndian.Uint32(p), value)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(p, insn)
	return nil
}

// patchAarch64 puts value into the immediate of an A64 instruction.
func (f relocField) patchAarch64(insn uint32, value int64) (uint32, error) {
	bits := func(width, shift uint) (uint32, error) {
		if value&(1<<shift-1) != 0 {
			return 0, fmt.Errorf("value %#x is not a multiple of %d", uint64(value), 1<<shift)
		}
		v := value >> shift
		if limit := int64(1) << (width - 1); v < -limit || v >= limit {
			return 0, fmt.Errorf("value %#x does not fit in %d signed bits", uint64(value), width+shift)
		}
		return uint32(v) & (1<<width - 1), nil
	}
	switch f {
	case fieldBranch:
		v, err := bits(26, 2)
		return insn&^(1<<26-1) | v, err
	case fieldCond:
		v, err := bits(19, 2)
		return insn&^((1<<19-1)<<5) | v<<5, err
	case fieldAdr, fieldAdrp:
		v, err := bits(21, 0)
		return insn&^(3<<29|(1<<19-1)<<5) | v&3<<29 | v>>2<<5, err
	default:
		shift := uint(f - fieldImm0)
		if value&(1<<shift-1) != 0 {
			return 0, fmt.Errorf("address %#x is not aligned to %d bytes", uint64(value), 1<<shift)
		}
		return insn&^((1<<12-1)<<10) | uint32(value>>shift)<<10, nil
	}
}

// stubSize is the size of a jump stub: code, then the absolute target.
const stubSize = 16

// putStub writes a jump to target at p.
func putStub(machine elf.Machine, p []byte, target uint64) {
	if machine == elf.EM_AARCH64 {
		binary.LittleEndian.PutUint32(p, 0x58000050)     // ldr x16, .+8
		binary.LittleEndian.PutUint32(p[4:], 0xd61f0200) // br x16
	} else {
		copy(p, []byte{0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc}) // jmp *2(%rip)
	}
	binary.LittleEndian.PutUint64(p[8:], target)
}
