package llvmc

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"tgc/internal/sharedlibrary"
)

// libLLVM is the part of LLVM's C API that a compile needs. Handles are
// opaque addresses. Only the child process has one.
type libLLVM struct {
	major, minor, patch uint32

	contextCreate  func() uintptr
	contextDispose func(ctx uintptr)
	bufferCopy     func(data *byte, size uintptr, name string) uintptr
	bufferStart    func(buf uintptr) unsafe.Pointer
	bufferSize     func(buf uintptr) uintptr
	bufferDispose  func(buf uintptr)
	parseIR        func(ctx, buf uintptr, module, message *uintptr) int32
	moduleDispose  func(module uintptr)
	verifyModule   func(module uintptr, action int32, message *uintptr) int32
	setTriple      func(module uintptr, triple string)
	setLayout      func(module, layout uintptr)

	messageDispose func(message uintptr)
	errorMessage   func(err uintptr) uintptr
	errorDispose   func(message uintptr)

	defaultTriple    func() uintptr
	hostCPU          func() uintptr
	hostFeatures     func() uintptr
	targetFromTriple func(triple string, target, message *uintptr) int32
	machineCreate    func(target uintptr, triple, cpu, features string, level, reloc, model int32) uintptr
	machineDispose   func(machine uintptr)
	machineLayout    func(machine uintptr) uintptr
	layoutDispose    func(layout uintptr)
	emit             func(machine, module uintptr, fileType int32, message, buf *uintptr) int32

	passOptionsCreate  func() uintptr
	passOptionsDispose func(options uintptr)
	runPasses          func(module uintptr, passes string, machine, options uintptr) uintptr
}

// Values of LLVM's C enumerations.
const (
	llvmReturnStatusAction = 2 // LLVMReturnStatusAction: verifier reports, does not abort
	llvmRelocPIC           = 2 // LLVMRelocPIC
	llvmCodeModelSmall     = 3 // LLVMCodeModelSmall
	llvmAssemblyFile       = 0 // LLVMAssemblyFile
	llvmObjectFile         = 1 // LLVMObjectFile
)

// initialisers are called for each target this libLLVM was built with.
var (
	targets      = []string{"X86", "AArch64"}
	initialisers = []string{"TargetInfo", "Target", "TargetMC", "AsmParser", "AsmPrinter"}
)

// openLLVM finds, binds and initialises libLLVM.
func openLLVM() (*libLLVM, error) {
	handle, name, err := openLibrary()
	if err != nil {
		return nil, err
	}
	l := &libLLVM{}
	for symbol, fn := range map[string]any{
		"LLVMContextCreate":                         &l.contextCreate,
		"LLVMContextDispose":                        &l.contextDispose,
		"LLVMCreateMemoryBufferWithMemoryRangeCopy": &l.bufferCopy,
		"LLVMGetBufferStart":                        &l.bufferStart,
		"LLVMGetBufferSize":                         &l.bufferSize,
		"LLVMDisposeMemoryBuffer":                   &l.bufferDispose,
		"LLVMParseIRInContext":                      &l.parseIR,
		"LLVMDisposeModule":                         &l.moduleDispose,
		"LLVMVerifyModule":                          &l.verifyModule,
		"LLVMSetTarget":                             &l.setTriple,
		"LLVMSetModuleDataLayout":                   &l.setLayout,
		"LLVMDisposeMessage":                        &l.messageDispose,
		"LLVMGetErrorMessage":                       &l.errorMessage,
		"LLVMDisposeErrorMessage":                   &l.errorDispose,
		"LLVMGetDefaultTargetTriple":                &l.defaultTriple,
		"LLVMGetHostCPUName":                        &l.hostCPU,
		"LLVMGetHostCPUFeatures":                    &l.hostFeatures,
		"LLVMGetTargetFromTriple":                   &l.targetFromTriple,
		"LLVMCreateTargetMachine":                   &l.machineCreate,
		"LLVMDisposeTargetMachine":                  &l.machineDispose,
		"LLVMCreateTargetDataLayout":                &l.machineLayout,
		"LLVMDisposeTargetData":                     &l.layoutDispose,
		"LLVMTargetMachineEmitToMemoryBuffer":       &l.emit,
		"LLVMCreatePassBuilderOptions":              &l.passOptionsCreate,
		"LLVMDisposePassBuilderOptions":             &l.passOptionsDispose,
		"LLVMRunPasses":                             &l.runPasses,
	} {
		addr, err := sharedlibrary.Find(handle, symbol)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has no %s, want LLVM %d or newer", ErrNoLLVM, name, symbol, oldestVersion)
		}
		purego.RegisterFunc(fn, addr)
	}
	if err := l.readVersion(handle, name); err != nil {
		return nil, err
	}
	setArguments(handle)
	for _, target := range targets {
		for _, part := range initialisers {
			if addr, err := sharedlibrary.Find(handle, "LLVMInitialize"+target+part); err == nil {
				purego.SyscallN(addr)
			}
		}
	}
	return l, nil
}

// arguments are LLVM's own, as its tools take them. Its schedulers look for what may be in the way of each access to
// memory among all others of a block, of which they remember 1,000: of attention with 128 elements of a result that takes
// 2.3 s of 2.5, with 200 0.3 s, and code runs as fast (docs/bench/attention-zen4.txt).
var arguments = []string{"tgc", "-dag-maps-huge-region=200"}

