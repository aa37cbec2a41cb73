// A driver for the tests of `stencil_runtime::cuda`: the functions of libcuda that the runtime
// calls, on host memory. It is stricter than a device: an object may be used only while the context
// of its device is current, and whatever lives in a context must be gone before it is released.
//
// Work is done when it is sent. Kernels are told by their names; their parameters are read from the
// PTX. The environment has the settings:
//
//   FAKE_CUDA_VERSION  the newest CUDA version that it knows
//   FAKE_CUDA_DEVICES  how many devices there are
//   FAKE_CUDA_MEMORY   bytes of each
//   FAKE_CUDA_JOINT    1 if memory can be put under chosen addresses
//   FAKE_CUDA_LOG      a file; every call adds a line of its name and device
//   FAKE_CUDA_FAIL     "NAME DEVICE CODE": this call fails on this device; NAME may be a kernel,
//                      which then fails while it runs
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef int Result;
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500,
       TOO_LARGE = 720 };
enum { MOST_DEVICES = 8, MOST_PARAMETERS = 64, MULTIPROCESSORS = 4, RESIDENT = 2 };

// The first member of all objects.
typedef struct { int device; } Object;
typedef struct { Object object; int uses, live; Result fault; size_t used; } Context;
typedef struct { Object object; double at; } Event;
typedef struct { Object object; char *text; struct Function *functions; } Module;
typedef struct Function {
    Object object; struct Function *next; char name[128];
    int parameters; size_t sizes[MOST_PARAMETERS], offsets[MOST_PARAMETERS];
} Function;
typedef struct {
    Function *function; unsigned grid[3], block[3], shared; uint64_t words[MOST_PARAMETERS];
    int cooperative; unsigned cluster[3];
    uint64_t from; void *to; size_t bytes; // a copy to the host in place of a kernel
} Call;
typedef struct Node { Call call; size_t place; struct Node *next; } Node;
typedef struct { Object object; Node *first, *last; size_t count; } Graph;
typedef struct { Object object; Call *calls; size_t count; } Runnable;
// A block of memory has this before it.
typedef struct Block { Object object; size_t bytes; struct Block *next; } Block;
enum { BLOCK_HEAD = 256 };

static Context contexts[MOST_DEVICES];
static Block *blocks; // of all devices
static __thread Context *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long setting(const char *name, long other) {
    const char *text = getenv(name);
    return text ? atol(text) : other;
}

static void note(const char *call, int device) {
    const char *path = getenv("FAKE_CUDA_LOG");
    if (!path) return;
    pthread_mutex_lock(&lock);
    FILE *file = fopen(path, "a");
    if (file) { fprintf(file, "%s %d\n", call, device); fclose(file); }
    pthread_mutex_unlock(&lock);
}

static Result planned(const char *call, int device) {
    char name[128]; int where, code;
    const char *text = getenv("FAKE_CUDA_FAIL");
    if (!text || sscanf(text, "%127s %d %d", name, &where, &code) != 3) return OK;
    return !strcmp(name, call) && where == device ? code : OK;
}

// What begins every call on an object: its context must be current.
static Result enter(const char *call, const void *object) {
    int device = object ? ((const Object *)object)->device : current ? current->object.device : -1;
    note(call, device);
    if (!current) return INVALID_CONTEXT;
    if (device != current->object.device) return INVALID_HANDLE;
    return planned(call, device);
}
#define ENTER(object) \
    do { Result entered = enter(__func__, object); if (entered) return entered; } while (0)

static void *made(size_t bytes) {
    Object *object = calloc(1, bytes);
    object->device = current->object.device;
    __atomic_add_fetch(&current->live, 1, __ATOMIC_SEQ_CST);
    return object;
}

static Result gone(void *object) {
    __atomic_sub_fetch(&current->live, 1, __ATOMIC_SEQ_CST);
    free(object);
    return OK;
}

