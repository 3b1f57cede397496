package program

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tgc/ir"
)

// The text form. One instruction a line, blocks in braces, indented:
//
//	program dot
//	param %0:*f32 buffer slot 0 name "x" align 64 bytes 4096 read
//	param %1:*f32 buffer slot 1 name "y" align 64 bytes 4 write
//	grid 1
//	%2:i64 = const 0
//	%3:f32x16 = const 0
//	gridloop %4:i64 {
//	  %9:f32x16 = for %2 %7 %8 %3 do %5:i64 %6:f32x16 {
//	    %10:*f32 = ptradd %0 %5
//	    %11:f32x16 = load %10 align 64
//	    %12:f32x16 = fma %11 %11 %6
//	    yield %12
//	  }
//	  %13:f32 = fold add %9
//	  store %1 %13 align 4
//	}
//
// An Alu is written with the name of its ir.Op. Parse reads what Print writes;
// `#` starts a comment.

func floatBits(v float64) int64 { return int64(math.Float64bits(v)) }

var opNames = [...]string{
	Alu: "alu", Const: "const", ConstLanes: "constlanes", Broadcast: "broadcast",
	Extract: "extract", Shuffle: "shuffle", Concat: "concat", FoldLanes: "fold",
	PtrAdd: "ptradd", Load: "load", Store: "store", Gather: "gather", Scatter: "scatter",
	Guarded: "guarded", Prefetch: "prefetch", Alloca: "alloca",
	For: "for", If: "if", Yield: "yield", GridLoop: "gridloop",
	ThreadIndex: "threadindex", Barrier: "barrier", ShuffleLane: "shufflelane",
	SyncWarp: "syncwarp", WaitGrid: "waitgrid", LaunchNext: "launchnext", Fence: "fence",
	PeerPtr: "peerptr", ClusterArrive: "clusterarrive", ClusterWait: "clusterwait",
	Atomic: "atomic", Mma: "mma", GroupMma: "groupmma", CopyAsync: "copyasync", WaitCopies: "waitcopies", TileDot: "tiledot",
	Dot4: "dot4",
}

var cacheNames = [...]string{CacheDefault: "", CacheConst: "const", CacheStream: "stream", CacheL2: "l2", CacheWide: "wide"}

// String is the policy's name in the text form; empty for the default.
func (c Cache) String() string {
	if int(c) < len(cacheNames) {
		return cacheNames[c]
	}
	return fmt.Sprintf("cache(%d)", uint8(c))
}

// LoadPolicies are the names of the policies of loads but the default, from 1.
func LoadPolicies() []string { return slices.Clone(cacheNames[1:]) }

var opByName = func() map[string]Op {
	m := make(map[string]Op)
	for op, name := range opNames {
		if Op(op) != Alu {
			m[name] = Op(op)
		}
	}
	return m
}()

// String is the op's name in the text form.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

var spaceNames = [...]string{GlobalSpace: "", LocalSpace: "local", SharedSpace: "shared", ConstSpace: "const", PeerSpace: "peer"}

// String is the type in the text form: f32, f32x16, *f32, *f32@local.
func (t Type) String() string {
	s := t.Elem.String()
	if t.Ptr {
		s = "*" + s
		if int(t.Space) < len(spaceNames) && spaceNames[t.Space] != "" {
			s += "@" + spaceNames[t.Space]
		}
		return s
	}
	if t.Lanes != 1 {
		s += "x" + strconv.Itoa(t.Lanes)
	}
	return s
}

// String is the value in the text form.
func (v *Value) String() string {
	if v == nil {
		return "%nil"
	}
	return "%" + strconv.Itoa(v.ID)
}

// Print is the text form of a program.
func Print(p *Program) string { return new(writer).program(p) }

// PrintOrigins is Print with comments that say for which nodes of a traced graph the
// instructions were made (see ir.Arena.Trace), if that is known.
func PrintOrigins(p *Program) string { return (&writer{origins: true}).program(p) }

func (w *writer) program(p *Program) string {
	w.line("program " + strconv.Quote(p.Name))
	for i := range p.Params {
		w.param(&p.Params[i])
	}
	w.sizes("grid", p.Grid)
	w.sizes("block", p.Block)
	if p.Cluster > 1 {
		w.sizes("cluster", []int64{p.Cluster})
	}
	if options := p.Options.String(); options != "" {
		w.line("options " + options)
	}
	if p.Body != nil {
		w.block(p.Body)
	}
	return w.String()
}

// PrintInstr is the first line of an instruction, for messages.
func PrintInstr(i *Instr) string {
	w := &writer{}
	w.head(i)
	return strings.TrimSuffix(w.String(), " {")
}

type writer struct {
	strings.Builder
	depth   int
	origins bool
	digits  []byte // of the number being written
}

func (w *writer) line(s string) {
	w.indent()
	w.WriteString(s)
	w.WriteByte('\n')
}

func (w *writer) indent() {
	for range w.depth {
		w.WriteString("  ")
	}
}

func (w *writer) sizes(name string, sizes []int64) {
	if len(sizes) == 0 {
		return
	}
	s := name
	for _, v := range sizes {
		s += " " + strconv.FormatInt(v, 10)
	}
	w.line(s)
}

