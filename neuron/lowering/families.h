// The families of operators that make up the table (operator_table.cpp). Private to this folder.
#pragma once

#include <span>

#include "neuron/lowering/lowering.h"

namespace neuron::lowering {

struct Rule {
  std::string_view name;
  LoweringRule lower;
  IterationKind kind = IterationKind::Elementwise;
};

std::span<const Rule> arithmetic_rules();
std::span<const Rule> comparison_rules();
std::span<const Rule> bitwise_rules();
std::span<const Rule> mathematics_rules();
std::span<const Rule> special_rules();
std::span<const Rule> activation_rules();
std::span<const Rule> activation_gradient_rules();
std::span<const Rule> recurrent_rules();
std::span<const Rule> loss_rules();
std::span<const Rule> creation_rules();
std::span<const Rule> random_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> softmax_rules();
std::span<const Rule> normalization_rules();
std::span<const Rule> optimizer_rules();

}  // namespace neuron::lowering
