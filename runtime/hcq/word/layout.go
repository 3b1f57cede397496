package word

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed tables/*.txt
var tables embed.FS

// Name is the name of a field, a method or a descriptor as NVIDIA's headers have it.
type Name string

// Field is a run of bits, or an array of runs.
type Field struct {
	Name      Name
	High, Low int // bits, of the first element
	Step      int // bits from one element to the next
	Count     int // elements; 1 for what is no array
	array     bool
}

// Layout is a structure of words with named fields.
type Layout struct {
	Name   string
	Words  int
	Fields []Field
	byName map[Name]int
}

// Descriptors of launches: for compute classes C6C0 to C9C0, and for CBC0 (Hopper).
var (
	QMD3 = sync.OnceValue(func() *Layout { return layoutFrom("QMD V03_00", 64, "qmd3") })
	QMD4 = sync.OnceValue(func() *Layout { return layoutFrom("QMD V04_00", 96, "qmd4") })
)

// Names of the fields that somebody sets.
const (
	QMDGroupID                  Name = "QMD_GROUP_ID"
	SMGlobalCachingEnable       Name = "SM_GLOBAL_CACHING_ENABLE"
	InvalidateTextureHeader     Name = "INVALIDATE_TEXTURE_HEADER_CACHE"
	InvalidateTextureSampler    Name = "INVALIDATE_TEXTURE_SAMPLER_CACHE"
	InvalidateTextureData       Name = "INVALIDATE_TEXTURE_DATA_CACHE"
	InvalidateShaderData        Name = "INVALIDATE_SHADER_DATA_CACHE"
	InvalidateInstruction       Name = "INVALIDATE_INSTRUCTION_CACHE"
	InvalidateShaderConstant    Name = "INVALIDATE_SHADER_CONSTANT_CACHE"
	ProgramPrefetchAddrLower    Name = "PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED"
	ProgramPrefetchAddrUpper    Name = "PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED"
	ProgramPrefetchSize         Name = "PROGRAM_PREFETCH_SIZE"
	CWDMembarType               Name = "CWD_MEMBAR_TYPE"
	APIVisibleCallLimit         Name = "API_VISIBLE_CALL_LIMIT"
	SamplerIndex                Name = "SAMPLER_INDEX"
	CTARasterWidth              Name = "CTA_RASTER_WIDTH"
	CTARasterHeight             Name = "CTA_RASTER_HEIGHT"
	CTARasterDepth              Name = "CTA_RASTER_DEPTH"
	SharedMemorySize            Name = "SHARED_MEMORY_SIZE"
	MinSMConfigSharedMemSize    Name = "MIN_SM_CONFIG_SHARED_MEM_SIZE"
	MaxSMConfigSharedMemSize    Name = "MAX_SM_CONFIG_SHARED_MEM_SIZE"
	TargetSMConfigSharedMemSize Name = "TARGET_SM_CONFIG_SHARED_MEM_SIZE"
	QMDVersion                  Name = "QMD_VERSION"
	QMDMinorVersion             Name = "QMD_MINOR_VERSION"
	QMDMajorVersion             Name = "QMD_MAJOR_VERSION"
	CTAThreadDimension0         Name = "CTA_THREAD_DIMENSION0"
	CTAThreadDimension1         Name = "CTA_THREAD_DIMENSION1"
	CTAThreadDimension2         Name = "CTA_THREAD_DIMENSION2"
	RegisterCountV              Name = "REGISTER_COUNT_V"
	BarrierCount                Name = "BARRIER_COUNT"
	ConstantBufferValid         Name = "CONSTANT_BUFFER_VALID"
	ConstantBufferAddrLower     Name = "CONSTANT_BUFFER_ADDR_LOWER"
	ConstantBufferAddrUpper     Name = "CONSTANT_BUFFER_ADDR_UPPER"
	ConstantBufferInvalidate    Name = "CONSTANT_BUFFER_INVALIDATE"
	ConstantBufferSizeShifted4  Name = "CONSTANT_BUFFER_SIZE_SHIFTED4"
	ProgramAddressLower         Name = "PROGRAM_ADDRESS_LOWER"
	ProgramAddressUpper         Name = "PROGRAM_ADDRESS_UPPER"
	ShaderLocalMemoryHighSize   Name = "SHADER_LOCAL_MEMORY_HIGH_SIZE"
	DependentQMD0Pointer        Name = "DEPENDENT_QMD0_POINTER"
	DependentQMD0Enable         Name = "DEPENDENT_QMD0_ENABLE"
	DependentQMD0Action         Name = "DEPENDENT_QMD0_ACTION"
	DependentQMD0Prefetch       Name = "DEPENDENT_QMD0_PREFETCH"
	SassVersion                 Name = "SASS_VERSION"
	Release0AddressLower        Name = "RELEASE0_ADDRESS_LOWER"
	Release0AddressUpper        Name = "RELEASE0_ADDRESS_UPPER"
	Release0MembarType          Name = "RELEASE0_MEMBAR_TYPE"
	Release0Enable              Name = "RELEASE0_ENABLE"
	Release0StructureSize       Name = "RELEASE0_STRUCTURE_SIZE"
	Release0PayloadLower        Name = "RELEASE0_PAYLOAD_LOWER"
)

// ErrField is wrapped where a structure has no such field, or a value does not fit.
var ErrField = errors.New("no such field or value")

// layoutFrom reads a table. The tables are part of the program: a mistake in one is
// found by the tests, and panics.
func layoutFrom(name string, words int, file string) *Layout {
	l := &Layout{Name: name, Words: words, byName: make(map[Name]int)}
	readTable(file, func(_ bool, place string, field Name) {
		l.add(fieldFrom(place, field))
	})
	return l
}

func (l *Layout) add(f Field) {
	if _, twice := l.byName[f.Name]; twice {
		panic(fmt.Sprintf("word: %s has %s twice", l.Name, f.Name))
	}
	l.byName[f.Name] = len(l.Fields)
	l.Fields = append(l.Fields, f)
}

// readTable calls row for every line: whether it is indented, its place and its name.
func readTable(file string, row func(indented bool, place string, name Name)) {
	text, err := tables.ReadFile("tables/" + file + ".txt")
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		place, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			panic(fmt.Sprintf("word: table %s: line %q", file, line))
		}
		row(strings.HasPrefix(line, " "), place, Name(name))
	}
}

// fieldFrom reads "high:low" or "high:low+step*count".
func fieldFrom(place string, name Name) Field {
	f := Field{Name: name, Count: 1}
	bits, repeat, array := strings.Cut(place, "+")
	if array {
		step, count, _ := strings.Cut(repeat, "*")
		f.Step, f.Count, f.array = number(step, 10), number(count, 10), true
	}
	high, low, _ := strings.Cut(bits, ":")
	f.High, f.Low = number(high, 10), number(low, 10)
	return f
}

func number(text string, base int) int {
	n, err := strconv.ParseInt(text, base, 32)
	if err != nil {
		panic(fmt.Sprintf("word: table: %v", err))
	}
	return int(n)
}

// Field finds a field.
func (l *Layout) Field(name Name) (Field, bool) {
	i, ok := l.byName[name]
	if !ok {
		return Field{}, false
	}
	return l.Fields[i], true
}

// Set writes an element of a field; element 0 is a field that is no array.
func (l *Layout) Set(words []uint32, name Name, element int, v uint64) error {
	f, ok := l.Field(name)
	switch {
	case !ok || element < 0 || element >= f.Count:
		return fmt.Errorf("%s: %w: %s, element %d", l.Name, ErrField, name, element)
	case len(words) != l.Words:
		return fmt.Errorf("%s: %d words, want %d", l.Name, len(words), l.Words)
	}
	width := f.High - f.Low + 1
	if width < 64 && v>>width != 0 {
		return fmt.Errorf("%s: %w: %s = %#x, which has %d bits", l.Name, ErrField, name, v, width)
	}
	for done := 0; done < width; {
		bit := f.Low + element*f.Step + done
		count := min(32-bit%32, width-done)
		part := uint32(v>>done) & ones(count)
		words[bit/32] = words[bit/32]&^(ones(count)<<(bit%32)) | part<<(bit%32)
		done += count
	}
	return nil
}

// Get reads an element of a field.
func (l *Layout) Get(words []uint32, f Field, element int) (v uint64) {
	width := f.High - f.Low + 1
	for done := 0; done < width; {
		bit := f.Low + element*f.Step + done
		count := min(32-bit%32, width-done)
		v |= uint64(words[bit/32]>>(bit%32)&ones(count)) << done
		done += count
	}
	return v
}

func ones(n int) uint32 { return uint32(1<<n - 1) }

// elementName is NVIDIA's spelling: CONSTANT_BUFFER_VALID(0).
func (f Field) elementName(element int) string {
	if !f.array {
		return string(f.Name)
	}
	return fmt.Sprintf("%s(%d)", f.Name, element)
}
