package cubin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Cubin is a file of machine code.
type Cubin struct {
	Kernels []*Kernel
	// UnknownAttributes counts the attributes that nothing is known of, by number.
	UnknownAttributes map[byte]int

	file        *file
	places      map[int]int // where a section lies in the image, by number
	size        int
	relocations []relocation
}

// Kernel is an entry, and what a launch of it needs. Sizes are in bytes.
type Kernel struct {
	Name        string
	Code        Part
	Registers   int // of a thread
	Barriers    int
	StackBytes  int // of a thread
	SharedBytes int // of a block, static
	MaxThreads  [3]int
	ParamBase   int // of the parameters in bank 0
	ParamBytes  int
	Params      []Param // by ordinal
	Bank0       []byte  // what bank 0 begins as
	Banks       []Bank  // others, within the image

	symbol, section int
}

// Param is a parameter of a kernel: its offset counts from ParamBase.
type Param struct{ Ordinal, Offset, Bytes int }

// Part is a run of bytes of the image.
type Part struct{ Offset, Bytes int }

// Bank is a constant bank whose contents are part of the image.
type Bank struct {
	Number int
	Part
}

// relocation is an address that has to be filled in.
type relocation struct {
	kind   uint32
	at     int // in the image
	symbol int
	addend uint64
}

// Kinds of relocations.
const (
	relocate64   = 2    // 8 bytes
	relocateLow  = 0x38 // the lower half, in the word at 4 of an instruction
	relocateHigh = 0x39
	relocateCall = 0x3a // bits 80:34 of an instruction: an address without its lowest two bits
)

// callBits are those of an address in the 8 bytes at 4 of a call.
const callBits = (1<<47 - 1) << 2

const (
	imageAlign = 128 // of every section: what code needs
	mostAlign  = 4096
	mostImage  = 1 << 28
	// Slack is the memory that has to be mapped after an image: instructions are
	// fetched ahead.
	Slack = 4096
	// flags of a .text section: 26:20 are the barriers.
	barrierShift, barrierMask = 20, 0x7f
	// info of a .text section: 31:24 are the registers.
	registerShift = 24
	mostBank      = 7
	mostBankBytes = 64 << 10
)

// Read reads a file. The bytes stay in use.
func Read(b []byte) (*Cubin, error) {
	c, err := read(b)
	if err != nil {
		return nil, fmt.Errorf("cubin: %w", err)
	}
	return c, nil
}