Result cuDriverGetVersion(int *version) {
    *version = (int)setting("FAKE_CUDA_VERSION", 13000);
    return OK;
}
Result cuInit(unsigned flags) {
    for (int i = 0; i < MOST_DEVICES; i++) contexts[i].object.device = i;
    return flags ? INVALID_VALUE : setting("FAKE_CUDA_DEVICES", 1) ? OK : NO_DEVICE;
}
Result cuGetErrorName(Result code, const char **text) {
    static __thread char name[32];
    snprintf(name, sizeof name, "FAKE_ERROR_%d", code);
    *text = name;
    return OK;
}
Result cuGetErrorString(Result code, const char **text) {
    (void)code;
    *text = "as planned";
    return OK;
}

Result cuDeviceGetCount(int *count) { *count = (int)setting("FAKE_CUDA_DEVICES", 1); return OK; }
Result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return OK; }
Result cuDeviceGetName(char *text, int length, int device) {
    (void)device;
    snprintf(text, (size_t)length, "Fake GPU");
    return OK;
}
Result cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)setting("FAKE_CUDA_MEMORY", 64 << 20);
    return OK;
}
Result cuDeviceGetUuid_v2(char *uuid, int device) { memset(uuid, device, 16); return OK; }
Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 11: *value = 0x7fffffff; break;       // pitch of a copy in two dimensions
    case 13: *value = 1000000; break;          // clock rate in kHz
    case 16: *value = MULTIPROCESSORS; break;
    case 36: *value = 2000000; break;          // memory clock rate in kHz
    case 38: *value = 1 << 20; break;          // level 2 cache
    case 75: *value = 9; break;                // compute capability, major
    case 76: *value = 0; break;                // compute capability, minor
    case 97: *value = 99 * 1024; break;        // shared memory of a block
    case 102: *value = (int)setting("FAKE_CUDA_JOINT", 0); break; // memory under chosen addresses
    default: return INVALID_VALUE;
    }
    return OK;
}

Result cuDevicePrimaryCtxRetain(Context **context, int device) {
    note(__func__, device);
    Result failed = planned(__func__, device);
    if (failed) return failed;
    *context = &contexts[device];
    __atomic_add_fetch(&(*context)->uses, 1, __ATOMIC_SEQ_CST);
    return OK;
}
Result cuDevicePrimaryCtxRelease_v2(int device) {
    note(__func__, device);
    Context *context = &contexts[device];
    int uses = __atomic_sub_fetch(&context->uses, 1, __ATOMIC_SEQ_CST);
    if (uses < 0) note("FAULT: released too often:", device);
    if (uses == 0 && context->live) note("FAULT: objects outlive their context:", device);
    return OK;
}
Result cuCtxSetCurrent(Context *context) {
    if (!context || context->uses <= 0) return INVALID_CONTEXT;
    current = context;
    return planned(__func__, context->object.device);
}
Result cuCtxGetCurrent(Context **context) { *context = current; return OK; }
Result cuMemGetInfo_v2(size_t *available, size_t *total) {
    ENTER(NULL);
    *total = (size_t)setting("FAKE_CUDA_MEMORY", 64 << 20);
    *available = *total - current->used;
    return OK;
}

Result cuStreamCreate(Object **stream, unsigned flags) {
    ENTER(NULL);
    (void)flags;
    *stream = made(sizeof **stream);
    return OK;
}
Result cuStreamDestroy_v2(Object *stream) { ENTER(stream); return gone(stream); }
Result cuStreamSynchronize(Object *stream) { ENTER(stream); return current->fault; }

Result cuEventCreate(Event **event, unsigned flags) {
    ENTER(NULL);
    (void)flags;
    *event = made(sizeof **event);
    return OK;
}
Result cuEventDestroy_v2(Event *event) { ENTER(event); return gone(event); }
Result cuEventRecord(Event *event, Object *stream) {
    ENTER(event);
    if (stream->device != event->object.device) return INVALID_HANDLE;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->at = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    return OK;
}
// All work is done when it is sent, so that a point is reached when it is put down.
Result cuStreamWaitEvent(Object *stream, Event *event, unsigned flags) {
    ENTER(stream);
    return flags || event->at == 0 ? INVALID_VALUE : OK;
}
Result cuEventSynchronize(Event *event) { ENTER(event); return current->fault; }
Result cuEventElapsedTime_v2(float *milliseconds, Event *from, Event *to) {
    ENTER(from);
    *milliseconds = (float)(to->at - from->at);
    return OK;
}

