// Internal to printer and parser: the syntax of each operation, as one table that both follow.
#pragma once

#include <span>
#include <string_view>

#include "neuron/ir/graph.h"

namespace neuron::ir {

// What follows the colon of a pretty operation.
enum class TypeSyntax : uint8_t {
  Same,        // one type when operands and result agree, else (operands) -> result
  Functional,  // always (operands) -> result
  Result,      // the result's type alone
};

// A pretty operation is "stablehlo.<mnemonic> <format> : <types>". In the format
//   %0 %1 …   an operand          %*  all operands, separated by commas
//   [name]    a list attribute    {name}  an integer    <name>  a comparison direction
//   and everything else stands for itself, spaces being insignificant.
struct PrettySyntax {
  Opcode opcode;
  std::string_view format;
  TypeSyntax types;
};
// Null for operations that have their own syntax (constant, slice, dot_general, reduce with a simple reducer,
// composite) or are printed generically.
const PrettySyntax* pretty_syntax(Opcode opcode);

// How an attribute is written between <{ and }> of a generic operation.
enum class AttributeSyntax : uint8_t {
  Ints,       // array<i64: 1, 2>
  Flags,      // array<i1: true, false>, a list of 0 and 1
  Int,        // 1 : i64
  Bool,       // true
  Pairs,      // dense<[[0, 1]]> : tensor<1x2xi64>, a flat list of pairs
  Group,      // #stablehlo.gather<a = [..], b = 1>: the entries up to GroupEnd, under the name of this one
  GroupList,  // an entry of a group: a = [0, 1]
  GroupInt,   // an entry of a group: b = 1
  GroupEnd,
  ConvolutionLayout,  // the fixed dimension numbers of Builder::convolution; no attribute of ours
};

struct GenericAttribute {
  std::string_view name;
  AttributeSyntax syntax;
  std::string_view keyword = {};  // of a Group: "#stablehlo.gather"
};
// The attributes of a generic operation in the order in which they are printed; they may be read in any order.
std::span<const GenericAttribute> generic_attributes(Opcode opcode);

// The opcode of a mnemonic; -1 when there is none.
int find_opcode(std::string_view mnemonic);

std::string_view direction_name(ComparisonDirection direction);
// The dimension numbers of a convolution with `spatial` spatial dimensions.
std::string convolution_layout(size_t spatial);

// The composite that rng_bit_generator is printed as: StableHLO leaves the meaning of its own operation open.
inline constexpr std::string_view kRngComposite = "neuron.rng_bit_generator";

}  // namespace neuron::ir
