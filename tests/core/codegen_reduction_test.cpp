#include "codegen_harness.h"

namespace neuron::codegen {
namespace {

using ir::ComparisonDirection;
using ir::Opcode;
using ir::Value;

const std::vector<int64_t> kLengths{0, 1, 5, 31, 32, 100, 1024, 4096, 4097, 9000};

void check_rows(const RegionSpec& spec, double ulps = 0, bool special = false) {
  for (int64_t length : kLengths) {
    SCOPED_TRACE(length);
    if (spec.rank == 1) {
      check_region(spec, {length}, ulps, special);
    } else {
      check_region(spec, {3, length}, ulps, special);
    }
  }
}

TEST(CodegenInner, SumIsBitwiseTheInterpretersForEveryStrideClass) {
  for (InnerStride inner : {InnerStride::Zero, InnerStride::One, InnerStride::Other}) {
    for (int rank : {1, 2}) {
      RegionBuilder r(rank, Reduction::Inner);
      r.result(r.reduce(Opcode::Add, r.tensor(DType::Float32, inner), 0.5));
      check_rows(r.finish());
    }
  }
}

TEST(CodegenInner, SimpleReducersOfEveryDtypeWithSpecialValues) {
  for (DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::UInt32, DType::Int64,
                      DType::UInt64, DType::BFloat16, DType::Float16, DType::Float32, DType::Float64}) {
    RegionBuilder r(2, Reduction::Inner);
    Value x = r.tensor(dtype);
    for (Opcode opcode : {Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum})
      r.result(r.reduce(opcode, x, 1));
    if (!is_float(dtype)) {
      for (Opcode opcode : {Opcode::And, Opcode::Or, Opcode::Xor}) r.result(r.reduce(opcode, x, 1));
    }
    RegionSpec spec = r.finish();
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    check_region(spec, {3, 50}, 0, true);
    check_region(spec, {2, 4200}, 0, true);
  }
}

// (x - max) in place of a softmax's exponential keeps the comparison exact.
TEST(CodegenInner, RowsOfSeveralStagesKeepScratchAndStoreLast) {
  RegionBuilder r(2, Reduction::Inner);
  Value x = r.tensor(DType::Float32), w = r.tensor(DType::Float32);
  auto& b = r.builder;
  Value top = r.spread(r.reduce(Opcode::Maximum, x, -INFINITY));
  Value shifted = b.divide(b.subtract(x, top), b.add(w, r.constant(DType::Float32, 9)));
  Value sum = r.reduce(Opcode::Add, shifted, 0);
  Value y = b.divide(shifted, r.spread(sum));
  r.result(y);
  r.result(sum);
  r.result(b.add(b.multiply(y, w), x), InnerStride::Other);
  check_rows(r.finish());
}

Value layer_norm(RegionBuilder& r, Value x, Value count) {
  auto& b = r.builder;
  Value mean = b.divide(r.reduce(Opcode::Add, x, 0), count);
  Value centred = b.subtract(x, r.spread(mean));
  Value variance = b.divide(r.reduce(Opcode::Add, b.multiply(centred, centred), 0), count);
  Value scale = b.unary(Opcode::Rsqrt, b.add(variance, b.constant_like(variance, 1e-5)));
  return b.multiply(centred, r.spread(scale));
}

TEST(CodegenInner, LayerNormOfNarrowFloats) {
  for (DType dtype : {DType::Float32, DType::BFloat16}) {
    RegionBuilder r(2, Reduction::Inner);
    auto& b = r.builder;
    Value x = b.convert(r.tensor(dtype), DType::Float32);
    r.spec.inputs.push_back({OperandKind::Scalar, DType::Float64, InnerStride::Zero});
    Value count = b.convert(r.graph->add_parameter({DType::Float64, {}}), DType::Float32);
    Value rows = b.broadcast_in_dim(count, {r.space[0]}, {});
    r.result(b.convert(layer_norm(r, x, rows), dtype));
    check_rows(r.finish());
  }
}

TEST(CodegenInner, InPlaceRowsReadBeforeTheyWrite) {
  RegionBuilder r(2, Reduction::Inner);
  auto& b = r.builder;
  Value x = r.tensor(DType::Float32);
  Value sum = r.spread(r.reduce(Opcode::Add, x, 0));
  r.result(b.subtract(x, sum));
  RegionSpec spec = r.finish();
  auto executable = host_compiler().compile(spec);
  const int64_t sizes[] = {4, 5000};
  std::vector<float> data(4 * 5000, 1.0f);
  void* pointers[] = {data.data(), data.data()};
  int64_t strides[] = {5000, 1, 5000, 1};
  uint64_t scalar = 0;
  executable->run({sizes, pointers, strides, &scalar, 1});
  for (float value : data) ASSERT_EQ(value, 1.0f - 5000.0f);
}

// (value, index): the first extreme wins, a NaN is more extreme than anything.
std::shared_ptr<const ir::Graph> first_maximum(DType dtype) {
  auto body = std::make_shared<ir::Graph>("first_maximum");
  Value best = body->add_parameter({dtype, {}}), best_index = body->add_parameter({DType::Int64, {}});
  Value candidate = body->add_parameter({dtype, {}}), index = body->add_parameter({DType::Int64, {}});
  ir::Builder b(*body);
  Value better = b.compare(ComparisonDirection::GT, candidate, best),
        equal = b.compare(ComparisonDirection::EQ, candidate, best);
  Value best_nan = b.compare(ComparisonDirection::NE, best, best),
        nan = b.compare(ComparisonDirection::NE, candidate, candidate);
  better = b.binary(Opcode::Or, better, b.binary(Opcode::And, nan, b.logical_not(best_nan)));
  equal = b.binary(Opcode::Or, equal, b.binary(Opcode::And, nan, best_nan));
  Value wins =
      b.binary(Opcode::Or, better, b.binary(Opcode::And, equal, b.compare(ComparisonDirection::LT, index, best_index)));
  Value results[] = {b.select(wins, candidate, best), b.select(wins, index, best_index)};
  body->set_results(results);
  return body;
}

void add_argmax(RegionBuilder& r, DType dtype) {
  auto& b = r.builder;
  Value x = r.tensor(dtype), i = r.index();
  Value inputs[] = {x, i};
  Value inits[] = {b.constant({dtype, {}}, is_float(dtype) ? -INFINITY : std::numeric_limits<int8_t>::min()),
                   b.constant_int({DType::Int64, {}}, std::numeric_limits<int64_t>::max())};
  auto results =
      b.reduce(inputs, inits, {r.spec.rank - (r.spec.reduction == Reduction::Outer ? 2 : 1)}, first_maximum(dtype));
  r.result(results[0]);
  r.result(results[1]);
}

TEST(CodegenInner, ArgumentOfTheMaximum) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int8, DType::Int64}) {
    for (bool special : {false, true}) {
      RegionBuilder r(2, Reduction::Inner);
      add_argmax(r, dtype);
      RegionSpec spec = r.finish();
      for (int64_t length : {0, 1, 37, 300, 4099}) check_region(spec, {2, length}, 0, special);
    }
  }
}