func read(b []byte) (*Cubin, error) {
	f, err := readFile(b)
	if err != nil {
		return nil, err
	}
	c := &Cubin{file: f, places: make(map[int]int), UnknownAttributes: make(map[byte]int)}
	for _, step := range []func() error{c.findKernels, c.place, c.readInfo, c.findRelocations, c.checkKernels} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Kernel finds an entry by name.
func (c *Cubin) Kernel(name string) (*Kernel, error) {
	for _, k := range c.Kernels {
		if k.Name == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("cubin: no kernel %q", name)
}

// Size is the size of the image, without the slack.
func (c *Cubin) Size() int { return c.size }

// findKernels lists the global functions.
func (c *Cubin) findKernels() error {
	for i, s := range c.file.symbols {
		if s.info&typeMask != typeFunction || s.info&globalSymbol == 0 {
			continue
		}
		if s.section == undefined || s.section >= len(c.file.sections) {
			return fmt.Errorf("kernel %q lies in section %d of %d", s.name, s.section, len(c.file.sections))
		}
		text := &c.file.sections[s.section]
		if text.name != ".text."+s.name || s.value != 0 {
			return fmt.Errorf("kernel %q lies at %#x of section %q", s.name, s.value, text.name)
		}
		c.Kernels = append(c.Kernels, &Kernel{
			Name: s.name, symbol: i, section: s.section, Barriers: int(text.flags >> barrierShift & barrierMask),
		})
	}
	if len(c.Kernels) == 0 {
		return errors.New("no kernel")
	}
	return nil
}

// place lays the sections out that are loaded.
func (c *Cubin) place() error {
	for i := range c.file.sections {
		s := &c.file.sections[i]
		if s.flags&flagAlloc == 0 {
			continue
		}
		if err := c.placeOne(i, s); err != nil {
			return fmt.Errorf("section %q: %w", s.name, err)
		}
	}
	for _, k := range c.Kernels {
		at, loaded := c.places[k.section]
		if !loaded {
			return fmt.Errorf("kernel %q: its code, section %q, is not loaded", k.Name, c.file.sections[k.section].name)
		}
		k.Code = Part{at, len(c.file.sections[k.section].data)}
	}
	return nil
}

func (c *Cubin) placeOne(i int, s *section) error {
	bank, kernel, constant := bankName(s.name)
	switch {
	case s.address != 0:
		return fmt.Errorf("an address, %#x, in a file", s.address)
	case strings.HasPrefix(s.name, ".nv.shared."):
		return c.shared(strings.TrimPrefix(s.name, ".nv.shared."), s)
	case constant && bank == 0:
		return c.bank0(kernel, s)
	case constant:
		return c.bank(i, bank, kernel, s)
	case strings.HasPrefix(s.name, ".text.") && s.kind == kindBits, s.name == ".nv.global" || s.name == ".nv.global.init":
		_, err := c.add(i, s)
		return err
	}
	return fmt.Errorf("nothing is known of it (kind %d, flags %#x)", s.kind, s.flags)
}

// bankName takes ".nv.constant2.KERNEL" apart; without a kernel the bank is that of all.
func bankName(name string) (bank int, kernel string, ok bool) {
	rest, ok := strings.CutPrefix(name, ".nv.constant")
	if !ok {
		return 0, "", false
	}
	digits, kernel, _ := strings.Cut(rest, ".")
	bank, err := strconv.Atoi(digits)
	return bank, kernel, err == nil && bank >= 0
}

func (c *Cubin) shared(kernel string, s *section) error {
	k, err := c.Kernel(kernel)
	if err != nil {
		return err
	}
	if s.kind != kindNoBits || s.size > mostImage {
		return fmt.Errorf("%d bytes of shared memory, kind %d", s.size, s.kind)
	}
	k.SharedBytes = int(s.size)
	return nil
}

func (c *Cubin) bank0(kernel string, s *section) error {
	k, err := c.Kernel(kernel)
	if err != nil {
		return err
	}
	if len(s.data) > mostBankBytes || s.kind != kindBits {
		return fmt.Errorf("%d bytes, want at most %d", len(s.data), mostBankBytes)
	}
	k.Bank0 = s.data
	return nil
}

func (c *Cubin) bank(i, number int, kernel string, s *section) error {
	if number > mostBank || s.kind != kindBits || len(s.data) > mostBankBytes || len(s.data) == 0 {
		return fmt.Errorf("bank %d of %d bytes, want at most %d of up to %d", number, len(s.data), mostBank, mostBankBytes)
	}
	at, err := c.add(i, s)
	if err != nil {
		return err
	}
	found := false
	for _, k := range c.Kernels {
		if kernel == "" || k.Name == kernel {
			k.Banks = append(k.Banks, Bank{number, Part{at, len(s.data)}})
			found = true
		}
	}
	if !found {
		return fmt.Errorf("no kernel %q", kernel)
	}
	return nil
}

// add gives a section a place in the image.
func (c *Cubin) add(i int, s *section) (int, error) {
	align := max(s.align, imageAlign)
	if align > mostAlign || align&(align-1) != 0 || s.size > mostImage {
		return 0, fmt.Errorf("%d bytes aligned to %d", s.size, s.align)
	}
	at := (c.size + int(align) - 1) / int(align) * int(align)
	if at+int(s.size) > mostImage {
		return 0, fmt.Errorf("an image of more than %d bytes", mostImage)
	}
	c.places[i], c.size = at, at+int(s.size)
	return at, nil
}

func (c *Cubin) readInfo() error {
	for i := range c.file.sections {
		s := &c.file.sections[i]
		if s.name == ".nv.info" {
			if err := c.readShared(s); err != nil {
				return err
			}
			continue
		}
		name, own := strings.CutPrefix(s.name, ".nv.info.")
		if !own {
			continue
		}
		k, err := c.Kernel(name)
		if err != nil {
			continue // of a function that is no kernel
		}
		if err := c.readOwn(k, s); err != nil {
			return err
		}
	}
	return nil
}

// findRelocations reads the tables of relocations of sections that are loaded.
func (c *Cubin) findRelocations() error {
	for i := range c.file.sections {
		s := &c.file.sections[i]
		if s.kind != kindRel && s.kind != kindRela {
			continue
		}
		if int64(s.info) >= int64(len(c.file.sections)) {
			return fmt.Errorf("%s: relocations of section %d", s.name, s.info)
		}
		if base, loaded := c.places[int(s.info)]; loaded {
			if err := c.readRelocations(s, base); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		} else if c.file.sections[s.info].flags&flagAlloc != 0 {
			return fmt.Errorf("%s: relocations of %s", s.name, c.file.sections[s.info].name)
		}
	}
	return nil
}

func (c *Cubin) readRelocations(s *section, base int) error {
	each := 16
	if s.kind == kindRela {
		each = 24
	}
	if len(s.data)%each != 0 {
		return fmt.Errorf("%d bytes, want a multiple of %d", len(s.data), each)
	}
	to := &c.file.sections[s.info]
	for at := 0; at < len(s.data); at += each {
		row := s.data[at:]
		offset, info := binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(row[8:])
		r := relocation{kind: uint32(info), at: base, symbol: int(info >> 32)}
		first, size, field := uint64(0), uint64(4), uint64(1<<32-1)
		switch r.kind {
		case relocate64:
			size, field = 8, math.MaxUint64
		case relocateLow, relocateHigh:
			first = 4 // in an instruction
		case relocateCall:
			first, size, field = 4, 8, callBits
		default:
			return fmt.Errorf("relocation of kind %#x at %#x", r.kind, offset)
		}
		if offset > uint64(len(to.data)) || first+size > uint64(len(to.data))-offset {
			return fmt.Errorf("relocation at %#x of %d bytes", offset, len(to.data))
		}
		var place [8]byte
		copy(place[:size], to.data[offset+first:])
		if binary.LittleEndian.Uint64(place[:])&field != 0 {
			return fmt.Errorf("relocation at %#x with an addend", offset)
		}
		if s.kind == kindRela {
			if r.addend = binary.LittleEndian.Uint64(row[16:]); r.addend > mostImage {
				return fmt.Errorf("relocation at %#x with the addend %#x", offset, r.addend)
			}
		}
		if err := c.checkTarget(r.symbol); err != nil {
			return fmt.Errorf("relocation at %#x: %w", offset, err)
		}
		r.at += int(offset + first)
		c.relocations = append(c.relocations, r)
	}
	return nil
}

// checkTarget reports a symbol that has no address in the image.
func (c *Cubin) checkTarget(number int) error {
	if number >= len(c.file.symbols) {
		return fmt.Errorf("symbol %d of %d", number, len(c.file.symbols))
	}
	s := c.file.symbols[number]
	if _, loaded := c.places[s.section]; !loaded || s.section >= reserved {
		return fmt.Errorf("symbol %q is in section %d, which is not loaded", s.name, s.section)
	}
	if s.value > c.file.sections[s.section].size {
		return fmt.Errorf("symbol %q at %#x of a section of %d bytes", s.name, s.value, c.file.sections[s.section].size)
	}
	return nil
}

// checkKernels reports kernels of which something is missing or said in two ways.
func (c *Cubin) checkKernels() error {
	for _, k := range c.Kernels {
		text := &c.file.sections[k.section]
		slices.SortFunc(k.Params, func(a, b Param) int { return a.Ordinal - b.Ordinal })
		switch registers := int(text.info >> registerShift); {
		case k.Registers == 0:
			return fmt.Errorf("kernel %q: no REGCOUNT", k.Name)
		case registers != k.Registers:
			return fmt.Errorf("kernel %q: REGCOUNT %d, and %d in the header of its code", k.Name, k.Registers, registers)
		case len(text.data) == 0:
			return fmt.Errorf("kernel %q: no code", k.Name)
		case k.ParamBase+k.ParamBytes > len(k.Bank0):
			return fmt.Errorf("kernel %q: %d bytes of parameters at %#x of a bank 0 of %d", k.Name, k.ParamBytes, k.ParamBase, len(k.Bank0))
		}
		for _, p := range k.Params {
			if p.Offset+p.Bytes > k.ParamBytes {
				return fmt.Errorf("kernel %q: parameter %d: %d bytes at %d of %d", k.Name, p.Ordinal, p.Bytes, p.Offset, k.ParamBytes)
			}
		}
		for i, b := range k.Banks {
			if slices.ContainsFunc(k.Banks[:i], func(o Bank) bool { return o.Number == b.Number }) {
				return fmt.Errorf("kernel %q: bank %d twice", k.Name, b.Number)
			}
		}
	}
	return nil
}

// Image is the bytes as they have to lie at an address.
func (c *Cubin) Image(base uint64) ([]byte, error) {
	if base%mostAlign != 0 {
		return nil, fmt.Errorf("cubin: image at %#x, want a multiple of %d", base, mostAlign)
	}
	out := make([]byte, c.size)
	for i, at := range c.places {
		copy(out[at:], c.file.sections[i].data)
	}
	for _, r := range c.relocations {
		s := c.file.symbols[r.symbol]
		address := base + uint64(c.places[s.section]) + s.value + r.addend
		switch r.kind {
		case relocate64:
			binary.LittleEndian.PutUint64(out[r.at:], address)
		case relocateLow:
			binary.LittleEndian.PutUint32(out[r.at:], uint32(address))
		case relocateHigh:
			binary.LittleEndian.PutUint32(out[r.at:], uint32(address>>32))
		case relocateCall:
			old := binary.LittleEndian.Uint64(out[r.at:])
			binary.LittleEndian.PutUint64(out[r.at:], old|address&callBits)
		}
	}
	return out, nil
}
