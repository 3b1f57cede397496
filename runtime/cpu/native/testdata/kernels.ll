; Kernels of the tests. ABI: void kernel(ptr args, i64 lo, i64 hi).
; {{words}} are assembly, filled in by machine (native_test.go).

define void @nothing(ptr %args, i64 %lo, i64 %hi) nounwind {
  ret void
}

; args: a. a[i] += 1
define void @increment(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %a = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %p = getelementptr i64, ptr %a, i64 %i
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}

; args: to, from, n. to[i] = from[n-1-i] + 1: reads what other workers wrote.
define void @reverse(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %to = load ptr, ptr %args
  %pfrom = getelementptr ptr, ptr %args, i64 1
  %from = load ptr, ptr %pfrom
  %pn = getelementptr i64, ptr %args, i64 2
  %n = load i64, ptr %pn
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %r = sub i64 %n, %i
  %r1 = sub i64 %r, 1
  %p = getelementptr i64, ptr %from, i64 %r1
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  %q = getelementptr i64, ptr %to, i64 %i
  store i64 %w, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}

; args: a. a[lo] = hi: shows the slabs.
define void @bounds(ptr %args, i64 %lo, i64 %hi) nounwind {
  %a = load ptr, ptr %args
  %p = getelementptr i64, ptr %a, i64 %lo
  store i64 %hi, ptr %p
  ret void
}

; args: address, unit. Reads the address if the unit is in the slab; spoils
; the registers that a caller expects to be kept, as a fault leaves them.
define void @read_at(ptr %args, i64 %lo, i64 %hi) nounwind {
  %address = load ptr, ptr %args
  %punit = getelementptr i64, ptr %args, i64 1
  %unit = load i64, ptr %punit
  %above = icmp sge i64 %unit, %lo
  %below = icmp slt i64 %unit, %hi
  %mine = and i1 %above, %below
  br i1 %mine, label %read, label %done
read:
  call void asm sideeffect {{spoil}}(ptr %address)
  br label %done
done:
  ret void
}

; args: address, n. memset of n bytes
define void @set_at(ptr %args, i64 %lo, i64 %hi) nounwind {
  %address = load ptr, ptr %args
  %pn = getelementptr i64, ptr %args, i64 1
  %n = load i64, ptr %pn
  call void @llvm.memset.p0.i64(ptr %address, i8 1, i64 %n, i1 false)
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; args: a, divisor. a[lo] = a[lo] / divisor
define void @divide(ptr %args, i64 %lo, i64 %hi) nounwind {
  %a = load ptr, ptr %args
  %pd = getelementptr i64, ptr %args, i64 1
  %d = load i64, ptr %pd
  %p = getelementptr i64, ptr %a, i64 %lo
  %v = load i64, ptr %p
  %w = sdiv i64 %v, %d
  store i64 %w, ptr %p
  ret void
}

define void @illegal(ptr %args, i64 %lo, i64 %hi) nounwind {
  call void @llvm.trap()
  unreachable
}
declare void @llvm.trap()

; args: n. Takes n iterations of a multiplication: about a nanosecond each.
define void @slow(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %n = load i64, ptr %args
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void asm sideeffect {{multiply}}()
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Recurses without end: overflows the stack.
define void @recurse(ptr %args, i64 %lo, i64 %hi) nounwind {
  %local = alloca [512 x i64]
  store volatile i64 %lo, ptr %local
  call void @recurse(ptr %local, i64 %hi, i64 %lo)
  store volatile i64 %hi, ptr %local
  ret void
}
