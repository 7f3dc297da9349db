#include "neuron/kernels/matrix_tiles.h"

#include <immintrin.h>

#include "neuron/kernels/matrix_target.h"

namespace neuron::kernels {
namespace {

NEURON_INLINE __m512 widen(const char* source, __mmask16 mask) {
  __m256i bits = _mm256_maskz_loadu_epi16(mask, source);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Rows of a rounding, kept in registers.
template <bool kAdds>
struct Rounder {
  const float* sums;
  char* target;
  const char* addend;
  int64_t target_row, addend_row, rows;
  __mmask32 columns;
  __mmask16 special = 0;

  NEURON_INLINE explicit Rounder(const MatrixRounding& x)
      : sums(x.sums),
        target(x.target),
        addend(x.addend),
        target_row(x.target_row),
        addend_row(x.addend_row),
        rows(x.rows),
        columns(x.columns >= 32 ? ~__mmask32{0} : (__mmask32{1} << x.columns) - 1) {}

  NEURON_INLINE void round(int64_t count) {
    if (count > rows) count = rows;
    rows -= count;
    for (; count > 0; --count) {
      __m512 x = _mm512_load_ps(sums), y = _mm512_load_ps(sums + 16);
      if constexpr (kAdds) {
        x = _mm512_add_ps(widen(addend, static_cast<__mmask16>(columns)), x);
        y = _mm512_add_ps(widen(addend + 32, static_cast<__mmask16>(columns >> 16)), y);
        // Twice the bits less one, of which the largest belongs to zero and the smallest to denormal numbers.
        const __m512i p = _mm512_castps_si512(x), q = _mm512_castps_si512(y), one = _mm512_set1_epi32(1);
        const __m512i magnitude = _mm512_min_epu32(_mm512_sub_epi32(_mm512_add_epi32(p, p), one),
                                                   _mm512_sub_epi32(_mm512_add_epi32(q, q), one));
        special = special | _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x00ffffff));
        addend += addend_row;
      }
      special = special | _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q);
      const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(y, x));
      if (columns == ~__mmask32{0}) {
        _mm512_storeu_si512(target, rounded);
      } else {
        _mm512_mask_storeu_epi16(target, columns, rounded);
      }
      __builtin_prefetch(target + 2 * kLineBytes - 1, 1);  // what the next block on the right will write
      sums += 32;
      target += target_row;
    }
  }

  NEURON_INLINE void leave(MatrixRounding& x) const {
    x.sums = sums, x.target = target, x.addend = addend, x.rows = rows;
    x.special = x.special || special != 0;
  }
};

// The compiler's intrinsics take literal register numbers only, and do not say that they read and write memory.
template <int kRegister>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kRegister));
}
template <int kRegister>
inline void load_tile(const void* data, int64_t line) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(data), "r"(line), "i"(kRegister) : "memory");
}
template <int kRegister>
inline void store_tile(void* data, int64_t line) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(data), "r"(line), "i"(kRegister) : "memory");
}
template <int kSum, int kLeft, int kRight>
inline void add_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
}

// Registers 0 … 3 hold sums; of the others, those of the shorter side are loaded once a step, those of the longer side
// in turns.
template <int kHeight, int kWidth>
struct Block {
  static constexpr bool kTall = kHeight >= kWidth;
  static constexpr int kLonger = kTall ? kHeight : kWidth, kShorter = kTall ? kWidth : kHeight;
  static constexpr int longer_register(int i) { return 4 + i % 2; }
  static constexpr int shorter_register(int i) { return 6 + i; }

  static float* place(const MatrixSums& sums, int index) {
    return sums.data + index / kWidth * kTileLines * sums.stride + index % kWidth * 16;
  }
  static int64_t line(const MatrixSums& sums) { return sums.stride * static_cast<int64_t>(sizeof(float)); }

  template <int kIndex = 0>
  static void store(const MatrixSums& target) {
    if constexpr (kIndex < kHeight * kWidth) {
      store_tile<kIndex>(place(target, kIndex), line(target));
      store<kIndex + 1>(target);
    }
  }

  template <int kIndex = 0>
  static void load_shorter(const char* data, const MatrixOperand& x) {
    if constexpr (kIndex < kShorter) {
      load_tile<shorter_register(kIndex)>(data + kIndex * x.tile, x.line);
      load_shorter<kIndex + 1>(data, x);
    }
  }

  template <bool kFirst, int kIndex, int kOther = 0>
  static void add_products(const MatrixSums& earlier, const MatrixSums& first) {
    if constexpr (kOther < kShorter) {
      constexpr int kRow = kTall ? kIndex : kOther, kColumn = kTall ? kOther : kIndex, kSum = kRow * kWidth + kColumn;
      if constexpr (kFirst) {
        if (earlier.data != nullptr) store_tile<kSum>(place(earlier, kSum), line(earlier));
        if (first.data != nullptr) {
          load_tile<kSum>(place(first, kSum), line(first));
        } else {
          clear_tile<kSum>();
        }
      }
      constexpr int kLeft = kTall ? longer_register(kIndex) : shorter_register(kOther);
      constexpr int kRight = kTall ? shorter_register(kOther) : longer_register(kIndex);
      add_product<kSum, kLeft, kRight>();
      add_products<kFirst, kIndex, kOther + 1>(earlier, first);
    }
  }

