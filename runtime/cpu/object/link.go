package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"unsafe"

	"tgc/internal/pages"
)

// group is a run of pages with one protection.
type group int

const (
	groupText   group = iota // sections with code, then the jump stubs
	groupRodata              // constants, then the GOT
	groupData                // writable data and zeroed memory
	groupCount
)

// groupProt is what each group becomes after relocation.
var groupProt = [groupCount]pages.Protection{
	groupText:   pages.ReadExecute,
	groupRodata: pages.Read,
	groupData:   pages.ReadWrite,
}

// span is a part of the image: offset and size in bytes.
type span struct{ offset, size uint64 }

// image is an object laid out in memory.
type image struct {
	file    *elf.File
	machine elf.Machine
	// symbols is the symbol table, index 0 the null symbol, as relocations count.
	symbols []elf.Symbol
	mem     []byte
	base    uint64 // address of mem
	// groups lie in order, each starting on a page.
	groups [groupCount]span
	// sections tells where each loaded section lies, by section index.
	sections map[int]span
	// got and stubs hold the offset of a symbol's slot, by symbol index.
	got, stubs map[uint32]uint64
}

// link parses, lays out and relocates an object in memory from alloc, which
// the caller owns also when link fails.
func link(file []byte, machine elf.Machine, alloc func(size uint64) ([]byte, error)) (*image, error) {
	parsed, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	if parsed.Type != elf.ET_REL || parsed.Class != elf.ELFCLASS64 || parsed.Data != elf.ELFDATA2LSB {
		return nil, fmt.Errorf("%v %v %v, want a 64-bit little-endian relocatable object", parsed.Type, parsed.Class, parsed.Data)
	}
	if parsed.Machine != machine {
		return nil, fmt.Errorf("machine is %v, want %v", parsed.Machine, machine)
	}
	symbols, err := parsed.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	img := &image{
		file: parsed, machine: machine,
		symbols:  append([]elf.Symbol{{}}, symbols...),
		sections: map[int]span{}, got: map[uint32]uint64{}, stubs: map[uint32]uint64{},
	}
	relocs, err := img.readRelocs()
	if err != nil {
		return nil, err
	}
	size, err := img.layout(relocs)
	if err != nil {
		return nil, err
	}
	if img.mem, err = alloc(size); err != nil {
		return nil, err
	}
	img.base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(img.mem))))
	return img, img.fill(relocs)
}

// reloc is one relocation record with its rule.
type reloc struct {
	relocRule
	section int    // section it patches
	offset  uint64 // in that section
	symbol  uint32
	addend  int64
}

// readRelocs collects the relocations of all sections that will be loaded.
func (img *image) readRelocs() ([]reloc, error) {
	const recordSize = 24
	var relocs []reloc
	for _, s := range img.file.Sections {
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL {
			continue
		}
		if int(s.Info) >= len(img.file.Sections) {
			return nil, fmt.Errorf("section %s patches section %d of %d", s.Name, s.Info, len(img.file.Sections))
		}
		if !loaded(img.file.Sections[s.Info]) {
			continue
		}
		if s.Type == elf.SHT_REL {
			return nil, fmt.Errorf("section %s: relocations without addends are not supported", s.Name)
		}
		data, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("section %s: %w", s.Name, err)
		}
		for ; len(data) >= recordSize; data = data[recordSize:] {
			info := binary.LittleEndian.Uint64(data[8:])
			r := reloc{
				section: int(s.Info),
				offset:  binary.LittleEndian.Uint64(data),
				symbol:  uint32(info >> 32),
				addend:  int64(binary.LittleEndian.Uint64(data[16:])),
			}
			var known bool
			if r.relocRule, known = relocRules[img.machine][uint32(info)]; !known {
				return nil, fmt.Errorf("section %s: relocation type %d of %v is not supported", s.Name, uint32(info), img.machine)
			}
			if int64(r.symbol) >= int64(len(img.symbols)) {
				return nil, fmt.Errorf("section %s: relocation names symbol %d of %d", s.Name, r.symbol, len(img.symbols))
			}
			relocs = append(relocs, r)
		}
	}
	return relocs, nil
}

// loaded tells the sections that get memory. Unwind tables are not among
// them: nothing unwinds through a kernel.
func loaded(s *elf.Section) bool {
	return s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 && s.Name != ".eh_frame" &&
		(s.Type == elf.SHT_PROGBITS || s.Type == elf.SHT_NOBITS)
}

func groupOf(s *elf.Section) group {
	switch {
	case s.Flags&elf.SHF_EXECINSTR != 0:
		return groupText
	case s.Flags&elf.SHF_WRITE != 0:
		return groupData
	}
	return groupRodata
}

// layout places sections, stubs and GOT and returns the size of the image.
func (img *image) layout(relocs []reloc) (uint64, error) {
	page := uint64(os.Getpagesize())
	var end uint64
	for g := range groupCount {
		start := end
		for i, s := range img.file.Sections {
			if !loaded(s) || groupOf(s) != g {
				continue
			}
			if s.Flags&(elf.SHF_TLS|elf.SHF_COMPRESSED) != 0 {
				return 0, fmt.Errorf("section %s: flags %v are not supported", s.Name, s.Flags)
			}
			align := max(s.Addralign, 1)
			if bits.OnesCount64(align) != 1 || align > page {
				return 0, fmt.Errorf("section %s: alignment is %d, want a power of two up to %d", s.Name, align, page)
			}
			if s.Size > maxImage || end > maxImage {
				return 0, fmt.Errorf("section %s: %d bytes, want an object of at most %d", s.Name, s.Size, maxImage)
			}
			end = alignUp(end, align)
			img.sections[i] = span{end, s.Size}
			end += s.Size
		}
		end = img.layoutSlots(g, relocs, end)
		img.groups[g] = span{start, alignUp(end-start, page)}
		end = alignUp(end, page)
	}
	if end == 0 || end > maxImage {
		return 0, fmt.Errorf("%d bytes to load, want 1 to %d", end, maxImage)
	}
	return end, nil
}

