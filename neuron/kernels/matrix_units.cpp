#include "neuron/kernels/matrix_units.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "neuron/base/processor.h"

namespace neuron::kernels {

bool has_bfloat16_matrix_units() {
  static const bool granted = [] {
    if (!processor_features().runs_amx_bf16()) return false;
    // Linux saves the tiles of a process only after it has asked (Documentation/arch/x86/xstate.rst).
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return granted;
}

}  // namespace neuron::kernels