Result cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    ENTER(NULL);
    if (current->used + bytes > (size_t)setting("FAKE_CUDA_MEMORY", 64 << 20)) return OUT_OF_MEMORY;
    Block *block = made(BLOCK_HEAD + bytes);
    block->bytes = bytes;
    // New memory holds anything.
    memset((char *)block + BLOCK_HEAD, 0xa5, bytes);
    __atomic_add_fetch(&current->used, bytes, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&lock);
    *address = (uint64_t)(uintptr_t)block + BLOCK_HEAD;
    return OK;
}
static Block *block_of(uint64_t address) { return (Block *)(uintptr_t)(address - BLOCK_HEAD); }
// Memory under chosen addresses: pages of a handle's device, which others may reach too.
enum { PAGE = 4096 };
typedef struct { Object object; size_t bytes; } Pages;
typedef struct Mapped {
    uint64_t first; size_t bytes; int device, reach; struct Mapped *next;
} Mapped;
typedef struct { int kind, device; } Location;
typedef struct { int kind, handles; Location location; } Properties; // their first members
typedef struct { Location location; int flags; } Access;
static Mapped *mapped;

Result cuMemGetAllocationGranularity(size_t *page, const Properties *wanted, int option) {
    *page = PAGE;
    return wanted->kind == 1 && wanted->location.kind == 1 && option == 0 ? OK : INVALID_VALUE;
}
Result cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t at,
                           uint64_t flags) {
    ENTER(NULL);
    if (bytes % PAGE || alignment || at || flags) return INVALID_VALUE;
    void *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *address = (uint64_t)(uintptr_t)range;
    return range == MAP_FAILED ? OUT_OF_MEMORY : OK;
}
Result cuMemAddressFree(uint64_t address, size_t bytes) {
    ENTER(NULL);
    for (Mapped *one = mapped; one; one = one->next)
        if (one->first - address < bytes) note("FAULT: addresses with memory:", one->device);
    return munmap((void *)(uintptr_t)address, bytes) ? INVALID_VALUE : OK;
}
Result cuMemCreate(Pages **handle, size_t bytes, const Properties *wanted, uint64_t flags) {
    int device = wanted->location.device;
    note(__func__, device);
    Result failed = planned(__func__, device);
    if (failed) return failed;
    if (bytes % PAGE || flags || wanted->location.kind != 1) return INVALID_VALUE;
    if (contexts[device].used + bytes > (size_t)setting("FAKE_CUDA_MEMORY", 64 << 20))
        return OUT_OF_MEMORY;
    __atomic_add_fetch(&contexts[device].used, bytes, __ATOMIC_SEQ_CST);
    *handle = calloc(1, sizeof **handle);
    (*handle)->object.device = device;
    (*handle)->bytes = bytes;
    return OK;
}
Result cuMemMap(uint64_t address, size_t bytes, size_t offset, Pages *handle, uint64_t flags) {
    if (offset || flags || bytes != handle->bytes) return INVALID_VALUE;
    void *range = (void *)(uintptr_t)address;
    if (mprotect(range, bytes, PROT_READ | PROT_WRITE)) return INVALID_VALUE;
    memset(range, 0xa5, bytes);
    Mapped *one = calloc(1, sizeof *one);
    *one = (Mapped){address, bytes, handle->object.device, 0, NULL};
    pthread_mutex_lock(&lock);
    one->next = mapped;
    mapped = one;
    pthread_mutex_unlock(&lock);
    return OK;
}
Result cuMemRelease(Pages *handle) { free(handle); return OK; }
Result cuMemSetAccess(uint64_t address, size_t bytes, const Access *all, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (all[i].location.kind != 1 || all[i].flags != 3) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (Mapped *one = mapped; one; one = one->next)
        for (size_t i = 0; i < count && one->first - address < bytes; i++)
            one->reach |= 1 << all[i].location.device;
    pthread_mutex_unlock(&lock);
    return OK;
}
Result cuMemUnmap(uint64_t address, size_t bytes) {
    ENTER(NULL);
    pthread_mutex_lock(&lock);
    for (Mapped **link = &mapped; *link;) {
        Mapped *one = *link;
        if (one->first - address >= bytes) { link = &one->next; continue; }
        __atomic_sub_fetch(&contexts[one->device].used, one->bytes, __ATOMIC_SEQ_CST);
        *link = one->next;
        free(one);
    }
    pthread_mutex_unlock(&lock);
    return OK;
}
// How many of some bytes the current device reaches under chosen addresses.
static size_t reached(uint64_t address, size_t bytes) {
    size_t found = 0;
    for (Mapped *one = mapped; one; one = one->next) {
        uint64_t first = one->first > address ? one->first : address;
        uint64_t end = one->first + one->bytes;
        if (end > address + bytes) end = address + bytes;
        if (one->reach >> current->object.device & 1 && first < end) found += end - first;
    }
    return found;
}
// Whether so many bytes from an address on lie in one block of the current device, or where it
// reaches all of them.
static int lie_within(uint64_t address, size_t bytes) {
    pthread_mutex_lock(&lock);
    int found = reached(address, bytes) == bytes;
    for (Block *block = blocks; block && !found; block = block->next) {
        uint64_t first = (uint64_t)(uintptr_t)block + BLOCK_HEAD;
        found = block->object.device == current->object.device && address >= first
            && address - first <= block->bytes && bytes <= block->bytes - (address - first);
    }
    pthread_mutex_unlock(&lock);
    return found;
}
Result cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address) {
    ENTER(NULL);
    pthread_mutex_lock(&lock);
    Block *block = blocks;
    while (block && (address < (uint64_t)(uintptr_t)block + BLOCK_HEAD ||
                     address >= (uint64_t)(uintptr_t)block + BLOCK_HEAD + block->bytes))
        block = block->next;
    if (block) { *base = (uint64_t)(uintptr_t)block + BLOCK_HEAD; *bytes = block->bytes; }
    pthread_mutex_unlock(&lock);
    return block ? OK : NOT_FOUND;
}
static void *memory(uint64_t address) { return (void *)(uintptr_t)address; }
Result cuMemAllocHost_v2(void **address, size_t bytes) {
    ENTER(NULL);
    *address = (char *)made(BLOCK_HEAD + bytes) + BLOCK_HEAD;
    return OK;
}
Result cuMemFreeHost(void *address) {
    void *block = (char *)address - BLOCK_HEAD;
    ENTER(block);
    return gone(block);
}
Result cuMemFree_v2(uint64_t address) {
    Block *block = block_of(address);
    ENTER(block);
    __atomic_sub_fetch(&current->used, block->bytes, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&lock);
    Block **link = &blocks;
    while (*link != block) link = &(*link)->next;
    *link = block->next;
    pthread_mutex_unlock(&lock);
    return gone(block);
}
Result cuMemsetD8Async(uint64_t address, unsigned char value, size_t count, Object *stream) {
    ENTER(stream);
    if (count > block_of(address)->bytes) return INVALID_VALUE;
    memset(memory(address), value, count);
    return OK;
}
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Object *stream) {
    ENTER(stream);
    if (!lie_within(to, bytes)) return INVALID_VALUE;
    memcpy(memory(to), from, bytes);
    return OK;
}
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Object *stream) {
    ENTER(stream);
    if (!lie_within(from, bytes)) return INVALID_VALUE;
    memcpy(to, memory(from), bytes);
    return OK;
}
Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Object *stream) {
    ENTER(stream);
    if (!lie_within(to, bytes) || !lie_within(from, bytes)) return INVALID_VALUE;
    memmove(memory(to), memory(from), bytes);
    return OK;
}
typedef struct {
    size_t x, y;
    int kind;
    void *host;
    uint64_t device;
    void *array;
    size_t pitch;
} Side;
typedef struct { Side from, to; size_t width, height; } Rectangle;
Result cuMemcpy2DAsync_v2(const Rectangle *copy, Object *stream) {
    ENTER(stream);
    size_t rows = copy->height ? copy->height - 1 : 0;
    if (copy->from.kind != 2 || copy->to.kind != 2 || copy->width > copy->from.pitch
        || !lie_within(copy->from.device, rows * copy->from.pitch + copy->width)
        || !lie_within(copy->to.device, rows * copy->to.pitch + copy->width))
        return INVALID_VALUE;
    for (size_t row = 0; row < copy->height; row++)
        memmove(memory(copy->to.device + row * copy->to.pitch),
                memory(copy->from.device + row * copy->from.pitch), copy->width);
    return OK;
}
// From memory of any device.
Result cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, Object *stream) {
    ENTER(stream);
    if (!lie_within(to, bytes)) return INVALID_VALUE;
    memmove(memory(to), memory(from), bytes);
    return OK;
}
Result cuDeviceCanAccessPeer(int *can, int device, int other) {
    note(__func__, device);
    *can = device != other;
    return OK;
}
Result cuCtxEnablePeerAccess(Context *other, unsigned flags) {
    ENTER(NULL);
    return flags || other == current ? INVALID_CONTEXT : OK;
}