// layoutSlots places the loader's own entries that belong to a group.
func (img *image) layoutSlots(g group, relocs []reloc, end uint64) uint64 {
	place := func(slots map[uint32]uint64, symbol uint32, size uint64) {
		if _, have := slots[symbol]; !have {
			end = alignUp(end, size)
			slots[symbol] = end
			end += size
		}
	}
	for _, r := range relocs {
		switch {
		case g == groupText && r.call && img.symbols[r.symbol].Section == elf.SHN_UNDEF:
			place(img.stubs, r.symbol, stubSize)
		case g == groupRodata && r.usesGot():
			place(img.got, r.symbol, 8)
		}
	}
	return end
}

// fill copies section contents, writes stubs and GOT, and relocates.
func (img *image) fill(relocs []reloc) error {
	for i, at := range img.sections {
		s := img.file.Sections[i]
		if s.Type == elf.SHT_NOBITS {
			continue // the mapping is zero
		}
		data, err := s.Data()
		if err != nil {
			return fmt.Errorf("section %s: %w", s.Name, err)
		}
		if uint64(len(data)) != at.size {
			return fmt.Errorf("section %s: %d bytes, want %d", s.Name, len(data), at.size)
		}
		copy(img.mem[at.offset:at.offset+at.size], data)
	}
	for symbol, offset := range img.got {
		addr, err := img.address(symbol)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(img.mem[offset:], addr)
	}
	for symbol, offset := range img.stubs {
		addr, err := img.address(symbol)
		if err != nil {
			return err
		}
		putStub(img.machine, img.mem[offset:offset+stubSize], addr)
	}
	for _, r := range relocs {
		if err := img.relocate(r); err != nil {
			return fmt.Errorf("section %s+%#x: %w", img.file.Sections[r.section].Name, r.offset, err)
		}
	}
	return nil
}

// relocate applies one relocation.
func (img *image) relocate(r reloc) error {
	at := img.sections[r.section]
	if width := r.field.width(); at.size < width || r.offset > at.size-width {
		return fmt.Errorf("relocation outside the section's %d bytes", at.size)
	}
	target, err := img.target(r)
	if err != nil {
		return err
	}
	place := at.offset + r.offset
	value := r.compute(target, r.addend, img.base+place)
	if err := r.field.store(img.mem[place:], value); err != nil {
		return fmt.Errorf("symbol %q: %w", img.symbols[r.symbol].Name, err)
	}
	return nil
}

// target is S of a relocation, or G for one through the GOT. A call of an
// imported function goes to its stub: the C library may be out of range.
func (img *image) target(r reloc) (uint64, error) {
	if r.usesGot() {
		return img.base + img.got[r.symbol], nil
	}
	if offset, ok := img.stubs[r.symbol]; ok && r.call {
		return img.base + offset, nil
	}
	return img.address(r.symbol)
}

// address is the absolute address of a symbol.
func (img *image) address(symbol uint32) (uint64, error) {
	s := img.symbols[symbol]
	switch {
	case s.Section == elf.SHN_ABS:
		return s.Value, nil
	case s.Section == elf.SHN_UNDEF && symbol == 0:
		return 0, errors.New("relocation without a symbol")
	case s.Section == elf.SHN_UNDEF:
		return resolveExtern(s.Name)
	case elf.ST_TYPE(s.Info) == elf.STT_TLS, elf.ST_TYPE(s.Info) == elf.STT_GNU_IFUNC:
		return 0, fmt.Errorf("symbol %q: type %v is not supported", s.Name, elf.ST_TYPE(s.Info))
	}
	at, ok := img.sections[int(s.Section)]
	if !ok {
		return 0, fmt.Errorf("symbol %q is in section %v, which has no memory", s.Name, s.Section)
	}
	if s.Value > at.size {
		return 0, fmt.Errorf("symbol %q at %#x: its section has %d bytes", s.Name, s.Value, at.size)
	}
	return img.base + at.offset + s.Value, nil
}

// functions lists the global functions of the image.
func (img *image) functions() []Function {
	var fns []Function
	for _, s := range img.symbols {
		at, ok := img.sections[int(s.Section)]
		if !ok || elf.ST_TYPE(s.Info) != elf.STT_FUNC || elf.ST_BIND(s.Info) == elf.STB_LOCAL {
			continue
		}
		if groupOf(img.file.Sections[s.Section]) != groupText || s.Value >= at.size {
			continue
		}
		fns = append(fns, Function{
			Name: s.Name,
			Addr: uintptr(img.base + at.offset + s.Value),
			Size: uintptr(min(s.Size, at.size-s.Value)),
		})
	}
	return fns
}

// protect gives each group its protection.
func (img *image) protect() error {
	for g, at := range img.groups {
		if at.size == 0 {
			continue
		}
		part := img.mem[at.offset : at.offset+at.size]
		if err := pages.Protect(part, groupProt[g]); err != nil {
			return fmt.Errorf("protect: %w", err)
		}
		if group(g) == groupText {
			if err := flushInstructions(part); err != nil {
				return fmt.Errorf("protect: %w", err)
			}
		}
	}
	return nil
}

func alignUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
