package emulator

import (
	"context"
	"encoding/binary"
	"slices"

	"tgc/internal/ptxemu"
	"tgc/runtime/cuda/driver"
)

// launchable is a checked launch.
type launchable struct {
	kernel *ptxemu.Kernel
	launch ptxemu.Launch
}

// prepare checks a launch and copies its parameters, as the driver does.
func (c *gpuContext) prepare(call string, k *driver.Kernel) (*launchable, error) {
	f := c.functions[k.Func]
	switch {
	case f == nil:
		return nil, refuse(call, driver.InvalidHandle, "no such function")
	case int(k.Shared) > f.dynamic:
		return nil, refuse(call, driver.InvalidValue, "kernel %s: %d bytes of dynamic shared memory, want at most %d", f.kernel.Name, k.Shared, f.dynamic)
	}
	l := &launchable{kernel: f.kernel, launch: ptxemu.Launch{Shared: int(k.Shared), Memory: c.memory}}
	for axis := range 3 {
		l.launch.Grid[axis], l.launch.Block[axis] = int(k.Grid[axis]), int(k.Block[axis])
	}
	for _, p := range k.Params {
		l.launch.Params = append(l.launch.Params, binary.LittleEndian.AppendUint64(nil, p))
	}
	if err := f.kernel.Check(l.launch); err != nil {
		return nil, refuse(call, driver.InvalidValue, "%v", err)
	}
	return l, nil
}

// start begins a launch; no block has run yet.
func (c *gpuContext) start(l *launchable, change func(*ptxemu.Launch)) (*ptxemu.Grid, error) {
	launch := l.launch
	launch.Seed = c.random.Uint64()
	if change != nil {
		change(&launch)
	}
	return l.kernel.Start(launch)
}

// Launch queues a kernel.
func (d *Driver) Launch(k *driver.Kernel, s driver.Stream) error {
	return d.in("cuLaunchKernel", func(c *gpuContext) error {
		l, err := c.prepare("cuLaunchKernel", k)
		if err != nil {
			return err
		}
		return c.queue("cuLaunchKernel", s, func(ctx context.Context) error {
			g, err := c.start(l, nil)
			if err != nil {
				return err
			}
			return g.Run(ctx)
		})
	})
}

// clone copies a launch so that the instance's parameters may change.
func (l *launchable) clone() *launchable {
	out := *l
	out.launch.Params = slices.Clone(l.launch.Params)
	return &out
}
