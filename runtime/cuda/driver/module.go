package driver

import "errors"

// jitOption is CUjit_option.
type jitOption uint32

const (
	jitInfoLog       jitOption = 3
	jitInfoLogBytes  jitOption = 4
	jitErrorLog      jitOption = 5
	jitErrorLogBytes jitOption = 6
	jitLogVerbose    jitOption = 12
)

const (
	logBytes = 16 << 10 // of each of the two logs; the assembler cuts what is longer
	inputPTX = 1        // CU_JIT_INPUT_PTX
)

// jitLog is the option list that makes the assembler write into two buffers of
// an argument block: what it says, and what it complains of.
type jitLog struct {
	options, values slot
	info, complaint slot
}

const jitLogSlots = 5

// jitLogRoom is what newJITLog takes of an argument block.
const jitLogRoom = 2*logBytes + 16*jitLogSlots + 64

func newJITLog(s *scratch) *jitLog {
	j := &jitLog{options: s.bytes(4 * jitLogSlots), values: s.bytes(8 * jitLogSlots), info: s.bytes(logBytes), complaint: s.bytes(logBytes)}
	rows := []struct {
		option jitOption
		value  uint64
	}{
		{jitInfoLog, uint64(j.info.addr())},
		{jitInfoLogBytes, logBytes},
		{jitErrorLog, uint64(j.complaint.addr())},
		{jitErrorLogBytes, logBytes},
		{jitLogVerbose, 1},
	}
	for i, row := range rows {
		j.options.put32(4*i, uint32(row.option))
		j.values.put64(8*i, row.value)
	}
	return j
}

func (j *jitLog) text() string { return untilZero(j.complaint) + untilZero(j.info) }

// Link assembles PTX for the current context's GPU. Unlike loading PTX it
// returns the machine code, which can be kept.
func (l *Library) Link(name, ptx string) (cubin []byte, log string, err error) {
	s, err := l.pool.get(jitLogRoom + len(ptx) + len(name) + 128)
	if err != nil {
		return nil, "", err
	}
	defer l.pool.put(s)
	j, source, label := newJITLog(s), s.text(ptx), s.text(name)
	state, image, size := s.bytes(8), s.bytes(8), s.bytes(8)
	if err := l.call(fnLinkCreate, jitLogSlots, j.options.addr(), j.values.addr(), state.addr()); err != nil {
		return nil, "", err
	}
	link := uintptr(state.uint64())
	defer func() { err = errors.Join(err, l.call(fnLinkDestroy, link)) }() // the image is the link's: copied before
	if err := l.call(fnLinkAddData, link, inputPTX, source.addr(), uintptr(len(source)), label.addr(), 0, 0, 0); err != nil {
		return nil, j.text(), err
	}
	if err := l.call(fnLinkComplete, link, image.addr(), size.addr()); err != nil {
		return nil, j.text(), err
	}
	return append([]byte(nil), foreign(uintptr(image.uint64()), int(size.uint64()))...), j.text(), nil
}

// ModuleLoad loads machine code (or PTX text) into the current context.
func (l *Library) ModuleLoad(image []byte) (Module, string, error) {
	s, err := l.pool.get(jitLogRoom + len(image) + 64)
	if err != nil {
		return 0, "", err
	}
	defer l.pool.put(s)
	j, data, out := newJITLog(s), s.bytes(len(image)+1), s.bytes(8)
	copy(data, image)
	err = l.call(fnModuleLoadDataEx, out.addr(), data.addr(), jitLogSlots, j.options.addr(), j.values.addr())
	return Module(out.uint64()), j.text(), err
}

// ModuleUnload drops a module and its functions.
func (l *Library) ModuleUnload(m Module) error { return l.call(fnModuleUnload, uintptr(m)) }

// ModuleFunction finds a kernel by name.
func (l *Library) ModuleFunction(m Module, name string) (Func, error) {
	s, err := l.pool.get(len(name) + 64)
	if err != nil {
		return 0, err
	}
	defer l.pool.put(s)
	out, label := s.bytes(8), s.text(name)
	if err := l.call(fnModuleGetFunction, out.addr(), uintptr(m), label.addr()); err != nil {
		return 0, err
	}
	return Func(out.uint64()), nil
}

// FuncAttribute is a property of a kernel.
func (l *Library) FuncAttribute(f Func, a FuncAttribute) (int, error) {
	return l.outInt(fnFuncGetAttribute, uintptr(a), uintptr(f))
}

// FuncSetAttribute changes a property of a kernel.
func (l *Library) FuncSetAttribute(f Func, a FuncAttribute, value int) error {
	return l.call(fnFuncSetAttribute, uintptr(f), uintptr(a), uintptr(value))
}
