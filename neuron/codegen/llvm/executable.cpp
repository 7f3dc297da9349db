#include "neuron/codegen/llvm/executable.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "neuron/base/error.h"
#include "neuron/base/hash.h"
#include "neuron/base/small_vector.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/copy.h"
#include "neuron/kernels/copy_line.h"

namespace neuron::codegen {

namespace {

constexpr uint64_t kMagic = 0x31304e4b4e52554eull;
// Work worth a second thread, in vector additions per lane: about 15 microseconds.
constexpr int64_t kPartCost = 1 << 20;
// Columns of one unit of a long row: whole blocks of any width.
constexpr int64_t kColumnBlock = 4096;

// A tile of a transposition: its lines stay in the first-level cache.
constexpr int64_t kTileRows = 32;
constexpr int64_t kTileColumns = 64;

struct Header {
  uint64_t magic;
  uint64_t build;     // hash of generator_build_id()
  uint64_t checksum;  // of facts and object
  uint64_t object_size;
  KernelFacts facts;
};

uint64_t checksum(const KernelFacts& facts, std::string_view object) {
  uint64_t seed = hash_bytes(object.data(), object.size());
  for (uint64_t fact : {static_cast<uint64_t>(facts.rank), static_cast<uint64_t>(facts.reduction),
                        static_cast<uint64_t>(facts.target), static_cast<uint64_t>(facts.scratch_rows),
                        static_cast<uint64_t>(facts.has_phases), static_cast<uint64_t>(facts.accumulators),
                        static_cast<uint64_t>(facts.copied_bytes), static_cast<uint64_t>(facts.cost)}) {
    seed = hash_combine(seed, fact);
  }
  return seed;
}

// Memory of a thread for scratch rows, kept from call to call.
void* thread_scratch(size_t bytes) {
  struct Kept {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };
  thread_local Kept kept;
  if (kept.size < bytes) {
    kept.bytes.reset(new std::byte[bytes + 64]);
    kept.size = bytes;
  }
  auto address = reinterpret_cast<uintptr_t>(kept.bytes.get());
  return reinterpret_cast<void*>((address + 63) & ~uintptr_t{63});
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t product(const int64_t* sizes, int count) {
  int64_t result = 1;
  for (int i = 0; i < count; ++i) result *= sizes[i];
  return result;
}

}  // namespace

KernelFacts facts_of(const Plan& plan, HostTarget target) {
  KernelFacts facts;
  facts.rank = static_cast<uint8_t>(plan.spec().rank);
  facts.reduction = plan.spec().reduction;
  facts.target = target;
  facts.scratch_rows = static_cast<uint8_t>(plan.scratch().size() * static_cast<size_t>(rows_together(plan)));
  facts.has_phases = has_phases(plan);
  for (const Stage& stage : plan.stages()) {
    for (int index : stage.reductions)
      facts.accumulators += static_cast<uint8_t>(plan.graph().operations()[index].results.size());
  }
  const RegionSpec& spec = plan.spec();
  for (const auto* operands : {&spec.inputs, &spec.outputs}) {
    for (const OperandSignature& operand : *operands) {
      if (operand.kind == OperandKind::Tensor && operand.inner == InnerStride::Other) facts.strided = 1;
    }
  }
  if (plan.graph().operations().empty() && spec.inputs.size() == 1 && spec.inputs[0].kind == OperandKind::Tensor &&
      spec.reduction == Reduction::None) {
    facts.copied_bytes = static_cast<uint8_t>(dtype_size(spec.inputs[0].dtype));
  }
  facts.operands = static_cast<uint16_t>(spec.inputs.size() + spec.outputs.size());
  facts.cost = std::max(1, plan.cost());
  return facts;
}

HostExecutable::HostExecutable(const KernelFacts& facts, std::string object)
    : facts_(facts), object_(std::move(object)), code_(object_), kernel_(code_.kernel()) {}

void HostExecutable::run(const RegionArguments& arguments) const {
  switch (facts_.reduction) {
    case Reduction::None:
      return run_elements(arguments);
    case Reduction::Inner:
      return run_rows(arguments);
    case Reduction::Outer:
      return run_columns(arguments);
  }
}

void HostExecutable::run_elements(const RegionArguments& arguments) const {
  const int outer = facts_.rank - 1;
  const int64_t rows = product(arguments.sizes, outer), columns = arguments.sizes[outer], elements = rows * columns;
  if (elements == 0) return;
  if (facts_.copied_bytes != 0 && outer > 0 && is_library_copy(arguments, elements)) return run_copy(arguments);
  if (facts_.strided && outer > 0 && elements >= kTileRows * kTileColumns) {
    const int dimension = tile_dimension(arguments);
    if (dimension >= 0) return run_tiles(arguments, dimension);
  }
  auto call = [&](int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
    const KernelRange range{row_begin, row_end, column_begin, column_end, 0, 0, Phase::Whole, nullptr, nullptr};
    kernel_(&arguments, &range);
  };
  if (arguments.threads <= 1 || elements * facts_.cost < 2 * kPartCost) return call(0, rows, 0, columns);
  const int64_t blocks = ceil_divide(columns, kColumnBlock);
  const int64_t unit = std::min(columns, kColumnBlock) * facts_.cost;
  parallel_for(
      arguments.threads, rows * blocks, std::max<int64_t>(1, kPartCost / unit), [&](int64_t begin, int64_t end) {
        if (blocks == 1) return call(begin, end, 0, columns);
        while (begin < end) {
          const int64_t row = begin / blocks, first = begin % blocks, last = std::min(blocks, first + (end - begin));
          call(row, row + 1, first * kColumnBlock, std::min(columns, last * kColumnBlock));
          begin += last - first;
        }
      });
}

// A transposition alone is the library's: it moves squares in registers. So are short lines that lie apart in memory,
// which it asks for ahead.
bool HostExecutable::is_library_copy(const RegionArguments& arguments, int64_t elements) const {
  constexpr int64_t kFewElements = 256;
  if (elements < kFewElements) return false;
  if (facts_.strided) return tile_dimension(arguments) >= 0;
  const int64_t line = arguments.sizes[facts_.rank - 1] * facts_.copied_bytes;
  return line >= kernels::kShortestBriefLine && line <= kernels::kLongestBriefLine &&
         arguments.strides[facts_.rank - 1] == 1;
}

void HostExecutable::run_copy(const RegionArguments& arguments) const {
  constexpr std::pair<int, DType> kMoved[] = {
      {1, DType::UInt8}, {2, DType::UInt16}, {4, DType::UInt32}, {8, DType::UInt64}, {16, DType::Complex128}};
  auto view = [&](int k) {
    kernels::TensorView result;
    result.data = arguments.pointers[k];
    for (auto [bytes, dtype] : kMoved) {
      if (bytes == facts_.copied_bytes) result.dtype = dtype;
    }
    result.sizes.assign(arguments.sizes, arguments.sizes + facts_.rank);
    const int64_t* strides = arguments.strides + k * facts_.rank;
    result.strides.assign(strides, strides + facts_.rank);
    return result;
  };
  for (int k = 1; k < facts_.operands; ++k) kernels::copy_tensor(view(k), view(0), arguments.threads);
}

// The dimension along which an operand that is strided along the innermost one lies closer in memory; -1 when there is
// none.
int HostExecutable::tile_dimension(const RegionArguments& arguments) const {
  const int inner = facts_.rank - 1;
  for (int k = 0; k < facts_.operands; ++k) {
    const int64_t* strides = arguments.strides + k * facts_.rank;
    if (arguments.pointers[k] == nullptr || std::abs(strides[inner]) <= 1) continue;
    int best = -1;
    for (int d = 0; d < inner; ++d) {
      const int64_t stride = std::abs(strides[d]);
      if (arguments.sizes[d] < 2 || stride == 0 || stride >= std::abs(strides[inner])) continue;
      if (best < 0 || stride < std::abs(strides[best])) best = d;
    }
    if (best >= 0) return best;
  }
  return -1;
}

// A transposition reads a cache line for each element: by tiles, each line is used whole while it is near. Elementwise
// regions may visit positions in any order, so `dimension` becomes the last but one.
void HostExecutable::run_tiles(const RegionArguments& arguments, int dimension) const {
  const int rank = facts_.rank, above = rank - 2;
  SmallVector<int64_t, 8> sizes(std::span<const int64_t>(arguments.sizes, static_cast<size_t>(rank)));
  SmallVector<int64_t, 64> strides(
      std::span<const int64_t>(arguments.strides, static_cast<size_t>(rank * facts_.operands)));
  std::swap(sizes[dimension], sizes[above]);
  for (int k = 0; k < facts_.operands; ++k) std::swap(strides[k * rank + dimension], strides[k * rank + above]);
  RegionArguments permuted = arguments;
  permuted.sizes = sizes.data();
  permuted.strides = strides.data();
  const int64_t rows = sizes[above], columns = sizes[rank - 1], tiles = ceil_divide(rows, kTileRows);
  const int64_t cost = kTileRows * columns * facts_.cost;
  parallel_for(arguments.threads, product(sizes.data(), above) * tiles, std::max<int64_t>(1, kPartCost / cost),
               [&](int64_t begin, int64_t end) {
                 for (int64_t item = begin; item < end; ++item) {
                   const int64_t base = item / tiles * rows, first = item % tiles * kTileRows,
                                 last = std::min(rows, first + kTileRows);
                   for (int64_t column = 0; column < columns; column += kTileColumns) {
                     const KernelRange range{
                         base + first, base + last, column, std::min(columns, column + kTileColumns), 0, 0,
                         Phase::Whole, nullptr,     nullptr};
                     kernel_(&permuted, &range);
                   }
                 }
               });
}

void HostExecutable::run_rows(const RegionArguments& arguments) const {
  const int outer = facts_.rank - 1;
  const int64_t rows = product(arguments.sizes, outer), columns = arguments.sizes[outer];
  if (rows == 0) return;
  const int64_t chunks = ceil_divide(columns, kInnerChunk);
  const int64_t row_cost = std::max<int64_t>(1, columns * facts_.cost);
  const bool parallel = arguments.threads > 1 && rows * row_cost >= 2 * kPartCost;
  if (parallel && facts_.has_phases && rows < 2 * arguments.threads) {
    return run_in_phases(arguments, rows, columns, chunks, 8);
  }
  const size_t scratch = static_cast<size_t>(facts_.scratch_rows) * static_cast<size_t>(padded_row_bytes(columns));
  auto part = [&](int64_t begin, int64_t end) {
    const KernelRange range{
        begin, end, 0, columns, 0, chunks, Phase::Whole, nullptr, scratch > 0 ? thread_scratch(scratch) : nullptr};
    kernel_(&arguments, &range);
  };
  if (!parallel) return part(0, rows);
  parallel_for(arguments.threads, rows, std::max<int64_t>(1, kPartCost / row_cost), part);
}

void HostExecutable::run_columns(const RegionArguments& arguments) const {
  const int outer = facts_.rank - 2;
  const int64_t rows = product(arguments.sizes, outer), reduced = arguments.sizes[outer],
                columns = arguments.sizes[outer + 1];
  if (rows * columns == 0) return;
  const int64_t chunks = ceil_divide(reduced, kOuterChunk);
  auto call = [&](int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
    const KernelRange range{row_begin, row_end, column_begin, column_end, 0, chunks, Phase::Whole, nullptr, nullptr};
    kernel_(&arguments, &range);
  };
  const int64_t column_cost = std::max<int64_t>(1, reduced * facts_.cost);
  if (arguments.threads <= 1 || rows * columns * column_cost < 2 * kPartCost) return call(0, rows, 0, columns);
  // Columns are dealt out in whole cache lines; narrow panels would read too little of each row at a time.
  const int64_t block = std::clamp<int64_t>(ceil_divide(ceil_divide(columns, arguments.threads), 64) * 64, 128, 1024);
  const int64_t blocks = ceil_divide(columns, block), items = rows * blocks;
  if (items < arguments.threads && chunks >= arguments.threads) {
    return run_in_phases(arguments, rows, columns, chunks, padded_row_bytes(columns));
  }
  const int64_t unit = std::min(columns, block) * column_cost;
  parallel_for(arguments.threads, items, std::max<int64_t>(1, kPartCost / unit), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / blocks, first = item % blocks * block;
      call(row, row + 1, first, std::min(columns, first + block));
    }
  });
}