Result cuModuleLoadDataEx(Module **module, const char *image, unsigned options, void *names,
                          void *values) {
    ENTER(NULL);
    (void)options, (void)names, (void)values;
    if (!strstr(image, ".version")) return INVALID_IMAGE;
    *module = made(sizeof **module);
    (*module)->text = strdup(image);
    return OK;
}
Result cuModuleUnload(Module *module) {
    ENTER(module);
    free(module->text);
    for (Function *function = module->functions, *next; function; function = next) {
        next = function->next;
        free(function);
    }
    return gone(module);
}

static size_t size_of_type(const char *text) {
    char kind; int bits;
    return sscanf(text, ".param .%c%d", &kind, &bits) == 2 ? (size_t)bits / 8 : 0;
}
// A function lives as long as its module.
Result cuModuleGetFunction(Function **function, Module *module, const char *name) {
    ENTER(module);
    char entry[160];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const char *text = strstr(module->text, entry);
    if (!text) return NOT_FOUND;
    *function = calloc(1, sizeof **function);
    (*function)->object = module->object;
    pthread_mutex_lock(&lock);
    (*function)->next = module->functions;
    module->functions = *function;
    pthread_mutex_unlock(&lock);
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    const char *end = strchr(text, ')');
    size_t offset = 0;
    while ((text = strstr(text, ".param")) && text < end) {
        size_t size = size_of_type(text);
        offset = (offset + size - 1) / size * size;
        (*function)->sizes[(*function)->parameters] = size;
        (*function)->offsets[(*function)->parameters++] = offset;
        offset += size;
        text++;
    }
    return OK;
}
Result cuFuncGetAttribute(int *value, int attribute, Function *function) {
    ENTER(function);
    *value = attribute == 0 ? 1024 : attribute == 4 ? 16 : 0; // most threads; registers; bytes
    return OK;
}
Result cuFuncSetAttribute(Function *function, int attribute, int value) {
    ENTER(function);
    return attribute == 8 && value <= 99 * 1024 ? OK : INVALID_VALUE;
}
Result cuFuncGetParamInfo(Function *function, size_t place, size_t *offset, size_t *size) {
    ENTER(function);
    if (place >= (size_t)function->parameters) return INVALID_VALUE;
    *offset = function->offsets[place];
    *size = function->sizes[place];
    return OK;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *function, int threads,
                                                   size_t shared) {
    ENTER(function);
    (void)threads, (void)shared;
    *blocks = RESIDENT;
    return OK;
}

