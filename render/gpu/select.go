package gpu

import (
	"errors"
	"fmt"
	"math"

	"tgc/ir/program"
	"tgc/ir/program/bounds"
	"tgc/target"
)

// Selector turns the instructions of a program into those of a machine, in
// order, and has a Printer print each.
type Selector struct {
	Program *program.Program
	Desc    *target.Desc
	Options Options

	SharedBytes int64 // laid out so far, of a block
	sharedAlign int   // the most of its arrays
	LocalBytes  int64 // the same of a thread
	Waited      bool  // a WaitGrid was printed on every way to here

	print    Printer
	simplify bool // Printer.Simplify

	values   []*held
	scopes   Scopes[Operand]
	bounds   map[*program.Value]bounds.Interval
	arrays   map[*program.Value]Array // Allocas that need no memory
	sums     Sums
	consts   map[*program.Value]*program.Instr
	tables   map[*program.Value]*program.Param // by pointer
	access   map[*program.Value]*program.Param // buffers by pointer
	uniform  map[*program.Value]bool           // conditions that are equal in a block
	origin   map[*program.Value]*program.Value // of casts from u8
	bytes    map[*program.Value]*program.Value // floats -> the packed bytes that they were
	shifted  map[*program.Value]byteShift
	offsets  map[*program.Value]Offset     // of conversions of bytes
	entries  map[*program.Value]entryIndex // products that may be those of a table's index
	choices  map[*program.Value]byteChoice // by a bit test
	unread   map[*program.Value]bool       // values that only choices read, which need none
	pairs    map[*program.Value]nibbles    // looked up with the other halves of the same bytes
	defs     definitions
	bits     map[*program.Value]bitOf      // values that are one bit of another
	spreads  map[bitOf]int                 // how many of each four bits of a value are used
	dots     map[*program.Value]*lookupDot // sums of products with looked-up bytes
	dotted   map[*program.Value]bool       // look-ups that only such sums read
	signs    map[*program.Value]signDot    // sums of products with bytes that have signs apart
	owed     map[*program.Value]Operand    // what is to be taken off sums of a chain
	left     map[*program.Value]bool       // values that such sums make themselves
	chains   *dotChains
	added    map[*program.Value]*program.Value // sums that a conversion holds already
	branched map[*program.Instr]bool           // roots that the assembler takes with its own branch
	groups   *groups                           // products of warpgroups; nil without any
}

// Render renders a program for desc, a GPU, with the printer that newPrinter makes.
// It verifies the program, in which what the GPU lacks is expanded (pass
// expand-math).
func Render(p *program.Program, desc *target.Desc, opt Options, newPrinter func(*Selector) Printer) (*Kernel, error) {
	if desc == nil || desc.Kind != target.GPU || desc.SM == 0 {
		return nil, fmt.Errorf("kernel %s: %w", p.Name, errNoGPU)
	}
	if err := program.VerifyGPU(p); err != nil {
		return nil, err
	}
	defs := definitionsOf(p)
	s := &Selector{
		Program:  p,
		Desc:     desc,
		Options:  opt,
		values:   make([]*held, p.Values),
		bounds:   bounds.Of(p),
		arrays:   Arrays(p),
		sums:     make(Sums),
		consts:   make(map[*program.Value]*program.Instr),
		tables:   make(map[*program.Value]*program.Param),
		access:   make(map[*program.Value]*program.Param),
		uniform:  program.UniformBranches(p),
		origin:   make(map[*program.Value]*program.Value),
		bytes:    make(map[*program.Value]*program.Value),
		shifted:  make(map[*program.Value]byteShift),
		offsets:  byteOffsets(p, defs),
		entries:  make(map[*program.Value]entryIndex),
		added:    make(map[*program.Value]*program.Value),
		defs:     defs,
		dotted:   make(map[*program.Value]bool),
		left:     make(map[*program.Value]bool),
		owed:     make(map[*program.Value]Operand),
		chains:   dotChainsOf(p, defs),
		branched: branchedRoots(p, defs, desc),
		groups:   groupsOf(p),
	}
	pairs, finder := nibblePairs(p, defs)
	s.pairs, s.dots = pairs, lookupDots(p, finder, s.chains)
	for _, dot := range s.dots {
		s.dotted[dot.gather.Result] = true
	}
	s.bits, s.spreads = singleBits(p, defs)
	s.choices, s.unread = byteChoices(p, defs, s.bounds)
	s.print = newPrinter(s)
	s.simplify = s.print.Simplify()
	if s.simplify {
		s.signs = signDots(p, s.choices, s.chains)
		for _, dot := range s.signs {
			s.left[dot.choice] = true
		}
	}
	k, err := s.kernel()
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", p.Name, err)
	}
	return k, nil
}

