// A libcuda for tests: see stub.go. Device memory is host memory; "machine
// code" is the PTX text; a kernel's body is chosen by its name.
#include <stdint.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

typedef int CUresult;
enum { OK = 0, INVALID = 1, OOM = 2, NO_DEVICE_ERR = 100, BAD_DEVICE = 101, BAD_IMAGE = 200, BAD_CONTEXT = 201, BAD_PTX = 218, NOT_FOUND = 500, ILLEGAL = 700 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char log_text[1 << 16];
static int log_used;

static void note(const char *format, ...) {
	va_list args;
	va_start(args, format);
	int n = vsnprintf(log_text + log_used, sizeof log_text - log_used, format, args);
	va_end(args);
	if (log_used + n < (int)sizeof log_text) log_used += n;
}

int64_t stub_log(char *to, int64_t size) {
	int64_t n = log_used < size ? log_used : size;
	memcpy(to, log_text, n);
	log_used = 0;
	return n;
}

// Failures to order.
static char fail_name[64];
static int fail_code, fail_count;
void stub_fail(const char *name, int code, int n) {
	strncpy(fail_name, name, sizeof fail_name - 1);
	fail_code = code, fail_count = n;
}
static int failing(const char *name) {
	if (fail_count && !strcmp(name, fail_name) && --fail_count == 0) return fail_code;
	return OK;
}
#define ENTER(name) { int code = failing(name); if (code) return code; }

// Contexts. A fault ends all of the process for good.
typedef struct { int device; } Context;
static int lost;
static __thread Context *current;
#define IN_CONTEXT(name) { ENTER(name); if (!current) return BAD_CONTEXT; if (lost) return lost; }

enum { CONTEXTS, ALLOCATIONS, PINNED, STREAMS, EVENTS, MODULES, GRAPHS, INSTANCES, KINDS };
static int64_t live[KINDS];
static void count(int kind, int n) { __atomic_add_fetch(&live[kind], n, __ATOMIC_SEQ_CST); }
void stub_live(int64_t *to) { memcpy(to, live, sizeof live); }

CUresult cuInit(unsigned flags) {
	ENTER("cuInit");
#ifdef NO_DEVICE
	return NO_DEVICE_ERR;
#endif
	return flags ? INVALID : OK;
}
CUresult cuDriverGetVersion(int *v) {
#ifdef OLD
	*v = 12000;
#else
	*v = 13000;
#endif
	return OK;
}
static struct { int code; const char *name, *text; } errors[] = {
	{INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"}, {OOM, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{NO_DEVICE_ERR, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}, {BAD_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{BAD_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}, {BAD_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	{NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"}, {ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
};
static CUresult describe(int code, const char **to, int text) {
	for (int i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code) { *to = text ? errors[i].text : errors[i].name; return OK; }
	return INVALID;
}
CUresult cuGetErrorName(int code, const char **to) { return describe(code, to, 0); }
CUresult cuGetErrorString(int code, const char **to) { return describe(code, to, 1); }

CUresult cuDeviceGetCount(int *n) { ENTER("cuDeviceGetCount"); *n = 2; return OK; }
CUresult cuDeviceGet(int *d, int i) { if (i < 0 || i > 1) return BAD_DEVICE; *d = i; return OK; }
CUresult cuDeviceGetName(char *to, int n, int d) { snprintf(to, n, "Stub GPU %d", d); return OK; }
CUresult cuDeviceGetAttribute(int *v, int attribute, int d) {
	switch (attribute) {
	case 1: *v = 1024; return OK;
	case 10: *v = 32; return OK;
	case 13: *v = 1000000; return OK;
	case 16: *v = 4; return OK;
	case 18: *v = 0; return OK;
	case 38: *v = 1 << 20; return OK;
	case 75: *v = d == 0 ? 9 : 8; return OK;
	case 76: *v = d == 0 ? 0 : 7; return OK;
	case 97: *v = 100 << 10; return OK;
	}
	return INVALID;
}

static int64_t memory_total = 256 << 20, memory_used;
void stub_memory(int64_t bytes) { memory_total = bytes; }
CUresult cuDeviceTotalMem_v2(size_t *n, int d) { *n = memory_total; return OK; }

CUresult cuCtxCreate_v2(Context **to, unsigned flags, int device) {
	ENTER("cuCtxCreate_v2");
	if (lost) return lost;
	*to = current = calloc(1, sizeof(Context));
	current->device = device;
	count(CONTEXTS, 1);
	return OK;
}
CUresult cuCtxDestroy_v2(Context *c) { if (current == c) current = 0; free(c); count(CONTEXTS, -1); return OK; }
CUresult cuCtxSetCurrent(Context *c) { ENTER("cuCtxSetCurrent"); current = c; return OK; }

// Memory: every allocation is known, so that an address can be judged.
typedef struct { char *base; size_t size; int live; } Range;
static Range ranges[4096];
static int range_count;

CUresult cuMemGetInfo_v2(size_t *avail, size_t *total) { IN_CONTEXT("cuMemGetInfo_v2"); *avail = memory_total - memory_used; *total = memory_total; return OK; }
CUresult cuMemAlloc_v2(uint64_t *to, size_t n) {
	IN_CONTEXT("cuMemAlloc_v2");
	if (!n) return INVALID;
	pthread_mutex_lock(&mutex);
	CUresult result = OOM;
	if (memory_used + (int64_t)n <= memory_total && range_count < 4096) {
		char *p = aligned_alloc(512, (n + 511) / 512 * 512);
		memset(p, 0xa5, n); // contents are undefined
		ranges[range_count++] = (Range){p, n, 1};
		memory_used += n;
		*to = (uint64_t)p;
		count(ALLOCATIONS, 1);
		result = OK;
	}
	pthread_mutex_unlock(&mutex);
	return result;
}
CUresult cuMemFree_v2(uint64_t p) {
	IN_CONTEXT("cuMemFree_v2");
	for (int i = 0; i < range_count; i++)
		if (ranges[i].live && (uint64_t)ranges[i].base == p) {
			ranges[i].live = 0;
			memory_used -= ranges[i].size;
			free(ranges[i].base);
			count(ALLOCATIONS, -1);
			return OK;
		}
	return INVALID;
}
static int inside(uint64_t p, size_t n) {
	for (int i = 0; i < range_count; i++)
		if (ranges[i].live && p >= (uint64_t)ranges[i].base && p + n <= (uint64_t)ranges[i].base + ranges[i].size) return 1;
	return 0;
}
static Range pinned[256];
static int pinned_count;
CUresult cuMemHostAlloc(void **to, size_t n, unsigned flags) {
	IN_CONTEXT("cuMemHostAlloc");
	*to = malloc(n);
	pinned[pinned_count++ % 256] = (Range){*to, n, 1};
	count(PINNED, 1);
	return OK;
}
CUresult cuMemFreeHost(void *p) { free(p); count(PINNED, -1); return OK; }
static int is_pinned(char *p, size_t n) {
	for (int i = 0; i < 256; i++)
		if (pinned[i].live && p >= pinned[i].base && p + n <= pinned[i].base + pinned[i].size) return 1;
	return 0;
}

typedef struct { int device; } Stream;
CUresult cuStreamCreate(Stream **to, unsigned flags) { IN_CONTEXT("cuStreamCreate"); if (flags != 1) return INVALID; *to = calloc(1, sizeof(Stream)); count(STREAMS, 1); return OK; }
CUresult cuStreamSynchronize(Stream *s) { IN_CONTEXT("cuStreamSynchronize"); return s ? OK : INVALID; }
CUresult cuStreamDestroy_v2(Stream *s) { free(s); count(STREAMS, -1); return OK; }

CUresult cuMemcpyHtoDAsync_v2(uint64_t to, void *from, size_t n, Stream *s) {
	IN_CONTEXT("cuMemcpyHtoDAsync_v2");
	if (!s || !inside(to, n) || !is_pinned(from, n)) return INVALID;
	memcpy((void *)to, from, n);
	return OK;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, Stream *s) {
	IN_CONTEXT("cuMemcpyDtoHAsync_v2");
	if (!s || !inside(from, n) || !is_pinned(to, n)) return INVALID;
	memcpy(to, (void *)from, n);
	return OK;
}
CUresult cuMemsetD8Async(uint64_t to, unsigned char v, size_t n, Stream *s) {
	IN_CONTEXT("cuMemsetD8Async");
	if (!s || !inside(to, n)) return INVALID;
	memset((void *)to, v, n);
	return OK;
}

// The clock moves 10 us a kernel.
typedef struct { int timed, recorded; double at; } Event;
static double now;
CUresult cuEventCreate(Event **to, unsigned flags) { IN_CONTEXT("cuEventCreate"); *to = calloc(1, sizeof(Event)); (*to)->timed = !(flags & 2); count(EVENTS, 1); return OK; }
CUresult cuEventRecord(Event *e, Stream *s) { IN_CONTEXT("cuEventRecord"); e->recorded = 1; e->at = now; return s ? OK : INVALID; }
CUresult cuEventElapsedTime(float *to, Event *a, Event *b) {
	IN_CONTEXT("cuEventElapsedTime");
	if (!a->timed || !b->timed || !a->recorded || !b->recorded) return INVALID;
	*to = (float)(b->at - a->at);
	return OK;
}
CUresult cuEventDestroy_v2(Event *e) { free(e); count(EVENTS, -1); return OK; }

// Machine code is the text behind a mark.
static const char mark[] = "STUBCUBIN\n";
typedef struct { char *log, *complaint; char *image; size_t size; } Link;
static void read_options(unsigned n, int *options, void **values, Link *link) {
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == 3) link->log = values[i];
		if (options[i] == 5) link->complaint = values[i];
	}
}
CUresult cuLinkCreate_v2(unsigned n, int *options, void **values, Link **to) {
	IN_CONTEXT("cuLinkCreate_v2");
	*to = calloc(1, sizeof(Link));
	read_options(n, options, values, *to);
	return OK;
}
CUresult cuLinkAddData_v2(Link *l, int type, char *data, size_t size, const char *name, unsigned n, int *options, void **values) {
	IN_CONTEXT("cuLinkAddData_v2");
	if (type != 1 || size == 0 || data[size - 1] != 0 || strlen(data) != size - 1) return INVALID;
	if (strstr(data, "SYNTAX")) {
		if (l->complaint) strcpy(l->complaint, "ptxas application ptx input, line 1; fatal : Parsing error near 'SYNTAX'");
		return BAD_PTX;
	}
	l->image = malloc(sizeof mark + size);
	l->size = sprintf(l->image, "%s%s", mark, data) + 1;
	note("link %s\n", name);
	return OK;
}
CUresult cuLinkComplete(Link *l, void **image, size_t *size) {
	IN_CONTEXT("cuLinkComplete");
	if (l->log) strcpy(l->log, "ptxas info : 0 bytes gmem");
	*image = l->image, *size = l->size;
	return OK;
}
CUresult cuLinkDestroy(Link *l) { free(l->image); free(l); return OK; }