void HostExecutable::run_in_phases(const RegionArguments& arguments, int64_t rows, int64_t columns, int64_t chunks,
                                   int64_t slot_bytes) const {
  const int64_t row_bytes = chunks * facts_.accumulators * slot_bytes;
  std::unique_ptr<std::byte[]> partials(new std::byte[static_cast<size_t>(rows * row_bytes)]);
  auto call = [&](int64_t row, int64_t first, int64_t last, Phase phase) {
    const KernelRange range{row, row + 1, 0, columns, first, last, phase, partials.get() + row * row_bytes, nullptr};
    kernel_(&arguments, &range);
  };
  parallel_for(arguments.threads, rows * chunks, 1, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / chunks, first = begin % chunks, last = std::min(chunks, first + (end - begin));
      call(row, first, last, Phase::Accumulate);
      begin += last - first;
    }
  });
  for (int64_t row = 0; row < rows; ++row) call(row, 0, chunks, Phase::Finish);
}

std::string HostExecutable::serialize() const {
  Header header{};
  header.magic = kMagic;
  header.build = hash_text(generator_build_id());
  header.checksum = checksum(facts_, object_);
  header.object_size = object_.size();
  header.facts = facts_;
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + object_;
}

std::shared_ptr<const Executable> HostExecutable::deserialize(const std::string& bytes, HostTarget target) {
  Header header{};
  if (bytes.size() < sizeof header)
    fail(ErrorKind::Runtime, "a cached kernel has {} bytes, fewer than its header", bytes.size());
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) fail(ErrorKind::Runtime, "these {} bytes are not a cached kernel", bytes.size());
  if (header.build != hash_text(generator_build_id())) {
    fail(ErrorKind::Runtime, "a cached kernel is of another build than {}", generator_build_id());
  }
  std::string object = bytes.substr(sizeof header);
  if (object.size() != header.object_size || checksum(header.facts, object) != header.checksum) {
    fail(ErrorKind::Runtime, "a cached kernel is damaged: {} bytes of code where {} were written, or a wrong checksum",
         object.size(), header.object_size);
  }
  if (header.facts.target != target) {
    fail(ErrorKind::Runtime, "a cached kernel is for {}, this process generates for {}",
         host_target_name(header.facts.target), host_target_name(target));
  }
  return std::make_shared<HostExecutable>(header.facts, std::move(object));
}

}  // namespace neuron::codegen
