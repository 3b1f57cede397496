package native

import (
	"fmt"
	"math"
	"os"
	"sync"
	"unsafe"

	"tgc/internal/pages"
)

// hugePage is the size that large allocations are aligned to. Weights in
// 2 MiB pages save a page walk per 4 KiB read.
const hugePage = 2 << 20

// Memory is zeroed memory outside the Go heap, with an inaccessible page
// after it: reading past the end faults (see FaultError) instead of finding
// a neighbour's bytes. Padding up to the page after Size is readable zeros, as is a page
// before it: a masked load whose first lanes, which do not count, lie on an inaccessible page
// takes as long as some hundred others (a row of 256 moved by one and divided by others: 46 us
// of 8 on a Zen 4 core).
type Memory struct {
	mapping []byte
	data    []byte
	free    sync.Once
}

// Alloc maps size bytes, page-aligned; from 2 MiB on aligned to and advised
// for huge pages. The memory must be freed: the collector does not see it.
func Alloc(size int64) (*Memory, error) { return alloc(size, true) }

// AllocSparse is Alloc without huge pages: memory that is not touched costs
// nothing, which a cache sized for the longest context depends on.
func AllocSparse(size int64) (*Memory, error) { return alloc(size, false) }

func alloc(size int64, huge bool) (*Memory, error) {
	page := int64(os.Getpagesize())
	if size < 0 || size > math.MaxInt64/2 {
		return nil, fmt.Errorf("native: allocation of %d bytes", size)
	}
	align := page
	if huge && size >= hugePage {
		align = hugePage
	}
	usable := max((size+page-1)/page*page, page)
	mapping, err := pages.Reserve(int(page + usable + align + page))
	if err != nil {
		return nil, fmt.Errorf("native: allocation of %d bytes: %w", size, err)
	}
	base := int64(uintptr(unsafe.Pointer(&mapping[0])))
	start := (base+page+align-1)/align*align - base
	body := mapping[start : start+usable]
	if err := pages.Protect(mapping[start-page:start], pages.Read); err != nil {
		_ = pages.Unmap(mapping) // the error of Protect is the one to report
		return nil, fmt.Errorf("native: allocation of %d bytes: %w", size, err)
	}
	if err := pages.Protect(body, pages.ReadWrite); err != nil {
		_ = pages.Unmap(mapping) // the error of Protect is the one to report
		return nil, fmt.Errorf("native: allocation of %d bytes: %w", size, err)
	}
	if huge && size >= hugePage {
		pages.AdviseHuge(body)
	}
	touchPage(&mapping[start-1])
	touchPage(&body[usable-1])
	return &Memory{mapping: mapping, data: body[:size:size]}, nil
}

// touchPage has a page of zeros mapped, which a masked load of none of its bytes does not.
//
//go:noinline
func touchPage(p *byte) byte { return *p }

// Bytes is the memory. It must not be used after Free.
func (m *Memory) Bytes() []byte { return m.data }

// Addr is the address of the first byte, aligned to a page at least.
func (m *Memory) Addr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.data))) }

// Size is the size asked for, in bytes.
func (m *Memory) Size() int64 { return int64(len(m.data)) }

// Free unmaps the memory. No kernel may be using it.
func (m *Memory) Free() error {
	var err error
	m.free.Do(func() {
		mapping := m.mapping
		m.mapping, m.data = nil, nil
		err = pages.Unmap(mapping)
	})
	return err
}