// setArguments passes arguments on, once for the process.
func setArguments(handle uintptr) {
	addr, err := sharedlibrary.Find(handle, "LLVMParseCommandLineOptions")
	if err != nil {
		return
	}
	list := make([]*byte, len(arguments))
	for i, s := range arguments {
		list[i] = &append([]byte(s), 0)[0]
	}
	var parse func(n int32, list **byte, overview *byte)
	purego.RegisterFunc(&parse, addr)
	parse(int32(len(list)), &list[0], nil)
	runtime.KeepAlive(list)
}

// readVersion sets the version and rejects one that is too old.
// LLVMGetVersion exists from 16 on; 15 is the first release that has
// LLVMContextSetOpaquePointers, which 17 dropped.
func (l *libLLVM) readVersion(handle uintptr, name string) error {
	if addr, err := sharedlibrary.Find(handle, "LLVMGetVersion"); err == nil {
		var getVersion func(major, minor, patch *uint32)
		purego.RegisterFunc(&getVersion, addr)
		getVersion(&l.major, &l.minor, &l.patch)
	} else if _, err := sharedlibrary.Find(handle, "LLVMContextSetOpaquePointers"); err == nil {
		l.major = 15
	}
	if l.major < oldestVersion {
		return fmt.Errorf("%w: %s is LLVM %d, want %d or newer", ErrNoLLVM, name, l.major, oldestVersion)
	}
	return nil
}

func (l *libLLVM) version() string { return fmt.Sprintf("%d.%d.%d", l.major, l.minor, l.patch) }

// takeMessage copies and frees a message that LLVM allocated.
func (l *libLLVM) takeMessage(message uintptr) string {
	if message == 0 {
		return ""
	}
	defer l.messageDispose(message)
	return cString(message)
}

// takeError copies and frees an LLVM error object.
func (l *libLLVM) takeError(err uintptr) error {
	message := l.errorMessage(err) // frees err
	defer l.errorDispose(message)
	return errors.New(cString(message))
}

// machine is a target machine with its triple.
type machine struct {
	handle                uintptr
	triple, cpu, features string
}

// newMachine makes a target machine; empty settings mean the host.
func (l *libLLVM) newMachine(s settings) (*machine, error) {
	triple, features := systems[runtime.GOOS].hostTarget(runtime.GOARCH, l.takeMessage(l.defaultTriple()), l.takeMessage(l.hostFeatures()))
	if s.Triple == "" {
		s.Triple = triple
	}
	if s.CPU == "" {
		s.CPU = l.takeMessage(l.hostCPU())
	}
	if s.Features == "" {
		s.Features = features
	} else if s.Features == NoFeatures {
		s.Features = ""
	}
	var target, message uintptr
	if l.targetFromTriple(s.Triple, &target, &message) != 0 {
		return nil, fmt.Errorf("target %s: %s", s.Triple, l.takeMessage(message))
	}
	handle := l.machineCreate(target, s.Triple, s.CPU, s.Features, int32(s.Level), llvmRelocPIC, llvmCodeModelSmall)
	if handle == 0 {
		return nil, fmt.Errorf("target %s: LLVM makes no machine for CPU %s", s.Triple, s.CPU)
	}
	return &machine{handle, s.Triple, s.CPU, s.Features}, nil
}

// compile turns IR text into a file for machine m: an object or assembler text.
func (l *libLLVM) compile(m *machine, ir []byte, passes string, fileType int32) ([]byte, error) {
	if len(ir) == 0 {
		return nil, errors.New("empty module")
	}
	ctx := l.contextCreate()
	defer l.contextDispose(ctx)
	var module, message uintptr
	if l.parseIR(ctx, l.bufferCopy(&ir[0], uintptr(len(ir)), "kernel.ll"), &module, &message) != 0 {
		return nil, fmt.Errorf("parse: %s", l.takeMessage(message))
	}
	defer l.moduleDispose(module)
	l.setTriple(module, m.triple)
	layout := l.machineLayout(m.handle)
	defer l.layoutDispose(layout)
	l.setLayout(module, layout)

	failed := l.verifyModule(module, llvmReturnStatusAction, &message) != 0
	if text := l.takeMessage(message); failed {
		return nil, fmt.Errorf("verify: %s", text)
	}
	if passes != "" {
		options := l.passOptionsCreate()
		defer l.passOptionsDispose(options)
		if err := l.runPasses(module, passes, m.handle, options); err != 0 {
			return nil, fmt.Errorf("passes %q: %w", passes, l.takeError(err))
		}
	}
	var buf uintptr
	if l.emit(m.handle, module, fileType, &message, &buf) != 0 {
		return nil, fmt.Errorf("emit: %s", l.takeMessage(message))
	}
	defer l.bufferDispose(buf)
	return append([]byte(nil), unsafe.Slice((*byte)(l.bufferStart(buf)), l.bufferSize(buf))...), nil
}

// pipeline adapts a pass pipeline to the release. From 18 on instcombine ends
// the process when one more round would have changed something, unless told
// not to look; the result is right either way.
func (l *libLLVM) pipeline(passes string) string {
	if l.major < 18 {
		return passes
	}
	return instCombine.ReplaceAllString(passes, "instcombine<no-verify-fixpoint>$1")
}

var instCombine = regexp.MustCompile(`\binstcombine([,)]|$)`)

// cString copies a NUL-terminated string from C memory.
func cString(addr uintptr) string {
	// The address is C memory, which the collector neither owns nor moves.
	p := *(**byte)(unsafe.Pointer(&addr))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
