// Kernels that cost what an operator costs: bytes read and written where its operands lie, and FLOPs. What they compute has
// no meaning, but is finite as f16, bf16, f32 and f64, so that products of it are, too.

#include "backends/cuda/kernel_parameters.h"

using metaprof::cuda::Regions;
using metaprof::cuda::Word;

// Bits of which no exponent is full: below 2 in every type.
__device__ unsigned finite(unsigned long long index) {
  unsigned bits = static_cast<unsigned>(index) * 2654435761u;
  bits ^= bits >> 15;
  return (bits & 0x03ff03ffu) | 0x38003800u;
}

// Each region has blocks of its own: the first `reads` regions are read, the others written. Every thread computes
// `multiply_adds` besides.
extern "C" __global__ void metaprof_spend(Regions regions, int multiply_adds, unsigned* never) {
  int r = 0;
  while (r + 1 < regions.count && regions.first_block[r + 1] <= static_cast<int>(blockIdx.x)) ++r;
  const unsigned long long block = blockIdx.x - regions.first_block[r];
  const unsigned long long blocks = regions.first_block[r + 1] - regions.first_block[r];
  const unsigned long long first = block * blockDim.x + threadIdx.x;
  const unsigned long long step = blocks * blockDim.x;
  Word* const words = reinterpret_cast<Word*>(regions.address[r]);
  unsigned seen = 0;
  // What is asked for beyond the region's end is its beginning again.
  for (unsigned long long left = regions.amount[r]; left > 0;) {
    const unsigned long long here = left < regions.words[r] ? left : regions.words[r];
    if (r < regions.reads) {
#pragma unroll 4
      for (unsigned long long i = first; i < here; i += step) {
        const Word word = words[i];
        seen |= (word.x ^ word.y) + (word.z ^ word.w);
      }
    } else {
#pragma unroll 4
      for (unsigned long long i = first; i < here; i += step) {
        const unsigned bits = finite(i);
        words[i] = {bits, bits ^ 0x00110022u, bits ^ 0x00330044u, bits ^ 0x00550066u};
      }
    }
    left -= here;
  }
  float a = static_cast<float>(first), b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < multiply_adds; i += 4) {
    a = fmaf(a, 0.999f, 1.0f);
    b = fmaf(b, 0.999f, 1.0f);
    c = fmaf(c, 0.999f, 1.0f);
    d = fmaf(d, 0.999f, 1.0f);
  }
  // Never true, which the compiler does not know: finite words, whose sums are never all ones, and sums that converge.
  if (seen == 0xffffffffu && a + b + c + d == -1.0f) *never = seen;
}

// Sums as integers: what a load takes does not depend on what is computed.
__device__ unsigned short sum(unsigned short a, unsigned short b) { return a + b; }
__device__ unsigned sum(unsigned a, unsigned b) { return a + b; }
__device__ uint2 sum(uint2 a, uint2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ uint4 sum(uint4 a, uint4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// A sum of two tensors by loads of this width, four to a thread as in the framework's elementwise kernels.
template <class Load>
__device__ void add(const Load* left, const Load* right, Load* result, unsigned long long count) {
  constexpr int loads = 4;
  const unsigned long long first = blockIdx.x * static_cast<unsigned long long>(loads) * blockDim.x + threadIdx.x;
  Load a[loads], b[loads];
#pragma unroll
  for (int i = 0; i < loads; ++i) {
    const unsigned long long at = first + static_cast<unsigned long long>(i) * blockDim.x;
    if (at < count) {
      a[i] = left[at];
      b[i] = right[at];
    }
  }
#pragma unroll
  for (int i = 0; i < loads; ++i) {
    const unsigned long long at = first + static_cast<unsigned long long>(i) * blockDim.x;
    if (at < count) result[at] = sum(a[i], b[i]);
  }
}

extern "C" __global__ void metaprof_add_2(const unsigned short* left, const unsigned short* right, unsigned short* result,
                                          unsigned long long count) {
  add(left, right, result, count);
}
extern "C" __global__ void metaprof_add_4(const unsigned* left, const unsigned* right, unsigned* result,
                                          unsigned long long count) {
  add(left, right, result, count);
}
extern "C" __global__ void metaprof_add_8(const uint2* left, const uint2* right, uint2* result,
                                          unsigned long long count) {
  add(left, right, result, count);
}
extern "C" __global__ void metaprof_add_16(const uint4* left, const uint4* right, uint4* result,
                                           unsigned long long count) {
  add(left, right, result, count);
}
