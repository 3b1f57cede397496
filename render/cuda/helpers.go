package cuda

import (
	"fmt"
	"strings"

	"tgc/internal/lists"
)

// helper is a device function that a text defines when it uses it.
type helper struct{ name, text string }

// helperTable has what CUDA C offers no function for without its headers. All
// are inline assembly, as those headers' own functions are. The one for a policy
// of the first cache reads data that nothing writes, or in the forms named
// "last", data that this kernel may write itself.
var helperTable = []helper{
	{"half_to_float", `float half_to_float(unsigned bits)
{
	float out;
	asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"((unsigned short)bits));
	return out;
}`},
	{"float_to_half", `unsigned float_to_half(float x)
{
	unsigned short out;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
	return out;
}`},
	{"float_to_bf16", `unsigned float_to_bf16(float x)
{
	unsigned short out;
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(x));
	return out;
}`},
	{"floats_to_half2", `unsigned floats_to_half2(float low, float high)
{
	unsigned out;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
	return out;
}`},
	{"floats_to_bf162", `unsigned floats_to_bf162(float low, float high)
{
	unsigned out;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
	return out;
}`},
	{"half2_add", halfHelper("half2_add", "add.rn.f16x2")},
	{"half2_sub", halfHelper("half2_sub", "sub.rn.f16x2")},
	{"half2_mul", halfHelper("half2_mul", "mul.rn.f16x2")},
	{"half2_fma", `unsigned half2_fma(unsigned x, unsigned y, unsigned z)
{
	unsigned out;
	asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(y), "r"(z));
	return out;
}`},
	{"min_nan", extremeHelper("min_nan", "min.NaN.f32")},
	{"max_nan", extremeHelper("max_nan", "max.NaN.f32")},
	{"min_number", extremeHelper("min_number", "min.f32")},
	{"max_number", extremeHelper("max_number", "max.f32")},
	{"min_double", doubleHelper("min_double", "min.f64")},
	{"max_double", doubleHelper("max_double", "max.f64")},
	{"exp2_approx", functionHelper("exp2_approx", "ex2.approx.f32")},
	{"recip_guess", functionHelper("recip_guess", "rcp.approx.ftz.f32")},
	{"rsqrt_guess", functionHelper("rsqrt_guess", "rsqrt.approx.ftz.f32")},
	{"dot4_ss", dotHelper("dot4_ss", "s32.s32")},
	{"dot4_us", dotHelper("dot4_us", "u32.s32")},
	{"dot4_su", dotHelper("dot4_su", "s32.u32")},
	{"dot4_uu", dotHelper("dot4_uu", "u32.u32")},
	{"load_once1", streamHelper("load_once1", onceConstant, 1)},
	{"load_once2", streamHelper("load_once2", onceConstant, 2)},
	{"load_once4", streamHelper("load_once4", onceConstant, 4)},
	{"load_once8", streamHelper("load_once8", onceConstant, 8)},
	{"load_once16", streamHelper("load_once16", onceConstant, 16)},
	{"load_last1", streamHelper("load_last1", once, 1)},
	{"load_last2", streamHelper("load_last2", once, 2)},
	{"load_last4", streamHelper("load_last4", once, 4)},
	{"load_last8", streamHelper("load_last8", once, 8)},
	{"load_last16", streamHelper("load_last16", once, 16)},
	{"load_wide1", streamHelper("load_wide1", wideConstant, 1)},
	{"load_wide2", streamHelper("load_wide2", wideConstant, 2)},
	{"load_wide4", streamHelper("load_wide4", wideConstant, 4)},
	{"load_wide8", streamHelper("load_wide8", wideConstant, 8)},
	{"load_wide16", streamHelper("load_wide16", wideConstant, 16)},
	{"prefetch_l2", `void prefetch_l2(const void* p)
{
	asm volatile("prefetch.global.L2 [%0];" : : "l"(p));
}`},
	{"grid_wait", `void grid_wait()
{
	// In a loop that runs once: see render/ptx.
	unsigned blocks;
	do
		asm volatile("griddepcontrol.wait;\n\tmov.u32 %0, %nctaid.z;" : "=r"(blocks) : : "memory");
	while (blocks == 0);
}`},
	{"grid_launch_next", `void grid_launch_next()
{
	asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}`},
	{"cluster_arrive", `void cluster_arrive()
{
	asm volatile("barrier.cluster.arrive.aligned;" : : : "memory");
}`},
	{"cluster_wait", `void cluster_wait()
{
	asm volatile("barrier.cluster.wait.aligned;" : : : "memory");
}`},
	{"cluster_peer", `char* cluster_peer(char* p, int block)
{
	char* out;
	asm("mapa.u64 %0, %1, %2;" : "=l"(out) : "l"(p), "r"(block));
	return out;
}`},
	{"group_fence", `void group_fence()
{
	asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}`},
	{"group_wait", `void group_wait()
{
	asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" : : : "memory");
}`},
	{"group_show_stores", `void group_show_stores()
{
	asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}`},
	{"group_matrix", `unsigned long long group_matrix(const char* p)
{
	unsigned at = (unsigned)__cvta_generic_to_shared(p);
	return (unsigned long long)(at >> 4 & 0x3fff | 1 << 16) | 64ull << 32 | 1ull << 62;
}`},
	{"copy_async4", copyHelper("copy_async4", "ca", 4)},
	{"copy_async8", copyHelper("copy_async8", "ca", 8)},
	{"copy_async16", copyHelper("copy_async16", "cg", 16)},
	{"copies_wait", `void copies_wait()
{
	asm volatile("cp.async.wait_all;" : : : "memory");
}`},
	{"fence_device", `void fence_device()
{
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
}`},
}

