package emu

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tgc/internal/ptxemu"
)

// known is a kernel that the machine was told of: its machine code and its text.
type known struct {
	needs   Needs
	ptx     *ptxemu.Kernel
	text    int // section of the code
	code    []byte
	holes   []hole          // in the code
	tables  map[int]*table  // constant banks other than 0, by number
	globals map[string]spot // variables by name
	initial map[int][]byte  // what sections of variables and subroutines hold at first, by number
}

// table is the contents of a constant bank.
type table struct {
	data  []byte
	holes []hole
}

// hole is where the loader has filled an address in.
type hole struct {
	at     int // of the word in the code, or of the address in the bank
	kind   uint32
	target spot
}

// spot is a place in a section.
type spot struct {
	section int
	offset  uint64
}

// loaded is a kernel as a launch has it.
type loaded struct {
	needs *Needs
	ptx   *ptxemu.Kernel
}

// Know tells the machine of machine code and of the PTX that it was made of: launches of
// that code run the PTX.
func (m *Machine) Know(cubin []byte, text string) error {
	module, err := ptxemu.Parse(text)
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	found, err := readCode(cubin, module)
	if err != nil {
		return fmt.Errorf("emulator: machine code: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = append(m.known, found...)
	return nil
}

// Declare says what the program at an address needs, where its code is not known.
func (m *Machine) Declare(address uint64, n Needs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.declared[address] = n
}

// errNoCode is a section that is not there.
var errNoCode = errors.New("no such section")

// object is a cubin as debug/elf reads it.
type object struct {
	*elf.File
	symbols []elf.Symbol
}

// openObject opens a cubin: its file version is none of ELF's, the rest is ELF.
func openObject(cubin []byte) (*object, error) {
	const versionAt, version = 20, 1
	b := bytes.Clone(cubin)
	if len(b) < versionAt+4 {
		return nil, io.ErrUnexpectedEOF
	}
	binary.LittleEndian.PutUint32(b[versionAt:], version)
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	return &object{f, append([]elf.Symbol{{}}, symbols...)}, nil
}

func (o *object) data(name string) ([]byte, int, error) {
	for i, s := range o.Sections {
		if s.Name == name {
			b, err := s.Data()
			return b, i, err
		}
	}
	return nil, 0, fmt.Errorf("%w: %s", errNoCode, name)
}

// readCode reads the kernels of a cubin that a module has the text of.
func readCode(cubin []byte, module *ptxemu.Module) ([]*known, error) {
	o, err := openObject(cubin)
	if err != nil {
		return nil, err
	}
	var list []*known
	for _, k := range module.Kernels() {
		one, err := o.kernel(k)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		list = append(list, one)
	}
	return list, nil
}

func (o *object) kernel(ptx *ptxemu.Kernel) (*known, error) {
	k := &known{ptx: ptx, tables: make(map[int]*table), globals: make(map[string]spot), initial: make(map[int][]byte)}
	k.needs.Name = ptx.Name
	code, text, err := o.data(".text." + ptx.Name)
	if err != nil {
		return nil, err
	}
	k.code, k.text, k.needs.Size = code, text, len(code)
	k.needs.Barriers = int(o.Sections[text].Flags >> 20 & 0x7f)
	if b, _, err := o.data(".nv.constant0." + ptx.Name); err == nil {
		k.needs.Bank0 = len(b)
	}
	if k.holes, err = o.holes(text); err != nil {
		return nil, err
	}
	if err := o.variables(k); err != nil {
		return nil, err
	}
	if err := o.subroutines(k); err != nil {
		return nil, err
	}
	if err := o.banks(k); err != nil {
		return nil, err
	}
	return k, o.attributes(k)
}

// holes are the relocations of a section.
func (o *object) holes(section int) ([]hole, error) {
	var list []hole
	for _, s := range o.Sections {
		each := 16
		if s.Type == elf.SHT_RELA {
			each = 24
		}
		if s.Type != elf.SHT_REL && s.Type != elf.SHT_RELA || int(s.Info) != section {
			continue
		}
		b, err := s.Data()
		if err != nil {
			return nil, err
		}
		for ; len(b) >= each; b = b[each:] {
			h, err := o.hole(section, b[:each])
			if err != nil {
				return nil, err
			}
			list = append(list, h)
		}
	}
	return list, nil
}

// hole is a row of a table of relocations.
func (o *object) hole(section int, row []byte) (hole, error) {
	h := hole{at: int(get64(row, 0)), kind: get32(row, 8)}
	number, end := int(get32(row, 12)), uint64(h.at)+8
	if h.kind != absolute {
		end += 4
	}
	if number >= len(o.symbols) || h.at < 0 || end > o.Sections[section].Size {
		return h, fmt.Errorf("relocation at %#x of symbol %d", h.at, number)
	}
	symbol := o.symbols[number]
	h.target = spot{int(symbol.Section), symbol.Value}
	if len(row) == 24 {
		h.target.offset += get64(row, 16)
	}
	switch h.kind {
	case lowHalf, highHalf, called: // the words after the opcode's
		h.at += 4
	case absolute:
	default:
		return h, fmt.Errorf("relocation of kind %#x", h.kind)
	}
	return h, nil
}

// Kinds of relocations: 8 bytes; the halves of an address in two instructions; the target
// of a call, from bit 34 of its instruction on, without the lowest two bits.
const (
	absolute = 2
	lowHalf  = 0x38
	highHalf = 0x39
	called   = 0x3a

	calledBits = 0x1fffffffffffc
)

// variables are the module's, in the sections that the loader places.
func (o *object) variables(k *known) error {
	for _, s := range o.symbols {
		number := int(s.Section)
		if elf.ST_TYPE(s.Info) != elf.STT_OBJECT || number == 0 || number >= len(o.Sections) {
			continue
		}
		section := o.Sections[number]
		if !strings.HasPrefix(section.Name, ".nv.global") {
			continue
		}
		k.globals[s.Name] = spot{number, s.Value}
		if section.Type == elf.SHT_NOBITS {
			continue
		}
		b, err := section.Data()
		if err != nil {
			return err
		}
		k.initial[number] = b
	}
	return nil
}

// subroutines are the functions in sections of their own that the code calls.
func (o *object) subroutines(k *known) error {
	for _, h := range k.holes {
		section := o.Sections[h.target.section]
		if h.target.section == k.text || !strings.HasPrefix(section.Name, ".text.") {
			continue
		}
		b, err := section.Data()
		if err != nil {
			return err
		}
		if more, err := o.holes(h.target.section); err != nil {
			return err
		} else if len(more) > 0 {
			return fmt.Errorf("%s: %d addresses in a subroutine", section.Name, len(more))
		}
		k.initial[h.target.section] = b
	}
	return nil
}

// banks are the constant banks other than the one of the parameters.
func (o *object) banks(k *known) error {
	for i, s := range o.Sections {
		rest, ok := strings.CutPrefix(s.Name, ".nv.constant")
		if !ok {
			continue
		}
		digits, owner, owned := strings.Cut(rest, ".")
		number, err := strconv.Atoi(digits)
		if err != nil || number == 0 || owned && owner != k.needs.Name {
			continue
		}
		t := &table{}
		if t.data, err = s.Data(); err != nil {
			return err
		}
		if t.holes, err = o.holes(i); err != nil {
			return err
		}
		k.tables[number] = t
		switch number {
		case 2:
			k.needs.Bank2 = len(t.data)
		case 4:
			k.needs.Bank4 = len(t.data)
		default:
			return fmt.Errorf("constant bank %d", number)
		}
	}
	return nil
}

// attributes reads registers, stack and parameters.
func (o *object) attributes(k *known) error {
	symbol := -1
	for i, s := range o.symbols {
		if s.Name == k.needs.Name && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			symbol = i
		}
	}
	shared, _, err := o.data(".nv.info")
	if err != nil {
		return err
	}
	records(shared, func(kind byte, b []byte) {
		if len(b) < 8 || int(get32(b, 0)) != symbol {
			return
		}
		switch kind {
		case 0x2f:
			k.needs.Registers = int(get32(b, 4))
		case 0x12:
			k.needs.Stack = int(get32(b, 4))
		}
	})
	own, _, err := o.data(".nv.info." + k.needs.Name)
	if err != nil {
		return err
	}
	count := len(k.ptx.ParamSizes)
	k.needs.paramOffsets, k.needs.paramSizes = make([]int, count), make([]int, count)
	seen := 0
	records(own, func(kind byte, b []byte) {
		switch {
		case kind == 0x0a && len(b) >= 8:
			k.needs.ParamBase = int(b[4]) | int(b[5])<<8
		case kind == 0x17 && len(b) >= 12:
			if i := int(b[4]) | int(b[5])<<8; i < count {
				k.needs.paramOffsets[i] = int(b[6]) | int(b[7])<<8
				k.needs.paramSizes[i] = int(get32(b, 8) >> 18)
				seen++
			}
		}
	})
	if seen != count {
		return fmt.Errorf("%d parameters, the text has %d", seen, count)
	}
	k.needs.Shared = k.ptx.Shared
	if i := o.index(".nv.shared." + k.needs.Name); i > 0 {
		k.needs.Shared = int(o.Sections[i].Size)
	}
	return nil
}

func (o *object) index(name string) int {
	for i, s := range o.Sections {
		if s.Name == name {
			return i
		}
	}
	return 0
}

// records walks through attributes: the long ones have bytes.
func records(b []byte, use func(kind byte, b []byte)) {
	for len(b) >= 4 {
		size := 4
		if b[0] == 4 {
			size += int(b[2]) | int(b[3])<<8
		}
		if size > len(b) {
			return
		}
		use(b[1], b[4:size])
		b = b[size:]
	}
}

// kernelOf finds out what the program of a descriptor is.
func (m *Machine) kernelOf(c *channel, q qmd) (*Needs, *loaded, error) {
	program := q.program()
	if n, ok := m.declared[program]; ok {
		return &n, nil, nil
	}
	if c.space.find(program, programAlign) == nil {
		return nil, nil, refuseMemory(program, "code, where nothing is mapped")
	}
	if m.replay != nil && len(m.declared) == 0 {
		return &Needs{Name: "unknown"}, nil, nil
	}
	var nearest error
	for _, k := range m.known {
		b, err := m.fetch(c, "code", program, len(k.code))
		if err != nil {
			nearest = err
			continue
		}
		bases, same := matches(b, k.code, k.holes)
		if !same {
			continue
		}
		if err := cached(&c.state.codes, "code", program, b, q.flag(190)); err != nil {
			return nil, nil, err
		}
		needs, err := m.resolve(c, q, k, bases)
		if err != nil {
			nearest = err
			continue
		}
		return needs, &loaded{needs: needs, ptx: k.ptx}, nil
	}
	if nearest != nil {
		return nil, nil, nearest
	}
	return nil, nil, refuseSM(q, esrEncoding, "the code at %#x is none that is known", program)
}

// matches compares code but for its addresses, which give the bases of sections.
func matches(b, code []byte, holes []hole) (bases map[int]uint64, same bool) {
	masked, want := bytes.Clone(b), bytes.Clone(code)
	low, high := make(map[spot]uint32), make(map[spot]uint32)
	note := func(half map[spot]uint32, h hole, v uint32) bool {
		other, twice := half[h.target]
		half[h.target] = v
		return !twice || other == v
	}
	for _, h := range holes {
		agrees := true
		switch v := get32(b, h.at); h.kind {
		case lowHalf:
			agrees = note(low, h, v)
			clear(masked[h.at : h.at+4])
			clear(want[h.at : h.at+4])
		case highHalf:
			agrees = note(high, h, v)
			clear(masked[h.at : h.at+4])
			clear(want[h.at : h.at+4])
		case called:
			to := get64(b, h.at) & calledBits
			agrees = note(low, h, uint32(to)) && note(high, h, uint32(to>>32))
			put64(masked, h.at, get64(masked, h.at)&^calledBits)
			put64(want, h.at, get64(want, h.at)&^calledBits)
		}
		if !agrees {
			return nil, false
		}
	}
	if !bytes.Equal(masked, want) {
		return nil, false
	}
	bases = make(map[int]uint64)
	for target, l := range low {
		base := uint64(high[target])<<32 | uint64(l) - target.offset
		if other, twice := bases[target.section]; twice && other != base {
			return nil, false
		}
		bases[target.section] = base
	}
	return bases, true
}

// resolve works out where the variables of a kernel lie, and what its banks must hold.
func (m *Machine) resolve(c *channel, q qmd, k *known, bases map[int]uint64) (*Needs, error) {
	n := k.needs
	n.banks, n.globals = make(map[int][]byte), make(map[string]uint64)
	for number, t := range k.tables {
		should := bytes.Clone(t.data)
		address, size, valid := q.bank(number)
		if !valid || size < len(should) {
			return nil, refuseSM(q, esrConstant, "kernel %s: constant bank %d of %d bytes, want %d", n.Name, number, size, len(should))
		}
		b, err := m.fetch(c, fmt.Sprintf("constant bank %d", number), address, len(should))
		if err != nil {
			return nil, err
		}
		for _, h := range t.holes {
			base := get64(b, h.at) - h.target.offset
			if other, twice := bases[h.target.section]; twice && other != base {
				return nil, refuseSM(q, esrConstant, "kernel %s: addresses of one section differ", n.Name)
			}
			bases[h.target.section] = base
			put64(should, h.at, base+h.target.offset)
		}
		n.banks[number] = should
	}
	if own, used := bases[k.text]; used && own != q.program() {
		return nil, refuseSM(q, esrEncoding, "kernel %s: its own address is %#x, and it lies at %#x", n.Name, own, q.program())
	}
	for name, s := range k.globals {
		if base, used := bases[s.section]; used { // else only the text reaches it
			n.globals[name] = base + s.offset
		}
	}
	for section, content := range k.initial {
		base, used := bases[section]
		if !used {
			continue
		}
		b, err := m.fetch(c, "variables", base, len(content))
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(b, content) {
			return nil, refuseSM(q, esrConstant, "kernel %s: its tables or subroutines at %#x hold something else", n.Name, base)
		}
	}
	return &n, nil
}
