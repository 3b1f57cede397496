package native

import (
	"errors"
	"fmt"
	"unsafe"
)

// Call is one kernel with its arguments.
type Call struct {
	Fn   uintptr  // entry address; see the package comment for its ABI
	Args []uint64 // copied into the step; addresses must not be of Go memory
	// Units is the number of work units, at most maxUnits.
	Units int64
	// Granularity: slabs start at multiples of it; 0 means 1.
	Granularity int64
	// Shares: the kernel takes chunks of the units that the queue (its fourth argument) holds once it has done
	// its slab. Otherwise all units are in slabs.
	Shares bool
	Name   string // for errors
}

// maxUnits keeps products with the number of workers inside 64 bits.
const maxUnits = 1 << 48

// Step is a captured list of launches: what Pool.Run plays. It belongs to no
// pool. A step must not be changed or freed while it runs.
type Step struct {
	memory  *Memory
	records []callRecord
	queues  []queue // of each call
	shares  []bool
	args    [][]uint64
	names   []string
	// launchEnd marks the last call of each launch, by call.
	launchEnd []bool
}

// NewStep lays out launches, each a list of independent calls. Calls are
// numbered from 0 through all launches.
func NewStep(launches [][]Call) (*Step, error) {
	var calls []Call
	var launchEnd []bool
	slots := 0
	for _, launch := range launches {
		for i, call := range launch {
			if call.Fn == 0 {
				return nil, fmt.Errorf("native: call %d (%s) has no function", len(calls), call.Name)
			}
			calls = append(calls, call)
			launchEnd = append(launchEnd, i == len(launch)-1)
			slots += len(call.Args)
		}
	}
	if len(calls) == 0 {
		return nil, errors.New("native: a step needs at least one call")
	}
	queueBytes := len(calls) * int(unsafe.Sizeof(queue{}))
	recordBytes := len(calls) * int(unsafe.Sizeof(callRecord{}))
	memory, err := Alloc(int64(queueBytes + recordBytes + 8*slots))
	if err != nil {
		return nil, err
	}
	base := unsafe.Pointer(unsafe.SliceData(memory.Bytes()))
	s := &Step{
		memory:    memory,
		queues:    unsafe.Slice((*queue)(base), len(calls)),
		records:   unsafe.Slice((*callRecord)(unsafe.Add(base, queueBytes)), len(calls)),
		launchEnd: launchEnd,
	}
	free := unsafe.Slice((*uint64)(unsafe.Add(base, queueBytes+recordBytes)), slots)
	for i, call := range calls {
		args := free[:len(call.Args):len(call.Args)]
		free = free[len(call.Args):]
		copy(args, call.Args)
		s.args = append(s.args, args)
		s.names = append(s.names, call.Name)
		s.shares = append(s.shares, call.Shares)
		s.records[i] = callRecord{
			fn:          call.Fn,
			args:        uintptr(unsafe.Pointer(unsafe.SliceData(args))),
			granularity: max(call.Granularity, 1),
			queue:       uintptr(unsafe.Pointer(&s.queues[i])),
		}
		if err := s.setUnits(i, call.Units); err != nil {
			return nil, errors.Join(err, memory.Free())
		}
	}
	s.placeBarriers()
	return s, nil
}

// Calls is the number of calls of the step.
func (s *Step) Calls() int { return len(s.records) }

// Name is the name of a call.
func (s *Step) Name(call int) string { return s.names[call] }

// Args are the argument slots of a call, to be read and written between runs.
func (s *Step) Args(call int) []uint64 { return s.args[call] }

// SetUnits changes the number of work units of a call.
func (s *Step) SetUnits(call int, units int64) error {
	if err := s.setUnits(call, units); err != nil {
		return err
	}
	s.placeBarriers()
	return nil
}

func (s *Step) setUnits(call int, units int64) error {
	if units < 0 || units > maxUnits {
		return fmt.Errorf("native: call %d (%s): %d work units, want 0 to %d", call, s.names[call], units, int64(maxUnits))
	}
	r := &s.records[call]
	r.units = units
	r.granules = r.allGranules()
	return nil
}

// allGranules are those of all units.
func (r *callRecord) allGranules() int64 { return (r.units + r.granularity - 1) / r.granularity }

// Of a call that shares, a worker's slab is three quarters of its part, and it takes the rest in so many
// chunks of equal size for each worker: a core that another process uses, or that memory serves
// worse for a while, does less. A call with fewer granules than sharedGranules a worker is dealt out whole.
const (
	dealtQuarters   = 3
	chunksEach      = 4
	sharedGranules  = 4
	quartersOfWhole = 4
)

// deal splits the units of all calls between slabs and queues, for so many workers; before each run.
func (s *Step) deal(workers int64) {
	for i := range s.records {
		r, q := &s.records[i], &s.queues[i]
		all := r.allGranules()
		r.granules = all
		if s.shares[i] && workers > 1 && all >= sharedGranules*workers {
			r.granules = all * dealtQuarters / quartersOfWhole / workers * workers
		}
		left := all - r.granules
		*q = queue{next: r.granules * r.granularity, chunk: (left + chunksEach*workers - 1) / (chunksEach * workers) * r.granularity, end: r.units}
	}
}

// callsAddr is where the records begin.
func (s *Step) callsAddr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s.records))) }

// placeBarriers puts a barrier after each launch, except between launches
// whose calls all fit in one granule: worker 0 alone runs both, in order.
func (s *Step) placeBarriers() {
	serialAfter := false // is the launch after the current one serial?
	for end := len(s.records); end > 0; {
		start := end - 1
		for start > 0 && !s.launchEnd[start-1] {
			start--
		}
		serial := true
		for i := start; i < end; i++ {
			s.records[i].flags = 0
			serial = serial && s.records[i].allGranules() <= 1
		}
		if !serial || !serialAfter {
			s.records[end-1].flags = flagBarrier
		}
		serialAfter, end = serial, start
	}
}

// Free releases the step's memory.
func (s *Step) Free() error {
	s.records, s.queues, s.args = nil, nil, nil
	return s.memory.Free()
}

// callAt is the number of the call whose record is at an address.
func (s *Step) callAt(record uintptr) int {
	return int((record - s.callsAddr()) / unsafe.Sizeof(callRecord{}))
}

// slab is the part of a call's units that worker w of count runs: bounds are
// multiples of the granularity, sizes differ by at most one granule, and the
// slabs of workers 0 to count-1 follow each other. loop_*.s computes the
// same; the partition must never change a result, only who computes it.
func slab(r *callRecord, w, count int64) (lo, hi int64) {
	bound := func(w int64) int64 { return (r.granules*w + count - 1) / count * r.granularity }
	return bound(w), min(bound(w+1), r.units)
}
