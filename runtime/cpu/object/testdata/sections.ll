; One object with every kind of section and reference that the loader knows.
; Opaque pointers, like all IR in tests here.

@table = private constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
@lanes = private constant <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
@counter = internal global i64 100
@zeros = internal global [4096 x i8] zeroinitializer, align 64
@functions = internal constant [2 x ptr] [ptr @twice, ptr @thrice]

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @memmove(ptr, ptr, i64)

define i64 @twice(i64 %x) nounwind {
  %y = shl i64 %x, 1
  ret i64 %y
}

define i64 @thrice(i64 %x) nounwind {
  %y = mul i64 %x, 3
  ret i64 %y
}

; read-only data
define i64 @lookup(i64 %i) nounwind {
  %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %i
  %v = load i32, ptr %p
  %w = sext i32 %v to i64
  ret i64 %w
}

; a constant of 64 bytes, 64-byte aligned
define i64 @lane_sum(i64 %x) nounwind {
  %v = load volatile <16 x i32>, ptr @lanes
  %s = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %v)
  %w = sext i32 %s to i64
  %r = add i64 %w, %x
  ret i64 %r
}
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)

; writable data
define i64 @count(i64 %by) nounwind {
  %v = load i64, ptr @counter
  %w = add i64 %v, %by
  store i64 %w, ptr @counter
  ret i64 %w
}

; zeroed data
define i64 @zeroed(i64 %i) nounwind {
  %p = getelementptr [4096 x i8], ptr @zeros, i64 0, i64 %i
  %v = load i8, ptr %p
  store i8 7, ptr %p
  %w = zext i8 %v to i64
  ret i64 %w
}

; absolute addresses in data
define i64 @indirect(i64 %which, i64 %x) nounwind {
  %p = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %which
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}

; imported functions, called and as a value through the GOT
define void @fill(ptr %to, i64 %byte, i64 %n) nounwind {
  %b = trunc i64 %byte to i8
  call void @llvm.memset.p0.i64(ptr %to, i8 %b, i64 %n, i1 false)
  ret void
}

define void @copy(ptr %to, ptr %from, i64 %n) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret void
}

define ptr @address_of_memmove() nounwind {
  ret ptr @memmove
}

; a jump table
define i64 @choose(i64 %x) nounwind {
  switch i64 %x, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d  i64 4, label %e ]
a:
  %ra = call i64 @twice(i64 100)
  ret i64 %ra
b:
  %rb = call i64 @thrice(i64 7)
  ret i64 %rb
c:
  %rc = call i64 @count(i64 0)
  ret i64 %rc
d:
  %rd = call i64 @lookup(i64 3)
  ret i64 %rd
e:
  ret i64 55
other:
  ret i64 -1
}
