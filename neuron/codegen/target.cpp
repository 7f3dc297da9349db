// Which instruction set kernels are generated for: AVX-512 where the processor has it, AVX2 otherwise. The bits of a
// result are the same on both, so the choice is one of speed only.
#include <string>

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/base/processor.h"
#include "neuron/codegen/region.h"

namespace neuron::codegen {

namespace {

HostTarget detect() {
  const ProcessorFeatures& processor = processor_features();
  if (const std::string reason = unsupported_processor(processor); !reason.empty())
    fail(ErrorKind::Runtime, "{}", reason);
  const std::string& wanted = option_text(Option::HostTarget);
  if (wanted == "native") return processor.runs_avx512() ? HostTarget::Avx512 : HostTarget::Avx2;
  if (wanted == "avx2") return HostTarget::Avx2;
  if (!processor.runs_avx512()) {
    fail(ErrorKind::Runtime,
         "TORCH_NEURONX_HOST_TARGET is 'avx512', which this processor does not have (F, BW, DQ, VL, CD)");
  }
  return HostTarget::Avx512;
}

}  // namespace

HostTarget detected_host_target() {
  static const HostTarget target = detect();
  return target;
}

const char* host_target_name(HostTarget target) { return target == HostTarget::Avx512 ? "avx512" : "avx2"; }

}  // namespace neuron::codegen
