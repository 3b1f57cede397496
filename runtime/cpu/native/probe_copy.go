package native

import (
	"context"
	"fmt"
	"strings"
)

// MeasureCopy is the rate in GB/s, of bytes read and bytes written together, at
// which threads workers copy memory that is far larger than the caches: the best
// of ordinary stores and of stores past the caches. It needs libLLVM.
func MeasureCopy(ctx context.Context, threads int) (gbPerSecond float64, err error) {
	from, err := Alloc(copyBytes)
	if err != nil {
		return 0, err
	}
	defer from.Free()
	into, err := Alloc(copyBytes)
	if err != nil {
		return 0, err
	}
	defer into.Free()
	touch(from.Bytes())
	touch(into.Bytes())
	for _, past := range []bool{false, true} {
		var calls []Call
		for at := uint64(0); at < copyBytes; at += partBytes {
			calls = append(calls, Call{Args: []uint64{uint64(from.Addr()) + at, uint64(into.Addr()) + at}, Units: partBytes / readUnit})
		}
		seconds, err := probe(ctx, threads, readRepeats, func(v vectors) string { return copyIR(v, past) }, calls...)
		if err != nil {
			return 0, err
		}
		gbPerSecond = max(gbPerSecond, 2*partBytes/seconds/1e9)
	}
	return gbPerSecond, nil
}

// copyBytes is read, and as much written.
const copyBytes = 256 << 20

// copyIR copies units, eight vectors a step; past the caches if so asked.
func copyIR(v vectors, past bool) string {
	const copies = 8
	vector := fmt.Sprintf("<%d x i64>", v.bytes/8)
	hint := ""
	if past {
		hint = ", !nontemporal !0"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `define void @probe(ptr %%args, i64 %%lo, i64 %%hi) nounwind {
entry:
  %%from = load ptr, ptr %%args
  %%pinto = getelementptr ptr, ptr %%args, i64 1
  %%into = load ptr, ptr %%pinto
  %%start = mul i64 %%lo, %d
  %%end = mul i64 %%hi, %d
  br label %%loop
loop:
  %%i = phi i64 [ %%start, %%entry ], [ %%next, %%loop ]
`, readUnit, readUnit)
	for k := range copies {
		fmt.Fprintf(&b, `  %%o%[1]d = add i64 %%i, %[2]d
  %%p%[1]d = getelementptr i8, ptr %%from, i64 %%o%[1]d
  %%q%[1]d = getelementptr i8, ptr %%into, i64 %%o%[1]d
  %%v%[1]d = load %[3]s, ptr %%p%[1]d, align %[4]d
  store %[3]s %%v%[1]d, ptr %%q%[1]d, align %[4]d%[5]s
`, k, k*v.bytes, vector, v.bytes, hint)
	}
	fmt.Fprintf(&b, `  %%next = add i64 %%i, %d
  %%more = icmp slt i64 %%next, %%end
  br i1 %%more, label %%loop, label %%done
done:
  ret void
}
!0 = !{i32 1}
`, copies*v.bytes)
	return b.String()
}
