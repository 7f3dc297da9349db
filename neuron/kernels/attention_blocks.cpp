#include "neuron/kernels/attention_blocks.h"

#include <algorithm>
#include <limits>

#include "neuron/base/float_formats.h"
#include "neuron/kernels/gemm_microkernel.h"

namespace neuron::kernels {
namespace {

PackedSource packed_source(DType dtype) {
  if (dtype == DType::BFloat16) return PackedSource::BFloat16;
  if (dtype == DType::Float16) return PackedSource::Float16;
  check_internal(dtype == DType::Float32, "attention was given {}", dtype_name(dtype));
  return PackedSource::Float32;
}

char* row_address(const TensorView& view, int64_t batch, int64_t head, int64_t row) {
  int64_t offset = batch * view.strides[0] + head * view.strides[1] + row * view.strides[2];
  return view.as<char>() + offset * static_cast<int64_t>(dtype_size(view.dtype));
}

void mask_row(const AttentionProblem& p, int64_t batch, int64_t head, int64_t row, int64_t first_key, int64_t keys,
              float* scores) {
  constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  if (p.mask != nullptr) {
    const TensorView& mask = *p.mask;
    int64_t position[] = {first_key, row, head, batch};
    int64_t offset = 0, step = 0;
    for (int d = 0; d < mask.rank(); ++d) {
      int from_right = mask.rank() - 1 - d;
      if (mask.sizes[d] == 1) continue;
      offset += position[from_right] * mask.strides[d];
      if (from_right == 0) step = mask.strides[d];
    }
    size_t size = dtype_size(mask.dtype);
    const char* element = mask.as<char>() + offset * static_cast<int64_t>(size);
    for (int64_t j = 0; j < keys; ++j, element += step * static_cast<int64_t>(size)) {
      if (mask.dtype == DType::Bool) {
        if (*element == 0) scores[j] = kExcluded;
      } else if (mask.dtype == DType::Float32) {
        scores[j] += *reinterpret_cast<const float*>(element);
      } else {
        scores[j] += static_cast<float>(load_as_double(mask.dtype, element));
      }
    }
  }
  if (p.causal) {
    for (int64_t j = std::max<int64_t>(0, row + 1 - first_key); j < keys; ++j) scores[j] = kExcluded;
  }
}

}  // namespace

AttentionProblem::AttentionProblem(const TensorView& query, const TensorView& key, const TensorView& value,
                                   const TensorView* mask, bool causal, double scale)
    : query(&query),
      key(&key),
      value(&value),
      mask(mask),
      causal(causal),
      scale(static_cast<float>(scale)),
      batch(query.sizes[0]),
      heads(query.sizes[1]),
      key_heads(key.sizes[1]),
      queries(query.sizes[2]),
      keys(key.sizes[2]),
      depth(query.sizes[3]),
      value_depth(value.sizes[3]) {
  check_internal(key_heads > 0 && heads % key_heads == 0, "attention: {} query heads for {} key heads", heads,
                 key_heads);
}

Matrix block_of(const TensorView& view, int64_t batch, int64_t head, int64_t row, int64_t rows, Scratch& scratch) {
  char* source = row_address(view, batch, head, row);
  int64_t columns = view.sizes[3];
  if (view.dtype == DType::Float32 && view.strides[3] == 1 && view.strides[2] >= columns) {
    return {reinterpret_cast<float*>(source), view.strides[2]};
  }
  float* copy = scratch.get<float>(rows * columns);
  gemm_microkernel_avx2.pack(packed_source(view.dtype), source, view.strides[3], view.strides[2], columns, rows,
                             static_cast<int>(columns), copy);
  return {copy, columns};
}

void store_block(const TensorView& view, int64_t batch, int64_t head, int64_t row, int64_t rows, Matrix matrix) {
  size_t size = dtype_size(view.dtype);
  for (int64_t i = 0; i < rows; ++i) {
    char* target = row_address(view, batch, head, row + i);
    const float* values = matrix.data + i * matrix.stride;
    if (view.strides[3] == 1) {
      gemm_microkernel_avx2.store(packed_source(view.dtype), values, view.sizes[3], target);
    } else {
      for (int64_t j = 0; j < view.sizes[3]; ++j) {
        store_from_double(view.dtype, values[j], target + j * view.strides[3] * static_cast<int64_t>(size));
      }
    }
  }
}

void multiply(Matrix a, bool transpose_a, Matrix b, bool transpose_b, Matrix result, int64_t m, int64_t n, int64_t k,
              float alpha, float beta) {
  GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = {a.data, 0, transpose_a ? 1 : a.stride, transpose_a ? a.stride : 1};
  problem.b = {b.data, 0, transpose_b ? 1 : b.stride, transpose_b ? b.stride : 1};
  problem.result = {result.data, 0, result.stride, 1};
  problem.alpha = Scalar::of(static_cast<double>(alpha));
  problem.beta = Scalar::of(static_cast<double>(beta));
  if (beta != 0) problem.addend = problem.result;
  run_gemm(problem);
}

void masked_scores(const AttentionProblem& p, int64_t batch, int64_t head, Matrix query, int64_t row, int64_t rows,
                   Matrix key, int64_t first_key, int64_t keys, Matrix scores) {
  multiply(query, false, key, true, scores, rows, keys, p.depth, p.scale, 0);
  if (p.mask == nullptr && !p.causal) return;
  for (int64_t i = 0; i < rows; ++i) {
    mask_row(p, batch, head, row + i, first_key, keys, scores.data + i * scores.stride);
  }
}

}  // namespace neuron::kernels