func (w *writer) param(p *Param) {
	s := "param " + typed(p.Value)
	switch p.Kind {
	case ParamBuffer:
		s += fmt.Sprintf(" buffer slot %d name %q align %d bytes %d", p.Slot, p.Name, p.Align, p.Bytes)
	case ParamVar:
		s += fmt.Sprintf(" var name %q", p.Name)
		if p.Lo != 0 || p.Hi != 0 {
			s += fmt.Sprintf(" lo %d hi %d", p.Lo, p.Hi)
		}
	case ParamTable:
		s += fmt.Sprintf(" table align %d data %q", p.Align, hex.EncodeToString([]byte(p.Table)))
	}
	if p.Kind == ParamBuffer && p.Read {
		s += " read"
	}
	if p.Kind == ParamBuffer && p.Write {
		s += " write"
	}
	if p.Constant {
		s += " constant"
	}
	if p.Early {
		s += " early"
	}
	if p.Cache != CacheDefault {
		s += " cache " + p.Cache.String()
	}
	if w.origins && p.Value.Origin != 0 {
		s += ir.OriginMark + strconv.Itoa(p.Value.Origin)
	}
	w.line(s)
}

func typed(v *Value) string {
	if v == nil {
		return "%nil"
	}
	return v.String() + ":" + v.Type.String()
}

func (w *writer) typed(v *Value) {
	w.value(v)
	if v == nil {
		return
	}
	w.WriteByte(':')
	w.WriteString(v.Type.String())
}

func (w *writer) value(v *Value) {
	if v == nil {
		w.WriteString(v.String())
		return
	}
	w.number("%", v.ID)
}

func (w *writer) number(before string, n int) {
	w.WriteString(before)
	w.digits = strconv.AppendInt(w.digits[:0], int64(n), 10)
	w.Write(w.digits)
}

func (w *writer) block(b *Block) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		w.indent()
		w.head(in)
		w.origin(in)
		w.WriteByte('\n')
		if in.Body == nil {
			continue
		}
		w.nested(in.Body)
		if in.Op == If {
			w.line("} else {")
			if in.Else != nil {
				w.nested(in.Else)
			}
		}
		w.line("}")
	}
}

func (w *writer) nested(b *Block) {
	w.depth++
	w.block(b)
	w.depth--
}

// origin says in a comment for which node of a traced graph the instruction was made.
func (w *writer) origin(i *Instr) {
	v := i.Result
	if v == nil && len(i.Results) > 0 {
		v = i.Results[0]
	}
	if w.origins && v != nil && v.Origin != 0 && i.Op != Const && i.Op != ConstLanes {
		w.number(ir.OriginMark, v.Origin)
	}
}

// head writes the instruction without its blocks.
func (w *writer) head(i *Instr) {
	w.results(i)
	if i.Op == Alu {
		w.WriteString(i.Ir.String())
	} else {
		w.WriteString(i.Op.String())
	}
	if i.Op == FoldLanes || i.Op == Atomic {
		w.WriteString(" " + i.Ir.String())
	}
	for _, a := range i.Args {
		w.WriteByte(' ')
		w.value(a)
	}
	switch i.Op {
	case Const:
		w.WriteString(" " + w.literal(i, i.Int, i.Float))
	case ConstLanes:
		for _, v := range i.Ints {
			w.WriteString(" " + w.literal(i, v, 0))
		}
		for _, v := range i.Floats {
			w.WriteString(" " + w.literal(i, 0, v))
		}
	case Extract, ThreadIndex:
		w.number(" lane ", i.Lane)
	case Shuffle:
		w.WriteString(" mask")
		for _, m := range i.Mask {
			w.number(" ", m)
		}
	case Alloca:
		fmt.Fprintf(w, " count %d align %d", i.Count, i.Align)
	case Load, Store, Gather, Scatter, Guarded, Atomic:
		w.number(" align ", i.Align)
		if i.Cache != CacheDefault {
			w.WriteString(" cache " + i.Cache.String())
		}
	case Barrier:
		if i.Int > 0 {
			w.number(" threads ", int(i.Int))
		}
	case Prefetch:
		if i.Int > 0 {
			w.number(" level ", int(i.Int))
		}
	case TileDot:
		w.number(" rows ", i.Tile.Rows)
		w.number(" words ", i.Tile.Words)
		w.number(" strides ", int(i.Tile.StrideA))
		w.number(" ", int(i.Tile.StrideB))
	case CopyAsync:
		w.number(" bytes ", int(i.Int))
	case For:
		w.WriteString(" do")
		w.blockArgs(i.Body)
		w.WriteString(" {")
	case GridLoop:
		w.blockArgs(i.Body)
		w.WriteString(" {")
	case If:
		w.WriteString(" {")
	}
}

func (w *writer) results(i *Instr) {
	results := i.Results
	if i.Result != nil {
		results = []*Value{i.Result}
	}
	for k, r := range results {
		if k > 0 {
			w.WriteByte(' ')
		}
		w.typed(r)
	}
	if len(results) > 0 {
		w.WriteString(" = ")
	}
}

func (w *writer) blockArgs(b *Block) {
	if b == nil {
		return
	}
	for _, a := range b.Args {
		w.WriteByte(' ')
		w.typed(a)
	}
}

func (w *writer) literal(i *Instr, n int64, f float64) string {
	if i.Result == nil || !i.Result.Type.Elem.IsFloat() {
		if i.Result != nil && i.Result.Type.Elem == ir.U64 {
			return strconv.FormatUint(uint64(n), 10)
		}
		return strconv.FormatInt(n, 10)
	}
	if math.IsNaN(f) {
		return "nan"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
