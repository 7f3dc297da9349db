// Marks functions of one file that use AVX2 and F16C, which every processor that the embedded device runs on has
// (neuron/runtime/device.cpp). Without FMA: nothing is contracted.
#pragma once

#define NEURON_AVX2 __attribute__((target("avx2,f16c")))