typedef struct { char name[64]; int params, shared, dynamic; } Function;
typedef struct { char *text; Function functions[16]; int used; } Module;
CUresult cuModuleLoadDataEx(Module **to, char *image, unsigned n, int *options, void **values) {
	IN_CONTEXT("cuModuleLoadDataEx");
	if (strncmp(image, mark, strlen(mark))) return BAD_IMAGE;
	*to = calloc(1, sizeof(Module));
	(*to)->text = strdup(image);
	count(MODULES, 1);
	return OK;
}
CUresult cuModuleUnload(Module *m) { free(m->text); free(m); count(MODULES, -1); return OK; }
CUresult cuModuleGetFunction(Function **to, Module *m, const char *name) {
	IN_CONTEXT("cuModuleGetFunction");
	char entry[96];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	char *at = strstr(m->text, entry);
	if (!at) return NOT_FOUND;
	Function *f = *to = &m->functions[m->used++];
	strncpy(f->name, name, sizeof f->name - 1);
	for (char *p = at; *p && *p != '{'; p++)
		if (!strncmp(p, ".param", 6)) f->params++;
	return OK;
}
CUresult cuFuncGetAttribute(int *v, int attribute, Function *f) {
	IN_CONTEXT("cuFuncGetAttribute");
	switch (attribute) {
	case 0: *v = 1024; return OK;
	case 1: *v = 0; return OK;
	case 3: *v = strncmp(f->name, "spills", 6) ? 0 : 48; return OK;
	case 4: *v = 32; return OK;
	case 8: *v = f->dynamic; return OK;
	}
	return INVALID;
}
CUresult cuFuncSetAttribute(Function *f, int attribute, int v) {
	IN_CONTEXT("cuFuncSetAttribute");
	if (attribute == 9 && v >= -1 && v <= 100) {
		note("carveout %s %d\n", f->name, v);
		return OK;
	}
	if (attribute != 8 || v > 100 << 10) return INVALID;
	f->dynamic = v;
	note("dynamic %s %d\n", f->name, v);
	return OK;
}

