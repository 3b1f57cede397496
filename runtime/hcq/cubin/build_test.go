package cubin

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// written is a file of machine code as the tests write it: ELF by hand, so that what
// another ptxas writes is tested too.
type written struct {
	sections []section
	symbols  []symbol
}

// add adds a section and returns its number; 0 is the empty one, 1 to 3 are names and
// symbols.
func (w *written) add(s section) int {
	if s.kind != kindNoBits {
		s.size = uint64(len(s.data))
	}
	w.sections = append(w.sections, s)
	return len(w.sections) + 3
}

// stringTable is a table of strings.
type stringTable struct{ bytes.Buffer }

func (s *stringTable) add(v string) uint32 {
	at := s.Len()
	s.WriteString(v)
	s.WriteByte(0)
	return uint32(at)
}

func (w *written) bytes() []byte {
	le := binary.LittleEndian
	names := &stringTable{}
	names.add("")
	var table []byte
	for _, s := range w.symbols {
		row := le.AppendUint32(nil, names.add(s.name))
		row = append(row, s.info, 0x10)
		row = le.AppendUint16(row, uint16(s.section))
		row = le.AppendUint64(row, s.value)
		table = append(table, le.AppendUint64(row, s.size)...)
	}
	all := append([]section{{}, {name: ".shstrtab", kind: kindText}, {name: ".strtab", kind: kindText, data: names.Bytes()},
		{name: ".symtab", kind: kindSymbol, link: 2, data: table}}, w.sections...)
	sectionNames := &stringTable{}
	at := make([]uint32, len(all))
	for i := range all {
		at[i] = sectionNames.add(all[i].name)
	}
	all[1].data = sectionNames.Bytes()
	out := make([]byte, headerBytes)
	copy(out, append(identity, 1, 0x33, 7))
	le.PutUint16(out[16:], 2)
	le.PutUint16(out[18:], machineCUDA)
	var rows []byte
	for i, s := range all {
		size := s.size
		if s.kind != kindNoBits {
			size = uint64(len(s.data))
		}
		row := le.AppendUint32(le.AppendUint32(nil, at[i]), s.kind)
		for _, v := range []uint64{s.flags, s.address, uint64(len(out)), size} {
			row = le.AppendUint64(row, v)
		}
		row = le.AppendUint32(le.AppendUint32(row, s.link), s.info)
		rows = append(rows, le.AppendUint64(le.AppendUint64(row, s.align), 0)...)
		out = append(out, s.data...)
	}
	le.PutUint64(out[40:], uint64(len(out)))
	le.PutUint16(out[58:], sectionBytes)
	le.PutUint16(out[60:], uint16(len(all)))
	le.PutUint16(out[62:], 1)
	return append(out, rows...)
}

// record is a long record of .nv.info.
func record(kind byte, words ...uint32) []byte {
	out := binary.LittleEndian.AppendUint16([]byte{formatBytes, kind}, uint16(4*len(words)))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// relocationRow is a row of a table of relocations.
func relocationRow(at uint64, kind uint32, symbol int) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at), uint64(symbol)<<32|uint64(kind))
}

// Numbers in the file of sample.
const (
	sampleText  = 4
	sampleTable = 5
	sampleBank4 = 6
)

// sample is a kernel k in the manner of ptxas 12.4: the address of a table lies in bank
// 4; and, as 11.8 has it, in two instructions.
func sample() *written {
	code := make([]byte, 256)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range code {
		code[i] = byte(random.Uint32())
	}
	for _, at := range []int{0x14, 0x24} {
		clear(code[at : at+4])
	}
	const registers, barriers = 10, 2
	w := &written{symbols: []symbol{{}, {name: "table", info: 1, section: sampleTable, value: 64, size: 16}, {name: "k", info: 0x12, section: sampleText, size: 256}}}
	w.add(section{name: ".text.k", kind: kindBits, flags: flagAlloc | 4 | barriers<<barrierShift, info: registers<<registerShift | 2, align: 128, data: code})
	w.add(section{name: ".nv.global.init", kind: kindBits, flags: flagAlloc | 1, align: 64, data: bytes.Repeat([]byte{7}, 80)})
	w.add(section{name: ".nv.constant4", kind: kindBits, flags: flagAlloc, align: 8, data: make([]byte, 16)})
	w.add(section{name: ".nv.constant2.k", kind: kindBits, flags: flagAlloc, align: 4, data: bytes.Repeat([]byte{9}, 112)})
	w.add(section{name: ".nv.constant0.k", kind: kindBits, flags: flagAlloc, align: 4, data: make([]byte, 0x170)})
	w.add(section{name: ".nv.shared.k", kind: kindNoBits, flags: flagAlloc | 1, align: 16, size: 96})
	w.add(section{name: ".nv.info", kind: 0x70000000, data: append(append(append(
		record(attributeRegisters, 2, registers), record(attributeMinStack, 7, 999)...), record(attributeMinStack, 2, 24)...), record(attributeMinStack, 7, 5)...)})
	w.add(section{name: ".nv.info.k", kind: 0x70000000, data: append(append(append(append(
		record(attributeParamBank, 3, 0x160|16<<16), record(attributeParam, 0, 1|8<<16, 8<<18|0x1f000)...), record(attributeParam, 1, 0, 8<<18|0x1f000)...),
		record(attributeMaxThreads, 64, 2, 1)...), formatHalf, attributeParamBytes, 16, 0)})
	w.add(section{name: ".rel.nv.constant4", kind: kindRel, link: 3, info: sampleBank4, data: relocationRow(8, relocate64, 1)})
	w.add(section{name: ".rel.text.k", kind: kindRel, link: 3, info: sampleText, data: append(relocationRow(0x10, relocateLow, 1), relocationRow(0x20, relocateHigh, 1)...)})
	w.add(section{name: ".debug_frame", kind: kindBits, data: make([]byte, 32)})
	w.add(section{name: ".rel.debug_frame", kind: kindRel, link: 3, info: 14, data: relocationRow(8, 2, 2)})
	return w
}
