// Package gputest runs rendered kernels on the PTX interpreter, for the tests of
// renderers.
package gputest

import (
	"context"
	"encoding/binary"

	"tgc/internal/ptxemu"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Run runs the PTX of a kernel, made by a renderer or a compiler. Every buffer
// lies at its least alignment, its end where the allocation ends; buffers are
// by slot, and those that the program writes are changed. seed chooses the
// order of threads.
func Run(p *program.Program, k *gpu.Kernel, ptx string, buffers map[int][]byte, vars map[string]int64, seed uint64) error {
	m, err := ptxemu.Parse(ptx)
	if err != nil {
		return err
	}
	return RunModule(p, k, m, buffers, vars, seed)
}

// FirstBlocks is a kernel of at most n blocks, for kernels too large to be
// interpreted whole.
func FirstBlocks(k *gpu.Kernel, n int64) *gpu.Kernel {
	out := *k
	out.Blocks = min(out.Blocks, n)
	return &out
}

// RunModule is Run of a module that was parsed before.
func RunModule(p *program.Program, k *gpu.Kernel, m *ptxemu.Module, buffers map[int][]byte, vars map[string]int64, seed uint64) error {
	entry, err := m.Kernel(k.Entry)
	if err != nil {
		return err
	}
	memory := ptxemu.NewMemory()
	launch := ptxemu.Launch{Grid: [3]int{int(k.Blocks), 1, 1}, Block: k.Block, Memory: memory, Seed: seed}
	if k.Dynamic {
		launch.Shared = k.Shared
	}
	addresses := make(map[int]uint64)
	for _, i := range k.Params {
		param := &p.Params[i]
		value := uint64(vars[param.Name])
		if param.Kind == program.ParamBuffer {
			data := buffers[param.Slot]
			if value, err = memory.Alloc(int64(len(data)), param.Align); err != nil {
				return err
			}
			if err := memory.Write(value, data); err != nil {
				return err
			}
			if err := memory.ReadOnly(value, !param.Write); err != nil {
				return err
			}
			addresses[param.Slot] = value
		}
		launch.Params = append(launch.Params, binary.LittleEndian.AppendUint64(nil, value))
	}
	if err := entry.Launch(context.Background(), launch); err != nil {
		return err
	}
	for slot, address := range addresses {
		if err := memory.Read(address, buffers[slot]); err != nil {
			return err
		}
	}
	return nil
}
