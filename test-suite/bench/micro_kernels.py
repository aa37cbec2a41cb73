"""The kernels of micro.py in CUDA, as text."""

ACCESSES = 100
UNROLLS = [1, 2, 4, 8, 16, 32, 64]

GLOBAL = r"""
extern "C" __global__ void read_NAME(const unsigned* a, unsigned* sums, long long* clocks, int each,
                                     int thread_step, int access_step, long long block_step) {
    const unsigned* p = a + blockIdx.x * block_step + (long long)threadIdx.x * thread_step;
    #pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        __syncthreads();
        long long start = clock64();
        unsigned sum = 0;
        #pragma unroll 8
        for (int k = 0; k < each; k++) sum += LOAD(p + (long long)k * access_step);
        // The barrier needs the sum of every thread, and the clock is read behind it.
        int odd = __syncthreads_or(sum == 0x9e3779b9u);
        long long end = clock64();
        if (threadIdx.x == 0 && blockIdx.x == 0) clocks[turn] = end - start + (odd & 1);
        sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
        if (gridDim.x > 1) return;
    }
}
"""

SHARED = r"""
#define WORDS 4096
extern "C" __global__ void chain_COUNT(const int* starts, long long* clocks, unsigned* found) {
    __shared__ unsigned words[WORDS];
    unsigned base = (unsigned)__cvta_generic_to_shared(words);
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = base + 4 * (i + 1);
    unsigned at = 0;
    #pragma unroll 1
    for (int turn = 0; turn < 3; turn++) {
        at = base + 4 * starts[threadIdx.x % 32];
        __syncthreads_or(at == 1);
        long long start = clock64();
        #pragma unroll
        for (int k = 0; k < COUNT; k++)
            asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at) :: "memory");
        int odd = __syncthreads_or(at == 1);
        long long end = clock64();
        if (threadIdx.x == 0) clocks[0] = end - start + (odd & 1);
    }
    found[threadIdx.x] = (at - base) / 4;
}
extern "C" __global__ void apart_COUNT(const int* starts, long long* clocks, unsigned* found) {
    __shared__ unsigned words[WORDS];
    unsigned base = (unsigned)__cvta_generic_to_shared(words);
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = i * 2654435761u;
    unsigned sum[4];
    #pragma unroll 1
    for (int turn = 0; turn < 3; turn++) {
        unsigned at = base + 4 * starts[threadIdx.x % 32];
        sum[0] = sum[1] = sum[2] = sum[3] = at & 0;
        __syncthreads_or(at == 1);
        long long start = clock64();
        #pragma unroll
        for (int k = 0; k < COUNT; k++) {
            unsigned word;
            asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at + 4 * k) : "memory");
            sum[k % 4] ^= word;
        }
        int odd = __syncthreads_or((sum[0] ^ sum[1] ^ sum[2] ^ sum[3]) == 0x9e3779b9u);
        long long end = clock64();
        if (threadIdx.x == 0) clocks[0] = end - start + (odd & 1);
    }
    found[threadIdx.x] = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}
"""

LOOP = r"""
extern "C" __global__ void one_FACTOR(float x, long long* clocks, float* found) {
    __shared__ volatile float cells[1024];
    long long start, end;
    #pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        cells[threadIdx.x] = 0;
        __syncthreads();
        start = clock64();
        #pragma unroll FACTOR
        for (int i = 0; i < 1024; i++) cells[threadIdx.x] += x;
        __syncthreads();
        end = clock64();
    }
    if (threadIdx.x == 0) clocks[0] = end - start;
    found[threadIdx.x] = cells[threadIdx.x];
}
extern "C" __global__ void each_FACTOR(float x, long long* clocks, float* found) {
    __shared__ float cells[256 * 32];
    long long start, end;
    #pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 256; i++) cells[i * 32 + threadIdx.x] = 0;
        __syncthreads();
        start = clock64();
        #pragma unroll 1
        for (int pass = 0; pass < 4; pass++) {
            #pragma unroll FACTOR
            for (int i = 0; i < 256; i++) cells[i * 32 + threadIdx.x] += x;
            __syncwarp();
        }
        __syncthreads();
        end = clock64();
    }
    if (threadIdx.x == 0) clocks[0] = end - start;
    float sum = 0;
    for (int i = 0; i < 256; i++) sum += cells[i * 32 + threadIdx.x];
    found[threadIdx.x] = sum;
}
"""


def kernels():
    """The text of all kernels."""
    parts = [GLOBAL.replace("NAME", name).replace("LOAD", load)
             for name, load in (("L1", "*"), ("L2", "__ldcg"))]
    parts += [SHARED.replace("COUNT", str(count)) for count in (0, ACCESSES)]
    parts += [LOOP.replace("FACTOR", str(factor)) for factor in UNROLLS]
    return "".join(parts)
