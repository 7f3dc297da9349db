// The mathematical functions by family, for math.cpp to choose from. `f32` functions take and give float32 lanes.
//
// All coefficients are minimax fits made for this project (Lawson's iteration on Chebyshev nodes in extended
// precision); the relative error of each fit stands beside it, that of each function as measured against the C
// library's double function.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "neuron/codegen/llvm/lanes.h"

namespace neuron::codegen {

// c0 + x (c1 + x (c2 + …)) in fused multiply-adds; float or double by x.
llvm::Value* emit_polynomial(const Lanes& lanes, llvm::Value* x, std::initializer_list<double> coefficients);
// 1.5 * 2^23: adding it to a float of at most 2^22 rounds that to an integer, which the low bits of the sum hold.
constexpr double kRoundingShift = 12582912.0;
// Keeps NaN.
llvm::Value* emit_at_most(const Lanes& lanes, llvm::Value* x, double limit);
llvm::Value* emit_at_least(const Lanes& lanes, llvm::Value* x, double limit);
// `fast`, or what the C library's double function gives in the lanes where `rare` holds, by a branch taken when one
// does.
llvm::Value* emit_unless_rare(const Lanes& lanes, llvm::Value* rare, llvm::Value* fast, std::string_view function,
                              std::span<llvm::Value* const> operands);

// math_exponential.cpp: wholly in float32.
llvm::Value* emit_exp_f32(const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_log_f32(const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_tanh_f32(const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_logistic_f32(const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_erf_f32(const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_gelu_derivative_f32(const Lanes& lanes, llvm::Value* x);

// math_double.cpp: building blocks on double lanes, relative error below 2^-40, for arguments that come from float32.
llvm::Value* emit_exp_f64(const Lanes& lanes, llvm::Value* x);    // saturates beyond ±200
llvm::Value* emit_expm1_f64(const Lanes& lanes, llvm::Value* x);  // the same
llvm::Value* emit_log_f64(const Lanes& lanes, llvm::Value* x);    // positive, normal, finite

// math_special.cpp and math_trigonometric.cpp: float32 functions computed in double. Null when `name` is not one of
// theirs.
llvm::Value* emit_special_f32(const Lanes& lanes, std::string_view name, std::span<llvm::Value* const> operands);
llvm::Value* emit_trigonometric_f32(const Lanes& lanes, std::string_view name, std::span<llvm::Value* const> operands);

}  // namespace neuron::codegen
