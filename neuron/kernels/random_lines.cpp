#include "neuron/kernels/random_lines.h"

#include "neuron/base/processor.h"

namespace neuron::kernels {

const RandomLines& random_lines() {
  static const RandomLines& lines = processor_features().runs_avx512() ? random_lines_avx512 : random_lines_avx2;
  return lines;
}

}  // namespace neuron::kernels
