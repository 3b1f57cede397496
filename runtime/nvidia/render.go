package nvidia

import (
	"fmt"

	"tgc/ir/program"
	cudac "tgc/render/cuda"
	kernels "tgc/render/gpu"
	"tgc/render/ptx"
	"tgc/target"
)

// Rendered is a program as source and how to launch it.
type Rendered struct {
	Text  string
	CUDA  bool   // the text is CUDA C, else PTX
	Entry string // name of the function
	// Params are indices into the program's Params, one parameter of 8 bytes
	// each, in this order: addresses of buffers and values of VARs. Tables are
	// part of the text.
	Params []int
	Blocks int64  // on the grid's x axis
	Block  [3]int // threads in x, y, z
	Shared int    // bytes of shared memory
	// Carveout is how many KB of a multiprocessor's first cache are shared memory; 0: the driver chooses.
	Carveout int
	// Dynamic says that Shared is given at launch, else the text reserves it.
	Dynamic bool
	// WaitsGrid says that the kernel waits for its predecessor itself before it
	// touches what that one writes.
	WaitsGrid bool
}

// Renderer renders a program for a GPU.
type Renderer func(p *program.Program, desc *target.Desc) (*Rendered, error)

// RenderPTX is the Renderer of package render/ptx.
func RenderPTX(p *program.Program, desc *target.Desc) (*Rendered, error) {
	return render(p, desc, ptx.Render)
}

// RenderCUDA is the Renderer of package render/cuda. Its text needs libnvrtc.
func RenderCUDA(p *program.Program, desc *target.Desc) (*Rendered, error) {
	r, err := render(p, desc, cudac.Render)
	if err != nil {
		return nil, err
	}
	r.CUDA = true
	return r, nil
}

func render(p *program.Program, desc *target.Desc, by func(*program.Program, *target.Desc, kernels.Options) (*kernels.Kernel, error)) (*Rendered, error) {
	k, err := by(p, desc, kernels.OptionsFor(p))
	if err != nil {
		return nil, err
	}
	return &Rendered{
		Text: k.Text, Entry: k.Entry, Params: k.Params, Blocks: k.Blocks, Block: k.Block,
		Shared: k.Shared, Dynamic: k.Dynamic, WaitsGrid: k.WaitsGrid, Carveout: k.Carveout,
	}, nil
}

// maxBlocks is the hardware's limit of a grid's x axis.
const maxBlocks = 1<<31 - 1

// Shape is how a kernel is launched.
type Shape struct {
	Grid   [3]uint32 // blocks in x, y, z
	Block  [3]uint32 // threads in x, y, z
	Shared uint32    // bytes of dynamic shared memory
}

// Shape is the shape of a rendered kernel.
func (r *Rendered) Shape() (Shape, error) {
	if r.Blocks < 0 || r.Blocks > maxBlocks {
		return Shape{}, fmt.Errorf("%d blocks, want at most %d", r.Blocks, maxBlocks)
	}
	s := Shape{Grid: [3]uint32{uint32(r.Blocks), 1, 1}}
	for axis, n := range r.Block {
		s.Block[axis] = uint32(max(n, 1))
	}
	if r.Dynamic {
		s.Shared = uint32(r.Shared)
	}
	return s, nil
}

// Threads is the number of threads of a block.
func (r *Rendered) Threads() int { return max(r.Block[0], 1) * max(r.Block[1], 1) * max(r.Block[2], 1) }
