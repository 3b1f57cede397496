package llvmc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"tgc/internal/childprocess"
)

// childEnv marks a compiler child.
const childEnv = "TGC_LLVMC_CHILD"

// A process that was started as a compiler child becomes one here, before main: every
// program that can start a child has this package. Packages that are initialised later,
// the program's own among them, are not.
func init() {
	if os.Getenv(childEnv) == "" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "llvmc child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve is the life of a child: settings, hello, then requests until the
// parent closes the pipe.
func serve() error {
	out, err := childprocess.ClaimStdout()
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	var s settings
	if err := readJSON(in, &s); err != nil {
		return err
	}
	lib, m, greeting := prepare(s)
	if err := writeJSON(out, greeting); err != nil || greeting.Error != "" {
		return err
	}
	fileType := int32(llvmObjectFile)
	if s.Assembly {
		fileType = llvmAssemblyFile
	}
	for ir := range requests(in) {
		object, err := lib.compile(m, ir, lib.pipeline(s.Passes), fileType)
		if err != nil {
			err = writeFrame(out, []byte{replyError}, []byte(err.Error()))
		} else {
			err = writeFrame(out, []byte{replyObject}, object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare loads LLVM and makes the target machine; failures travel in the
// hello frame.
func prepare(s settings) (*libLLVM, *machine, hello) {
	lib, err := openLLVM()
	if err != nil {
		return nil, nil, hello{Error: err.Error(), NoLLVM: errors.Is(err, ErrNoLLVM)}
	}
	m, err := lib.newMachine(s)
	if err != nil {
		return nil, nil, hello{Error: err.Error()}
	}
	host := Host{
		Version:  lib.version(),
		Major:    int(lib.major),
		CPU:      lib.takeMessage(lib.hostCPU()),
		Features: lib.takeMessage(lib.hostFeatures()),
	}
	return lib, m, hello{Host: host, Triple: m.triple, CPU: m.cpu, Features: m.features}
}

// requests reads frames beside the compiles, so that a parent that is gone
// ends the child at once and not after the compile that hangs.
func requests(in io.Reader) <-chan []byte {
	frames := make(chan []byte)
	go func() {
		for {
			frame, err := readFrame(in)
			if err != nil {
				os.Exit(0) // end of file: the parent has closed or died
			}
			frames <- frame
		}
	}()
	return frames
}