// Running a kernel: parameters are 8 bytes each.
static CUresult run(Function *f, unsigned grid[3], unsigned block[3], unsigned shared, uint64_t *p) {
	now += 0.010;
	note("run %s grid %u,%u,%u block %u,%u,%u shared %u\n", f->name, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared);
	int64_t n = (int64_t)grid[0] * 16;
	if (!strncmp(f->name, "scale", 5) || !strncmp(f->name, "spills", 6)) { // y[i] = x[i]*n
		if (!inside(p[0], 4 * n) || !inside(p[1], 4 * n)) return lost = ILLEGAL;
		for (int64_t i = 0; i < n; i++) ((float *)p[1])[i] = ((float *)p[0])[i] * (float)(int64_t)p[2];
	} else if (!strncmp(f->name, "table", 5)) { // y[i] = t[i%4]
		if (!inside(p[1], 4)) return lost = ILLEGAL;
		for (int64_t i = 0; i < n; i++) ((float *)p[0])[i] = ((float *)p[1])[i % 4];
	} else if (!strncmp(f->name, "wild", 4)) {
		return lost = ILLEGAL;
	}
	return OK;
}
static CUresult shape(unsigned *grid, unsigned *block, unsigned shared, Function *f) {
	for (int i = 0; i < 3; i++)
		if (grid[i] == 0 || block[i] == 0) return INVALID;
	if ((uint64_t)block[0] * block[1] * block[2] > 1024 || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535) return INVALID;
	if (shared > 48 << 10 && shared > f->dynamic) return INVALID;
	return OK;
}
CUresult cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, Stream *s, void **params, void **extra) {
	IN_CONTEXT("cuLaunchKernel");
	unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
	uint64_t values[64];
	if (!s || extra || shape(grid, block, shared, f)) return INVALID;
	for (int i = 0; i < f->params; i++) values[i] = *(uint64_t *)params[i];
	run(f, grid, block, shared, values); // a fault comes out later
	return OK;
}

