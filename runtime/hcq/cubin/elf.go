package cubin

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// file is an ELF file of 64 bits, little-endian.
type file struct {
	bytes    []byte
	sections []section
	symbols  []symbol
}

// section is a row of the table of sections with its bytes (none of a NOBITS one).
type section struct {
	name       string
	kind       uint32
	flags      uint64
	address    uint64
	size       uint64
	link, info uint32
	align      uint64
	data       []byte
}

// symbol is a row of the table of symbols.
type symbol struct {
	name    string
	info    byte
	section int
	value   uint64
	size    uint64
}

// Kinds of sections, their flags, kinds of symbols, from the ELF specification.
const (
	kindBits   = 1 // PROGBITS
	kindSymbol = 2 // SYMTAB
	kindText   = 3 // STRTAB
	kindRela   = 4
	kindNoBits = 8
	kindRel    = 9

	flagAlloc = 1 << 1

	typeMask     = 0xf
	typeFunction = 2
	globalSymbol = 1 << 4 // a kernel is a global function
)

// What the header has to say.
const (
	headerBytes  = 64
	sectionBytes = 64
	symbolBytes  = 24
	machineCUDA  = 190
	undefined    = 0      // section of a symbol that is elsewhere
	reserved     = 0xff00 // the first number that is no section
)

var identity = []byte{0x7f, 'E', 'L', 'F', 2, 1}

// readFile reads the tables of a file. Every offset is checked.
func readFile(b []byte) (*file, error) {
	switch {
	case len(b) < headerBytes || !bytes.Equal(b[:len(identity)], identity):
		return nil, fmt.Errorf("%d bytes are no ELF file of 64 bits, little-endian", len(b))
	case binary.LittleEndian.Uint16(b[18:]) != machineCUDA:
		return nil, fmt.Errorf("machine %d, want %d", binary.LittleEndian.Uint16(b[18:]), machineCUDA)
	}
	f := &file{bytes: b}
	offset, each := binary.LittleEndian.Uint64(b[40:]), binary.LittleEndian.Uint16(b[58:])
	count, names := int(binary.LittleEndian.Uint16(b[60:])), int(binary.LittleEndian.Uint16(b[62:]))
	if each != sectionBytes || count == 0 || names >= count {
		return nil, fmt.Errorf("%d sections of %d bytes each with names in number %d", count, each, names)
	}
	table, err := f.part("table of sections", offset, uint64(count)*sectionBytes)
	if err != nil {
		return nil, err
	}
	at := make([]uint32, count) // of the names
	for i := range count {
		s, name, err := f.section(i, table[i*sectionBytes:])
		if err != nil {
			return nil, err
		}
		at[i] = name
		f.sections = append(f.sections, s)
	}
	for i := range f.sections {
		if f.sections[i].name, err = text(f.sections[names].data, at[i]); err != nil {
			return nil, fmt.Errorf("name of section %d: %w", i, err)
		}
	}
	return f, f.readSymbols()
}

func (f *file) section(i int, row []byte) (s section, name uint32, err error) {
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	s = section{kind: u32(row[4:]), flags: u64(row[8:]), address: u64(row[16:]), size: u64(row[32:]), link: u32(row[40:]), info: u32(row[44:]), align: u64(row[48:])}
	if s.kind != kindNoBits {
		s.data, err = f.part(fmt.Sprintf("section %d", i), u64(row[24:]), s.size)
	}
	return s, u32(row), err
}

// part is a run of bytes of the file.
func (f *file) part(what string, offset, size uint64) ([]byte, error) {
	if offset > uint64(len(f.bytes)) || size > uint64(len(f.bytes))-offset {
		return nil, fmt.Errorf("%s: %d bytes at %#x of a file of %d", what, size, offset, len(f.bytes))
	}
	return f.bytes[offset : offset+size : offset+size], nil
}

// text is a string of a table, up to its zero byte.
func text(table []byte, at uint32) (string, error) {
	if uint64(at) >= uint64(len(table)) {
		return "", fmt.Errorf("a string at %d of %d bytes", at, len(table))
	}
	end := bytes.IndexByte(table[at:], 0)
	if end < 0 {
		return "", fmt.Errorf("the string at %d does not end", at)
	}
	return string(table[at : int(at)+end]), nil
}

func (f *file) readSymbols() error {
	for i := range f.sections {
		s := &f.sections[i]
		if s.kind != kindSymbol {
			continue
		}
		if f.symbols != nil {
			return fmt.Errorf("section %d: a second table of symbols", i)
		}
		if int64(s.link) >= int64(len(f.sections)) || len(s.data)%symbolBytes != 0 {
			return fmt.Errorf("table of symbols: %d bytes, names in section %d of %d", len(s.data), s.link, len(f.sections))
		}
		names := f.sections[s.link].data
		for at := 0; at < len(s.data); at += symbolBytes {
			row := s.data[at:]
			name, err := text(names, binary.LittleEndian.Uint32(row))
			if err != nil {
				return fmt.Errorf("symbol %d: %w", at/symbolBytes, err)
			}
			f.symbols = append(f.symbols, symbol{
				name: name, info: row[4], section: int(binary.LittleEndian.Uint16(row[6:])),
				value: binary.LittleEndian.Uint64(row[8:]), size: binary.LittleEndian.Uint64(row[16:]),
			})
		}
	}
	return nil
}