// The kernels, as their PTX says.
static void smear(const Call *call) {
    const float *from = memory(call->words[0]);
    float *to = memory(call->words[1]), alpha;
    int32_t n = (int32_t)call->words[2];
    memcpy(&alpha, &call->words[3], sizeof alpha);
    float step = (float)(int64_t)call->words[4];
    long threads = (long)call->grid[0] * call->block[0];
    for (long i = 1; i < n - 1 && i < threads; i++) {
        float sum = (from[i - 1] - from[i]) + (from[i + 1] - from[i]);
        to[i] = (from[i] + alpha * sum) + step;
    }
}
// wave(older, old, new, flags, largest, n, epoch): the blocks raise their flags by 2, from the
// epoch on.
static void wave(const Call *call) {
    const float *older = memory(call->words[0]), *old = memory(call->words[1]);
    float *new = memory(call->words[2]), *largest = memory(call->words[4]);
    int32_t *flags = memory(call->words[3]), n = (int32_t)call->words[5];
    if (!call->cooperative) note("FAULT: blocks wait for each other:", current->object.device);
    for (unsigned block = 0; block < call->grid[0]; block++) {
        if (flags[block] != (int32_t)call->words[6]) note("FAULT: epoch:", current->object.device);
        flags[block] += 2;
    }
    *largest = 0;
    for (int32_t i = 0; i < n; i++) {
        new[i] = 0.5f * old[i] + 0.25f * older[i];
        if (new[i] > *largest) *largest = new[i];
    }
}
// smooth(from, to, n): the mean of both neighbours; the ends stay.
static void smooth(const Call *call) {
    const float *from = memory(call->words[0]);
    float *to = memory(call->words[1]);
    int32_t n = (int32_t)call->words[2];
    for (int32_t i = 0; i < n; i++)
        to[i] = i == 0 || i == n - 1 ? from[i] : 0.5f * (from[i - 1] + from[i + 1]);
}
// smooth_rows(from, to, n, row): smooth, of the blocks from number `row` on.
static void smooth_rows(const Call *call) {
    const float *from = memory(call->words[0]);
    float *to = memory(call->words[1]);
    int32_t n = (int32_t)call->words[2], first = (int32_t)call->words[3] * (int32_t)call->block[0];
    int32_t end = first + (int32_t)(call->grid[0] * call->block[0]);
    for (int32_t i = first; i < n && i < end; i++)
        to[i] = i == 0 || i == n - 1 ? from[i] : 0.5f * (from[i - 1] + from[i + 1]);
}
// halve(cells, n)
static void halve(const Call *call) {
    float *cells = memory(call->words[0]);
    for (int32_t i = 0; i < (int32_t)call->words[1]; i++) cells[i] *= 0.5f;
}
// smooth_unless(from, to, n, condition): smooth, where the condition is 0.
static void smooth_unless(const Call *call) {
    if (!*(int32_t *)memory(call->words[3])) smooth(call);
}
// met(condition, step, n): the condition holds from step n on.
static void met(const Call *call) {
    int32_t *condition = memory(call->words[0]);
    if (!*condition) *condition = (int64_t)call->words[1] >= (int32_t)call->words[2];
}
// in_clusters(from, to, n): smooth, whose blocks come in clusters of two.
static void in_clusters(const Call *call) {
    const unsigned *cluster = call->cluster;
    if (cluster[0] != 2 || cluster[1] != 1 || cluster[2] != 1)
        note("FAULT: no clusters of two:", current->object.device);
    smooth(call);
}
// Where row `r` and column `c` of `n` columns lie in each layout; `p` is the pitch.
static long in_pitch(long r, long c, long n, long p) { (void)n; return r * p + c; }
static long in_diagonals(long r, long c, long n, long p) {
    (void)p;
    return ((r / 4) * (n + 3) + r % 4 + c) * 4 + r % 4;
}
static long in_blocks(long r, long c, long n, long p) {
    (void)p;
    return ((r / 4) * ((n + 7) / 8) + c / 8) * 32 + (r % 4) * 8 + c % 8;
}
// to_LAYOUT(from, to, n, p): copies 8 rows of n cells, which from has without padding; from_pitch
// copies them back.
static void copy(const Call *call, long (*to)(long, long, long, long), int back) {
    float *from = memory(call->words[0]), *there = memory(call->words[1]);
    long n = (int32_t)call->words[2], p = (int32_t)call->words[3];
    for (long r = 0; r < 8; r++)
        for (long c = 0; c < n; c++)
            if (back) there[r * n + c] = from[to(r, c, n, p)];
            else there[to(r, c, n, p)] = from[r * n + c];
}
static void to_pitch(const Call *call) { copy(call, in_pitch, 0); }
static void from_pitch(const Call *call) { copy(call, in_pitch, 1); }
static void to_diagonals(const Call *call) { copy(call, in_diagonals, 0); }
static void to_blocks(const Call *call) { copy(call, in_blocks, 0); }
static const struct { const char *name; void (*run)(const Call *); } kernels[] = {
    {"smear", smear}, {"wave", wave}, {"smooth", smooth}, {"halve", halve},
    {"smooth_unless", smooth_unless}, {"smooth_rows", smooth_rows}, {"met", met}, {"in_clusters", in_clusters},
    {"to_pitch", to_pitch}, {"from_pitch", from_pitch},
    {"to_diagonals", to_diagonals}, {"to_blocks", to_blocks}};