// Graphs.
typedef struct { Function *func; unsigned grid[3], block[3], shared; void **params, **extra; void *kern, *ctx; } NodeParams;
typedef char node_params_are_72_bytes[sizeof(NodeParams) == 72 ? 1 : -1];
enum { KERNEL, EMPTY, MARK };
typedef struct Node { int kind, id; struct Graph *owner; Function *f; unsigned grid[3], block[3], shared; uint64_t values[64]; Event *event; } Node;
typedef struct { unsigned char from_port, to_port, type, reserved[5]; } EdgeData;
enum { MAX_NODES = 256, MAX_EDGES = 1024 };
typedef struct Graph { int dropped; Node *nodes[MAX_NODES]; int used; struct { int from, to; } edges[MAX_EDGES]; int edge_count; } Graph;

CUresult cuGraphCreate(Graph **to, unsigned flags) { IN_CONTEXT("cuGraphCreate"); *to = calloc(1, sizeof(Graph)); count(GRAPHS, 1); return OK; }
CUresult cuGraphDestroy(Graph *g) { g->dropped = 1; count(GRAPHS, -1); return OK; } // kept, so that use after it shows
static CUresult add(Node **to, Graph *g, Node **after, size_t n, Node *node) {
	if (g->used == MAX_NODES) return INVALID;
	node->id = g->used, node->owner = g;
	g->nodes[g->used++] = *to = node;
	for (size_t i = 0; i < n; i++) {
		g->edges[g->edge_count].from = after[i]->id;
		g->edges[g->edge_count++].to = node->id;
		note("edge %d %d full\n", after[i]->id, node->id);
	}
	return OK;
}
static CUresult fill(Node *node, NodeParams *p) {
	if (p->extra || shape(p->grid, p->block, p->shared, p->func)) return INVALID;
	node->kind = KERNEL, node->f = p->func, node->shared = p->shared;
	memcpy(node->grid, p->grid, sizeof p->grid);
	memcpy(node->block, p->block, sizeof p->block);
	for (int i = 0; i < p->func->params; i++) node->values[i] = *(uint64_t *)p->params[i];
	return OK;
}
#ifdef OLD
#define KERNEL_NODE cuGraphAddKernelNode
#define SET_PARAMS cuGraphExecKernelNodeSetParams
#else
#define KERNEL_NODE cuGraphAddKernelNode_v2
#define SET_PARAMS cuGraphExecKernelNodeSetParams_v2
#endif
CUresult KERNEL_NODE(Node **to, Graph *g, Node **after, size_t n, NodeParams *p) {
	IN_CONTEXT("cuGraphAddKernelNode");
	Node *node = calloc(1, sizeof(Node));
	CUresult result = fill(node, p);
	return result ? result : add(to, g, after, n, node);
}
CUresult cuGraphAddEmptyNode(Node **to, Graph *g, Node **after, size_t n) {
	Node *node = calloc(1, sizeof(Node));
	node->kind = EMPTY;
	return add(to, g, after, n, node);
}
CUresult cuGraphAddEventRecordNode(Node **to, Graph *g, Node **after, size_t n, Event *e) {
	Node *node = calloc(1, sizeof(Node));
	node->kind = MARK, node->event = e;
	return add(to, g, after, n, node);
}
static CUresult link_nodes(Graph *g, Node **from, Node **to, EdgeData *data, size_t n) {
	for (size_t i = 0; i < n; i++) {
		if (g->edge_count == MAX_EDGES) return INVALID;
		g->edges[g->edge_count].from = from[i]->id;
		g->edges[g->edge_count++].to = to[i]->id;
		int programmatic = data && data[i].from_port == 1 && data[i].type == 1;
		if (programmatic && (from[i]->kind != KERNEL || to[i]->kind != KERNEL)) return INVALID;
		note("edge %d %d %s\n", from[i]->id, to[i]->id, programmatic ? "programmatic" : "full");
	}
	return OK;
}
CUresult cuGraphAddDependencies(Graph *g, Node **from, Node **to, size_t n) { IN_CONTEXT("cuGraphAddDependencies"); return link_nodes(g, from, to, 0, n); }
#ifndef OLD
CUresult cuGraphAddDependencies_v2(Graph *g, Node **from, Node **to, EdgeData *data, size_t n) { IN_CONTEXT("cuGraphAddDependencies_v2"); return link_nodes(g, from, to, data, n); }
#endif

