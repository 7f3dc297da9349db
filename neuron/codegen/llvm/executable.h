// A loaded kernel with the facts that run() and the disk cache need.
#pragma once

#include <memory>
#include <string>

#include "neuron/codegen/llvm/loaded_code.h"
#include "neuron/codegen/llvm/plan.h"
#include "neuron/codegen/region.h"

namespace neuron::codegen {

// Plain data, written into the disk cache as it is.
struct KernelFacts {
  uint8_t rank = 1;
  Reduction reduction = Reduction::None;
  HostTarget target = HostTarget::Avx2;
  uint8_t scratch_rows = 0;
  uint8_t has_phases = 0;
  uint8_t accumulators = 0;  // of all reductions together
  uint8_t strided = 0;       // an operand is not adjacent along the innermost dimension
  uint8_t copied_bytes = 0;  // the region copies one input whose elements have this size; 0: it computes
  uint16_t operands = 0;     // inputs and outputs
  int32_t cost = 1;          // per element, in vector additions
};

KernelFacts facts_of(const Plan& plan, HostTarget target);

class HostExecutable final : public Executable {
 public:
  HostExecutable(const KernelFacts& facts, std::string object);

  void run(const RegionArguments& arguments) const override;
  std::string serialize() const override;
  // Throws Error(Runtime) when the bytes are damaged or of another target or build.
  static std::shared_ptr<const Executable> deserialize(const std::string& bytes, HostTarget target);

 private:
  void run_elements(const RegionArguments& arguments) const;
  void run_copy(const RegionArguments& arguments) const;
  void run_tiles(const RegionArguments& arguments, int dimension) const;
  bool is_library_copy(const RegionArguments& arguments, int64_t elements) const;
  int tile_dimension(const RegionArguments& arguments) const;
  void run_rows(const RegionArguments& arguments) const;
  void run_columns(const RegionArguments& arguments) const;
  void run_in_phases(const RegionArguments& arguments, int64_t rows, int64_t columns, int64_t chunks,
                     int64_t slot_bytes) const;

  KernelFacts facts_;
  std::string object_;
  LoadedCode code_;
  KernelFunction kernel_;
};

// LLVM's version and the identity of this library's bytes (build_id.cpp).
std::string generator_build_id();

}  // namespace neuron::codegen