static void run(const Call *call) {
    if (call->to) { memcpy(call->to, memory(call->from), call->bytes); return; }
    Result failed = planned(call->function->name, current->object.device);
    if (failed) { current->fault = failed; return; }
    note(call->function->name, current->object.device);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, call->function->name)) kernels[i].run(call);
}
static Call call_of(Function *function, const unsigned *sizes, void **parameters) {
    Call call = {.function = function, .shared = sizes[6]};
    memcpy(call.grid, sizes, sizeof call.grid);
    memcpy(call.block, sizes + 3, sizeof call.block);
    for (int i = 0; i < function->parameters; i++)
        memcpy(&call.words[i], parameters[i], function->sizes[i]);
    return call;
}
// CUlaunchAttribute and CUlaunchConfig; grid, block and shared memory are seven numbers in a row.
enum { COOPERATIVE = 2, CLUSTER = 4 };
typedef struct {
    int id; char pad[4];
    union { char pad[64]; unsigned cluster[3]; } value;
} Attribute;
typedef struct { unsigned sizes[7]; Object *stream; Attribute *attributes; unsigned count; } Config;

// Blocks that wait for each other must all be there at once.
static Result attribute(Call *call, int id, const unsigned *value) {
    if (id == CLUSTER) {
        for (int i = 0; i < 3; i++)
            if (!value[i] || call->grid[i] % value[i]) return INVALID_VALUE;
        memcpy(call->cluster, value, sizeof call->cluster);
        return OK;
    }
    if (id == COOPERATIVE) {
        unsigned blocks = call->grid[0] * call->grid[1] * call->grid[2];
        if (*value && blocks > MULTIPROCESSORS * RESIDENT) return TOO_LARGE;
        call->cooperative = (int)*value;
        return OK;
    }
    return INVALID_VALUE;
}
Result cuLaunchKernelEx(const Config *config, Function *function, void **parameters, void **extra) {
    ENTER(config->stream);
    if (function->object.device != config->stream->device || extra) return INVALID_HANDLE;
    Call call = call_of(function, config->sizes, parameters);
    for (unsigned i = 0; i < config->count; i++) {
        Attribute *one = &config->attributes[i];
        Result refused = attribute(&call, one->id, one->value.cluster);
        if (refused) return refused;
    }
    run(&call);
    return OK;
}

