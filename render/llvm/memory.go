package llvm

import (
	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// Memory instructions. Alignments are those that the program proves.

func (r *renderer) memory(in *program.Instr) {
	switch in.Op {
	case program.PtrAdd:
		elem := memoryType(in.Result.Type.Elem)
		r.set(in, r.pointerAdd(r.at, elem, r.value(in.Args[0]), r.value(in.Args[1])))
	case program.Load:
		r.set(in, r.load(r.value(in.Args[0]), in.Result.Type, in.Align))
	case program.Store:
		store := r.store(r.value(in.Args[0]), r.value(in.Args[1]), in.Args[1].Type, in.Align)
		if in.Cache == program.CacheStream && r.passesCaches(in) {
			r.pastCaches(store)
		}
	case program.Gather:
		r.set(in, r.gather(in))
	case program.Scatter:
		r.scatter(in)
	case program.Guarded:
		r.set(in, r.guarded(in))
	case program.Prefetch:
		p := r.bitcast(r.value(in.Args[0]), types.I8Ptr)
		locality := int64(3) // in all levels
		switch in.Int {
		case program.FirstLevelAlone:
			locality = 0
		case program.SecondLevel:
			locality = 2
		}
		// read, where to keep it, data
		r.intrinsic("llvm.prefetch.p0i8", types.Void, p, intOf(types.I32, 0), intOf(types.I32, locality), intOf(types.I32, 1))
	case program.Alloca:
		r.alloca(in)
	}
}

// alloca reserves stack in the entry block, so that a loop does not grow it.
func (r *renderer) alloca(in *program.Instr) {
	a := llir.NewAlloca(memoryType(in.Result.Type.Elem))
	a.NElems = intOf(types.I64, in.Count)
	a.Align = llir.Align(in.Align)
	r.entry.Insts = append(r.entry.Insts, a)
	r.set(in, a)
}

func (r *renderer) load(p value.Value, t program.Type, align int) value.Value {
	memory := vectorOf(memoryType(t.Elem), t.Lanes)
	in := r.at.NewLoad(memory, r.bitcast(p, types.NewPointer(memory)))
	in.Align = llir.Align(align)
	if t.Elem != ir.Bool {
		return in
	}
	return r.at.NewICmp(enum.IPredNE, in, intOf(memory, 0))
}

// passesCaches reports a store that a CPU can make without its caches: of whole
// vectors, aligned to them. Others would become one store a word.
func (r *renderer) passesCaches(in *program.Instr) bool {
	if r.desc == nil || in.Args[1].Type.Elem == ir.Bool {
		return false
	}
	bytes := in.Args[1].Type.Lanes * in.Args[1].Type.Elem.Size()
	return r.desc.VectorBytes > 0 && bytes%r.desc.VectorBytes == 0 && in.Align%r.desc.VectorBytes == 0
}

// pastCaches marks a store as nontemporal. Such stores are not ordered like others:
// function ends with a fence then.
func (r *renderer) pastCaches(store *llir.InstStore) {
	if r.nontemporal == nil {
		r.nontemporal = &metadata.Tuple{MetadataID: 0, Fields: []metadata.Field{intOf(types.I32, 1).(constant.Constant)}}
		r.module.MetadataDefs = append(r.module.MetadataDefs, r.nontemporal)
	}
	store.Metadata = append(store.Metadata, &metadata.Attachment{Name: "nontemporal", Node: r.nontemporal})
}

func (r *renderer) store(p, v value.Value, t program.Type, align int) *llir.InstStore {
	memory := vectorOf(memoryType(t.Elem), t.Lanes)
	if t.Elem == ir.Bool {
		v = r.at.NewZExt(v, memory)
	}
	in := r.at.NewStore(v, r.bitcast(p, types.NewPointer(memory)))
	in.Align = llir.Align(align)
	return in
}

func (r *renderer) scatter(in *program.Instr) {
	p, offsets, v := r.value(in.Args[0]), r.value(in.Args[1]), r.value(in.Args[2])
	elem := in.Args[2].Type.Elem
	for lane := range in.Args[2].Type.Lanes {
		address := r.pointerAdd(r.at, memoryType(elem), p, r.lane(offsets, lane))
		r.store(address, r.lane(v, lane), program.Scalar(elem), in.Align)
	}
}

// masked loads the lanes whose guards hold; an address of another lane is not touched.
func (r *renderer) masked(in *program.Instr, other value.Value) value.Value {
	t := in.Result.Type
	memory := vectorOf(memoryType(t.Elem), t.Lanes)
	if t.Elem == ir.Bool {
		other = r.at.NewZExt(other, memory)
	}
	p := r.bitcast(r.value(in.Args[1]), types.NewPointer(memory))
	name := "llvm.masked.load." + suffix(memory) + "." + suffix(p.Type())
	v := r.intrinsic(name, memory, p, intOf(types.I32, int64(in.Align)), r.value(in.Args[0]), other)
	if t.Elem == ir.Bool {
		return r.at.NewICmp(enum.IPredNE, v, intOf(memory, 0))
	}
	return v
}

// guarded branches around the load.
func (r *renderer) guarded(in *program.Instr) value.Value {
	other := r.value(in.Args[2])
	if in.Args[0].Type.Lanes > 1 {
		return r.masked(in, other)
	}
	before := r.at
	load := r.newBlock("guarded")
	join := r.newBlock("join")
	before.NewCondBr(r.value(in.Args[0]), load, join)
	r.at = load
	v := r.load(r.value(in.Args[1]), in.Result.Type, in.Align)
	load.NewBr(join)
	r.at = join
	return join.NewPhi(llir.NewIncoming(other, before), llir.NewIncoming(v, load))
}