typedef struct { Graph graph; Node copies[MAX_NODES]; } Instance;
CUresult cuGraphInstantiateWithFlags(Instance **to, Graph *g, unsigned long long flags) {
	IN_CONTEXT("cuGraphInstantiateWithFlags");
	*to = calloc(1, sizeof(Instance));
	(*to)->graph = *g;
	for (int i = 0; i < g->used; i++) (*to)->copies[i] = *g->nodes[i];
	count(INSTANCES, 1);
	return OK;
}
CUresult cuGraphUpload(Instance *e, Stream *s) { IN_CONTEXT("cuGraphUpload"); return s ? OK : INVALID; }
// Nodes run as late as the edges allow in the order of their numbers, from the
// end, so that a missing edge shows.
CUresult cuGraphLaunch(Instance *e, Stream *s) {
	IN_CONTEXT("cuGraphLaunch");
	if (!s) return INVALID;
	char done[MAX_NODES] = {0};
	for (int left = e->graph.used; left > 0; left--) {
		int next = -1;
		for (int i = e->graph.used - 1; i >= 0 && next < 0; i--) {
			if (done[i]) continue;
			next = i;
			for (int k = 0; k < e->graph.edge_count; k++)
				if (e->graph.edges[k].to == i && !done[e->graph.edges[k].from]) { next = -1; break; }
		}
		if (next < 0) return INVALID; // a cycle
		Node *node = &e->copies[next];
		done[next] = 1;
		if (node->kind == KERNEL && run(node->f, node->grid, node->block, node->shared, node->values)) return OK; // comes out at the wait
		if (node->kind == MARK) node->event->recorded = 1, node->event->at = now;
	}
	return OK;
}
CUresult SET_PARAMS(Instance *e, Node *node, NodeParams *p) {
	IN_CONTEXT("cuGraphExecKernelNodeSetParams");
	if (node->owner->dropped) return INVALID;
	note("set %d\n", node->id);
	return fill(&e->copies[node->id], p);
}
CUresult cuGraphExecDestroy(Instance *e) { free(e); count(INSTANCES, -1); return OK; }
