package tegra

import (
	"errors"
	"fmt"
	"slices"

	"tgc/runtime/hcq"
)

const (
	largeBytes = 8 << 20 // from which memory is aligned to largeAlign, for fewer page tables
	largeAlign = 2 << 20
)

// Alloc returns zeroed memory that both sides see.
func (b *Board) Alloc(bytes int64, use hcq.Use) (*hcq.Buffer, error) {
	return b.alloc(bytes, use, nil)
}

// alloc makes memory, and calls with its descriptor while that is open. Memory that the
// kernel does not need to see by a descriptor keeps none: a mapping holds it.
func (b *Board) alloc(bytes int64, use hcq.Use, with func(fd int) error) (*hcq.Buffer, error) {
	size := (max(bytes, 1) + pageBytes - 1) / pageBytes * pageBytes
	create := createArgs{Size: uint64(size)}
	if err := call(b.port, b.nvmap, nvmapCreate64, &create); err != nil {
		return nil, fmt.Errorf("%d bytes: %w", size, err)
	}
	m := &hcq.Buffer{Handle: uint32(create.Size)}
	b.live = append(b.live, m)
	if err := b.fill(m, size, use, with); err != nil {
		return nil, errors.Join(fmt.Errorf("%d bytes: %w", size, err), b.Free(m))
	}
	return m, nil
}

func (b *Board) fill(m *hcq.Buffer, size int64, use hcq.Use, with func(fd int) error) (err error) {
	args := allocArgs{Handle: m.Handle, HeapMask: heapIOVMM, Flags: memoryTag | memoryCacheable | memoryZeroed, Align: pageBytes}
	if use == hcq.UseRing {
		args.Flags = memoryTag | memoryCombined | memoryZeroed
	}
	if size >= largeBytes {
		args.Align = largeAlign
	}
	if err := call(b.port, b.nvmap, nvmapAlloc, &args); err != nil {
		return err
	}
	get := getFDArgs{Handle: m.Handle}
	if err := call(b.port, b.nvmap, nvmapGetFD, &get); err != nil {
		return err
	}
	fd := int(get.FD)
	defer func() { err = errors.Join(err, b.port.Close(fd)) }()
	place := mapArgs{CompressedKind: kindNone, FD: uint32(fd), PageSize: pageBytes}
	if err := call(b.port, b.space, asMapBuffer, &place); err != nil {
		return err
	}
	m.Address = place.Address
	if m.Host, err = b.port.Mmap(fd, int(size)); err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	clear(m.Host) // the flag asks for zeros; a kernel may not know it
	if with == nil {
		return nil
	}
	return with(fd)
}

// Free gives memory back. Nothing may use it any more.
func (b *Board) Free(m *hcq.Buffer) error {
	var errs []error
	if m.Address != 0 {
		errs = append(errs, call(b.port, b.space, asUnmapBuffer, &unmapArgs{m.Address}))
	}
	if m.Host != nil {
		errs = append(errs, b.port.Munmap(m.Host))
	}
	if err := b.port.IoctlValue(b.nvmap, nvmapFree.number, uint64(m.Handle)); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", nvmapFree.name, err))
	}
	*m = hcq.Buffer{}
	b.live = slices.DeleteFunc(b.live, func(other *hcq.Buffer) bool { return other == m })
	return errors.Join(errs...)
}