func halfHelper(name, instruction string) string {
	return fmt.Sprintf(`unsigned %s(unsigned x, unsigned y)
{
	unsigned out;
	asm("%s %%0, %%1, %%2;" : "=r"(out) : "r"(x), "r"(y));
	return out;
}`, name, instruction)
}

func extremeHelper(name, instruction string) string {
	return fmt.Sprintf(`float %s(float x, float y)
{
	float out;
	asm("%s %%0, %%1, %%2;" : "=f"(out) : "f"(x), "f"(y));
	return out;
}`, name, instruction)
}

func functionHelper(name, instruction string) string {
	return fmt.Sprintf(`float %s(float x)
{
	float out;
	asm("%s %%0, %%1;" : "=f"(out) : "f"(x));
	return out;
}`, name, instruction)
}

func doubleHelper(name, instruction string) string {
	return fmt.Sprintf(`double %s(double x, double y)
{
	double out;
	asm("%s %%0, %%1, %%2;" : "=d"(out) : "d"(x), "d"(y));
	return out;
}`, name, instruction)
}

func dotHelper(name, types string) string {
	return fmt.Sprintf(`int %s(unsigned x, unsigned y, int sum)
{
	int out;
	asm("dp4a.%s %%0, %%1, %%2, %%3;" : "=r"(out) : "r"(x), "r"(y), "r"(sum));
	return out;
}`, name, types)
}

// copyHelper starts a copy to shared memory.
func copyHelper(name, cache string, bytes int) string {
	return fmt.Sprintf(`void %s(char* to, const char* from)
{
	asm volatile("cp.async.%s.shared.global [%%0], [%%1], %d;" : : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}`, name, cache, bytes)
}

// Instructions of loads that helpers make.
const (
	once         = "ld.global.L1::no_allocate"
	onceConstant = "ld.global.nc.L1::no_allocate"
	wideConstant = "ld.global.nc.L1::no_allocate.L2::256B"
)

// streamHelper loads bytes that the first cache need not keep.
func streamHelper(name, access string, bytes int) string {
	qualifier, clobber := "asm", ""
	if access == once {
		qualifier, clobber = "asm volatile", ` : "memory"`
	}
	switch bytes {
	case 8, 16:
		n := bytes / 4
		return fmt.Sprintf(`uint%d %s(const void* p)
{
	uint%d out;
	%s("%s.v%d.u32 {%s}, [%%%d];" : %s : "l"(p)%s);
	return out;
}`, n, name, n, qualifier, access, n, numbered(0, n), n, outputs(n), clobber)
	case 4:
		return fmt.Sprintf(`unsigned %s(const void* p)
{
	unsigned out;
	%s("%s.u32 %%0, [%%1];" : "=r"(out) : "l"(p)%s);
	return out;
}`, name, qualifier, access, clobber)
	}
	return fmt.Sprintf(`unsigned %s(const void* p)
{
	unsigned short out;
	%s("%s.u%d %%0, [%%1];" : "=h"(out) : "l"(p)%s);
	return out;
}`, name, qualifier, access, 8*bytes, clobber)
}

// numbered are n placeholders of assembly from a first one on.
func numbered(first, n int) string {
	list := lists.Make(n, func(i int) string { return fmt.Sprintf("%%%d", first+i) })
	return strings.Join(list, ", ")
}

func outputs(n int) string {
	list := lists.Make(n, func(i int) string { return fmt.Sprintf("\"=r\"(out.%c)", "xyzw"[i]) })
	return strings.Join(list, ", ")
}

// call uses a helper: its name.
func (r *printer) call(name string) string {
	r.used[name] = true
	return name
}

// helpers prints those that were used.
func (r *printer) helpers(b *strings.Builder) {
	for _, h := range helperTable {
		if r.used[h.name] {
			b.WriteString("static __device__ __forceinline__ " + h.text + "\n\n")
		}
	}
}
