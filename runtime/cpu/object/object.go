package object

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"tgc/internal/pages"
)

// maxImage bounds the memory one object may ask for, in bytes. Kernels are
// kilobytes; a larger claim is a corrupt file.
const maxImage = 256 << 20

// Object is a mapped object. Its functions stay callable until Close.
type Object struct {
	mapping   []byte
	textSize  uint64
	functions []Function // by address
	byName    map[string]int
	close     sync.Once
}

// Function is one function of an object.
type Function struct {
	Name string
	Addr uintptr
	Size uintptr // bytes
}

// Load maps an object for this machine. The file is not referenced after
// Load returns.
func Load(file []byte) (*Object, error) {
	machine, ok := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("object: no loader for %s", runtime.GOARCH)
	}
	o := &Object{byName: map[string]int{}}
	img, err := link(file, machine, func(size uint64) (_ []byte, err error) {
		o.mapping, err = pages.Map(int(size))
		return o.mapping, err
	})
	if err == nil {
		err = img.protect()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("object: %w", err), o.Close())
	}
	o.textSize = img.groups[groupText].size
	o.functions = img.functions()
	slices.SortFunc(o.functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Name, b.Name))
	})
	for i, fn := range o.functions {
		o.byName[fn.Name] = i
	}
	return o, nil
}

// Entry is the address of the global function called name.
func (o *Object) Entry(name string) (addr uintptr, ok bool) {
	i, ok := o.byName[name]
	if !ok {
		return 0, false
	}
	return o.functions[i].Addr, true
}

// Functions lists the object's functions by address.
func (o *Object) Functions() []Function { return slices.Clone(o.functions) }

// Text is the address range of the object's code, end excluded.
func (o *Object) Text() (start, end uintptr) {
	if len(o.mapping) == 0 {
		return 0, 0
	}
	start = uintptr(unsafe.Pointer(unsafe.SliceData(o.mapping)))
	return start, start + uintptr(o.textSize)
}

// Lookup names the function that holds pc and the offset inside it.
func (o *Object) Lookup(pc uintptr) (name string, offset uintptr, ok bool) {
	for _, fn := range o.functions {
		if pc >= fn.Addr && pc-fn.Addr < fn.Size {
			return fn.Name, pc - fn.Addr, true
		}
	}
	return "", 0, false
}

// Close unmaps the object. No thread may be inside it, and no entry address
// may be called afterwards.
func (o *Object) Close() error {
	var err error
	o.close.Do(func() {
		mapping := o.mapping
		o.mapping, o.functions, o.byName = nil, nil, nil
		if mapping != nil {
			err = pages.Unmap(mapping)
		}
	})
	return err
}