TEST(CodegenInner, OneLongRowIsTheSameOnSeveralThreads) {
  RegionBuilder r(1, Reduction::Inner);
  Value x = r.tensor(DType::Float32);
  r.result(r.reduce(Opcode::Add, r.builder.multiply(x, x), 0));
  r.result(r.reduce(Opcode::Maximum, x, -INFINITY));
  check_region(r.finish(), {700001});
}

void check_columns(const RegionSpec& spec, bool special = false) {
  for (int64_t reduced : {0, 1, 7, 256, 300, 1000}) {
    for (int64_t columns : {2, 31, 64, 300}) {
      SCOPED_TRACE(fmt::format("{} reduced, {} columns", reduced, columns));
      check_region(spec, {2, reduced, columns}, 0, special);
    }
  }
}

TEST(CodegenOuter, SumOfEveryStrideClass) {
  for (InnerStride inner : {InnerStride::Zero, InnerStride::One, InnerStride::Other}) {
    RegionBuilder r(3, Reduction::Outer);
    auto& b = r.builder;
    Value x = r.tensor(DType::Float32, inner), y = r.tensor(DType::Float32);
    Value i = b.convert(r.index(), DType::Float32);
    Value sum = r.reduce(Opcode::Add, b.multiply(x, b.add(y, i)), 0.5);
    r.result(sum, InnerStride::Other);
    r.result(b.multiply(sum, b.constant_like(sum, 0.25)));
    check_columns(r.finish());
  }
}

TEST(CodegenOuter, SimpleReducersOfEveryDtypeWithSpecialValues) {
  for (DType dtype : {DType::Bool, DType::UInt8, DType::Int16, DType::Int32, DType::Int64, DType::BFloat16,
                      DType::Float16, DType::Float64}) {
    RegionBuilder r(2, Reduction::Outer);
    Value x = r.tensor(dtype);
    for (Opcode opcode : {Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum})
      r.result(r.reduce(opcode, x, 1));
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    check_region(r.finish(), {600, 45}, 0, true);
  }
}

TEST(CodegenOuter, ArgumentOfTheMaximum) {
  RegionBuilder r(2, Reduction::Outer);
  add_argmax(r, DType::Float32);
  check_region(r.finish(), {300, 37}, 0, true);
}

TEST(CodegenOuter, ThreadsSplitColumnsRowsOrChunks) {
  RegionBuilder r(2, Reduction::Outer);
  r.result(r.reduce(Opcode::Add, r.tensor(DType::Float32), 0));
  RegionSpec spec = r.finish();
  check_region(spec, {700, 3000});
  check_region(spec, {40000, 40});
}

}  // namespace
}  // namespace neuron::codegen