  template <bool kFirst, int kIndex = 0>
  static void add_longer(const char* data, const MatrixOperand& x, const MatrixSums& earlier, const MatrixSums& first) {
    if constexpr (kIndex < kLonger) {
      load_tile<longer_register(kIndex)>(data + kIndex * x.tile, x.line);
      add_products<kFirst, kIndex>(earlier, first);
      add_longer<kFirst, kIndex + 1>(data, x, earlier, first);
    }
  }

  NEURON_TARGET static void begin(const MatrixWork& work, const MatrixSums& earlier, const MatrixSums& first) {
    add_all<true>(work, earlier, first);
  }

  NEURON_TARGET static void add(const MatrixWork& work) { add_all<false>(work, {}, {}); }

  template <bool kFirst>
  NEURON_INLINE static void add_all(const MatrixWork& work, const MatrixSums& earlier, const MatrixSums& first) {
    if (work.rounding != nullptr) {
      if (work.rounding->addend != nullptr) {
        add_and_round<kFirst, true>(work, earlier, first);
      } else {
        add_and_round<kFirst, false>(work, earlier, first);
      }
    } else if (work.between != nullptr) {
      add_steps<kFirst>(work, earlier, first, [&] { work.between(work.context); });
    } else {
      add_steps<kFirst>(work, earlier, first, [] {});
    }
  }

  template <bool kFirst, bool kAdds>
  NEURON_INLINE static void add_and_round(const MatrixWork& work, const MatrixSums& earlier, const MatrixSums& first) {
    Rounder<kAdds> rounder(*work.rounding);
    const int64_t share = work.rounding->share;
    add_steps<kFirst>(work, earlier, first, [&]() NEURON_TARGET { rounder.round(share); });
    rounder.leave(*work.rounding);
  }

  template <bool kFirst, typename Body>
  NEURON_INLINE static void add_steps(const MatrixWork& work, const MatrixSums& earlier, const MatrixSums& sums,
                                      const Body& body) {
    const MatrixOperand &shorter = kTall ? work.right : work.left, &longer = kTall ? work.left : work.right;
    const char *left = work.left.data, *right = work.right.data, *next = work.fetch.data;
    const int64_t distance = work.fetch.distance, fetch_step = work.fetch.step;
    const int64_t left_step = work.left.step, right_step = work.right.step;
    const int64_t* places = work.right.steps;
    const int lines = next != nullptr ? work.fetch.lines : 0;
    int64_t steps = work.steps;
    if constexpr (kFirst) {
      const char* at = places != nullptr ? right + *places++ : right;
      load_shorter(kTall ? at : left, shorter);
      add_longer<true>(kTall ? left : at, longer, earlier, sums);
      --steps;
      left += left_step;
      if (places == nullptr) right += right_step;
    }
    for (; steps > 0; --steps) {
      const char* at = places != nullptr ? right + *places++ : right;
      load_shorter(kTall ? at : left, shorter);
      add_longer<false>(kTall ? left : at, longer, {}, {});
      left += left_step;
      if (places == nullptr) right += right_step;
      const char* line = next;
      for (int i = 0; i < lines; ++i, line += distance) __builtin_prefetch(line, 0, 2);
      if (lines > 0) next += fetch_step;
      body();
    }
  }

  static constexpr MatrixBlock kBlock{kHeight, kWidth, &begin, &add, &store<0>};
};

}  // namespace

NEURON_TARGET void finish_rounding(MatrixRounding& rounding) {
  if (rounding.addend != nullptr) {
    Rounder<true> rounder(rounding);
    rounder.round(rounding.rows);
    rounder.leave(rounding);
  } else {
    Rounder<false> rounder(rounding);
    rounder.round(rounding.rows);
    rounder.leave(rounding);
  }
}

const MatrixBlock& matrix_block(int64_t height, int64_t width) {
  static constexpr const MatrixBlock* kBlocks[4][4] = {
      {&Block<1, 1>::kBlock, &Block<1, 2>::kBlock, &Block<1, 3>::kBlock, &Block<1, 4>::kBlock},
      {&Block<2, 1>::kBlock, &Block<2, 2>::kBlock, nullptr, nullptr},
      {&Block<3, 1>::kBlock, nullptr, nullptr, nullptr},
      {&Block<4, 1>::kBlock, nullptr, nullptr, nullptr}};
  return *kBlocks[height - 1][width - 1];
}

}  // namespace neuron::kernels
