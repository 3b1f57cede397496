package schedule_test

import (
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/schedule/state"
)

// What a kernel may read before the kernel before has ended is written by no launch up to
// its own, the points around which it reads apart (those are in its own launch). A cache
// that fits is read so; one that does not is read after the product has stored its row.
func TestEarlyReads(t *testing.T) {
	for _, c := range []struct {
		name   string
		elems  int64
		around int // buffers that are read around what their launch writes
	}{
		{"llama", 1 << 20, 2}, {"llama", 1, 0}, {"llama batch", 1 << 20, 2}, {"llama prefill", 1 << 20, 0},
		{"qwen2", 1 << 20, 2}, {"qwen3", 1 << 20, 2}, {"olmoe", 1 << 20, -1}, {"gpt2", 1 << 20, -1}, {"llama whole", 1 << 20, 4},
	} {
		m := zooModel(c.name)
		r := modelRig(t, m, 3)
		opt := schedule.DefaultOptions()
		opt.Off = opt.Off.Without(state.ForwardStores)
		opt.Profile.EarlyElems = c.elems
		s := r.plan(opt)
		around, marks := earlyReads(t, c.name, s)
		if c.around >= 0 && around != c.around || marks == 0 {
			t.Errorf("%s: %d buffers of %d marked ones are read around what is written, want %d\n%s", c.name, around, marks, c.around, s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
		r.reverse = true // the store first
		r.check(s, interp.KernelOptions{}, 2e-5)
		opt.Profile.EarlyElems = 0
		if _, marks := earlyReads(t, c.name, r.plan(opt)); marks != 0 {
			t.Errorf("%s: %d buffers are marked for a target that starts no kernel early", c.name, marks)
		}
	}
}

// earlyReads counts the marked buffers of all kernels, and those that the launch writes.
func earlyReads(t *testing.T, name string, s *schedule.Schedule) (around, marks int) {
	t.Helper()
	before := make(map[int]bool) // written by the launches before
	for _, l := range s.Launches {
		written := make(map[int]bool)
		for _, k := range l.Kernels {
			for _, u := range ir.Toposort(k.AST) {
				if u.Op == ir.OpStore {
					p := u.Src[0].Arg.(ir.ParamArg)
					if written[k.Args[p.Slot]] = true; p.Constant {
						t.Errorf("%s: %s writes slot %d, which is marked", name, k.Name, p.Slot)
					}
				}
			}
		}
		for _, k := range l.Kernels {
			for _, u := range ir.Toposort(k.AST) {
				p, ok := u.Arg.(ir.ParamArg)
				if u.Op != ir.OpParam || !ok || !p.Constant {
					continue
				}
				marks++
				if before[k.Args[p.Slot]] {
					t.Errorf("%s: %s reads slot %d early, which a launch before it writes", name, k.Name, p.Slot)
				}
				if written[k.Args[p.Slot]] {
					around++
				}
			}
		}
		for b := range written {
			before[b] = true
		}
	}
	return around, marks
}