var errNoGPU = errors.New("the target is no NVIDIA GPU")

func (s *Selector) kernel() (*Kernel, error) {
	p := s.Program
	if p.Units() > math.MaxInt32 {
		return nil, fmt.Errorf("%d blocks, want at most %d", p.Units(), math.MaxInt32)
	}
	k := &Kernel{
		Entry: EntryName(p.Name), Blocks: p.Units(), Block: BlockShape(p.Block),
		WaitsGrid: s.Desc.StartsEarly() && HasOp(p.Body, program.WaitGrid), Cluster: int(max(p.Cluster, 1)), Carveout: p.Options.Of(program.Carveout),
	}
	if int64(k.Cluster) > s.Desc.Clusters() {
		return nil, fmt.Errorf("clusters of %d blocks, %s has clusters of %d", k.Cluster, s.Desc.Name, s.Desc.Clusters())
	}
	s.Open()
	for i := range p.Params {
		s.param(k, i)
	}
	if err := s.Block(p.Body); err != nil {
		return nil, err
	}
	s.Close()
	k.Shared, k.Dynamic = int(s.SharedBytes), s.SharedBytes > StaticShared
	if k.Shared > s.Desc.SharedBytes {
		return nil, fmt.Errorf("%d bytes of shared memory, %s has %d a block", k.Shared, s.Desc.Name, s.Desc.SharedBytes)
	}
	k.Text = s.print.Text(k)
	return k, nil
}

func (s *Selector) param(k *Kernel, i int) {
	p := &s.Program.Params[i]
	switch p.Kind {
	case program.ParamTable:
		s.setAddress(p.Value, &Address{Base: s.print.Table(i, p), Fixed: true})
		s.tables[p.Value] = p
		return
	case program.ParamVar:
		s.set(p.Value, []Operand{s.print.Scalar(i, s.TypeOf(p.Value))})
	default:
		s.setAddress(p.Value, &Address{Base: s.print.Buffer(i), Fixed: !p.Write})
		s.access[p.Value] = p
	}
	k.Params = append(k.Params, i)
}

// Block renders the instructions of a block; yields are left to the caller.
func (s *Selector) Block(b *program.Block) error {
	if err := Each(b, s.instr); err != nil {
		return err
	}
	s.groupWait()
	return nil
}

func (s *Selector) instr(in *program.Instr) error {
	if s.Options.Annotate {
		s.print.Comment(program.PrintInstr(in))
	}
	if s.usesRunning(in) {
		s.groupWait()
	}
	switch in.Op {
	case program.Const, program.ConstLanes:
		s.constant(in)
	case program.Alu:
		return s.alu(in)
	case program.Broadcast, program.Extract, program.Shuffle, program.Concat, program.FoldLanes:
		return s.movement(in)
	case program.PtrAdd:
		s.ptrAdd(in)
	case program.Load, program.Store, program.Gather, program.Scatter, program.Guarded, program.Prefetch, program.Alloca, program.CopyAsync:
		return s.memory(in)
	case program.For:
		return s.print.Loop(in)
	case program.If:
		return s.print.Branch(in)
	case program.GridLoop:
		return s.print.Grid(in)
	case program.Yield:
	default:
		return s.threads(in)
	}
	return nil
}