// CUDA_KERNEL_NODE_PARAMS; grid, block and shared memory are seven numbers in a row.
typedef struct {
    Function *function; unsigned sizes[7]; void **parameters, **extra, *kernel, *context;
} NodeParameters;

Result cuGraphCreate(Graph **graph, unsigned flags) {
    ENTER(NULL);
    *graph = made(sizeof **graph);
    return flags ? INVALID_VALUE : OK;
}
Result cuGraphDestroy(Graph *graph) {
    ENTER(graph);
    for (Node *node = graph->first, *next; node; node = next) { next = node->next; free(node); }
    return gone(graph);
}
Result cuGraphAddKernelNode_v2(Node **node, Graph *graph, Node **waits, size_t count,
                               const NodeParameters *parameters) {
    ENTER(graph);
    for (size_t i = 0; i < count; i++)
        if (!waits[i] || waits[i]->place >= graph->count) return INVALID_VALUE;
    *node = calloc(1, sizeof **node);
    (*node)->call = call_of(parameters->function, parameters->sizes, parameters->parameters);
    (*node)->place = graph->count++;
    if (graph->last) graph->last->next = *node; else graph->first = *node;
    graph->last = *node;
    return OK;
}
// CUDA_MEMCPY3D: of the two sides, the kind and what says where they are.
typedef struct {
    size_t at[4]; int from_kind; const void *from_host; uint64_t from; void *from_array, *more;
    size_t from_pitch[2], to_at[4]; int to_kind; void *to; uint64_t to_device;
    void *to_array, *to_more; size_t to_pitch[2], width, height, depth;
} Copy;
enum { HOST = 1, DEVICE = 2 };
Result cuGraphAddMemcpyNode(Node **node, Graph *graph, Node **waits, size_t count,
                            const Copy *copy, Context *context) {
    ENTER(graph);
    for (size_t i = 0; i < count; i++)
        if (!waits[i] || waits[i]->place >= graph->count) return INVALID_VALUE;
    if (context != current) return INVALID_CONTEXT;
    if (copy->from_kind != DEVICE || copy->to_kind != HOST) return INVALID_VALUE;
    if (copy->height != 1 || copy->depth != 1 || !copy->to) return INVALID_VALUE;
    if (!lie_within(copy->from, copy->width)) return INVALID_VALUE;
    *node = calloc(1, sizeof **node);
    (*node)->call.from = copy->from;
    (*node)->call.to = copy->to;
    (*node)->call.bytes = copy->width;
    (*node)->place = graph->count++;
    if (graph->last) graph->last->next = *node; else graph->first = *node;
    graph->last = *node;
    return OK;
}
Result cuGraphKernelNodeSetAttribute(Node *node, int id, const void *value) {
    ENTER(node->call.function);
    return attribute(&node->call, id, value);
}
Result cuGraphInstantiateWithParams(Runnable **runnable, Graph *graph, void *parameters) {
    ENTER(graph);
    (void)parameters;
    *runnable = made(sizeof **runnable);
    (*runnable)->calls = calloc(graph->count + 1, sizeof *(*runnable)->calls);
    for (Node *node = graph->first; node; node = node->next)
        (*runnable)->calls[(*runnable)->count++] = node->call;
    return OK;
}
Result cuGraphExecKernelNodeSetParams_v2(Runnable *runnable, Node *node,
                                         const NodeParameters *parameters) {
    ENTER(runnable);
    Call *call = &runnable->calls[node->place];
    Call before = *call;
    *call = call_of(parameters->function, parameters->sizes, parameters->parameters);
    call->cooperative = before.cooperative;
    memcpy(call->cluster, before.cluster, sizeof call->cluster);
    return OK;
}
Result cuGraphUpload(Runnable *runnable, Object *stream) {
    (void)stream;
    ENTER(runnable);
    return OK;
}
Result cuGraphLaunch(Runnable *runnable, Object *stream) {
    ENTER(stream);
    for (size_t i = 0; i < runnable->count; i++) run(&runnable->calls[i]);
    return OK;
}
Result cuGraphExecDestroy(Runnable *runnable) {
    ENTER(runnable);
    free(runnable->calls);
    return gone(runnable);
}
