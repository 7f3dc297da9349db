#include "neuron/base/processor.h"

#include <gtest/gtest.h>

namespace neuron {
namespace {

ProcessorFeatures x86_64_v3() {
  ProcessorFeatures features;
  features.avx2 = features.fma = features.f16c = features.bmi2 = true;
  return features;
}

TEST(Processor, SaysWhatIsMissing) {
  EXPECT_EQ(unsupported_processor(x86_64_v3()), "");
  ProcessorFeatures old = x86_64_v3();
  old.avx2 = old.fma = false;
  EXPECT_EQ(unsupported_processor(old),
            "the host device needs a processor with AVX2, FMA, F16C and BMI2 (x86-64-v3); this one lacks AVX2, FMA");
  EXPECT_NE(unsupported_processor({}).find("this one lacks AVX2, FMA, F16C, BMI2"), std::string::npos);
}

TEST(Processor, Avx512NeedsAllOfItsParts) {
  ProcessorFeatures features = x86_64_v3();
  EXPECT_TRUE(features.runs_avx2());
  EXPECT_FALSE(features.runs_avx512());
  features.avx512f = features.avx512bw = features.avx512dq = features.avx512vl = true;
  EXPECT_FALSE(features.runs_avx512());
  features.avx512cd = true;
  EXPECT_TRUE(features.runs_avx512());
  features.fma = false;
  EXPECT_FALSE(features.runs_avx512());
}

TEST(Processor, ThisOneIsAsked) {
  EXPECT_EQ(unsupported_processor(processor_features()).empty(), processor_features().runs_avx2());
}

}  // namespace
}  // namespace neuron
