#include "neuron/ir/assembly.h"

#include <array>

namespace neuron::ir {

namespace {

constexpr PrettySyntax pretty_table[] = {
    {Opcode::Iota, "dim = {iota_dimension}", TypeSyntax::Result},
    {Opcode::Compare, "<comparison_direction>, %0, %1", TypeSyntax::Functional},
    {Opcode::Select, "%*", TypeSyntax::Functional},
    {Opcode::BroadcastInDim, "%0, dims = [broadcast_dimensions]", TypeSyntax::Functional},
    {Opcode::Reshape, "%0", TypeSyntax::Functional},
    {Opcode::Transpose, "%0, dims = [permutation]", TypeSyntax::Functional},
    {Opcode::DynamicSlice, "%*, sizes = [slice_sizes]", TypeSyntax::Functional},
    {Opcode::DynamicUpdateSlice, "%*", TypeSyntax::Functional},
    {Opcode::Concatenate, "%*, dim = {dimension}", TypeSyntax::Functional},
    {Opcode::Pad, "%0, %1, low = [edge_padding_low], high = [edge_padding_high], interior = [interior_padding]",
     TypeSyntax::Functional},
    {Opcode::Reverse, "%0, dims = [dimensions]", TypeSyntax::Result},
};

using enum AttributeSyntax;

constexpr GenericAttribute reduce_table[] = {{"dimensions", Ints}};
constexpr GenericAttribute reduce_window_table[] = {
    {"window_dimensions", Ints}, {"window_strides", Ints}, {"window_dilations", Ints}, {"padding", Pairs}};
constexpr GenericAttribute convolution_table[] = {
    {"dimension_numbers", ConvolutionLayout},
    {"window_strides", Ints},
    {"padding", Pairs},
    {"lhs_dilation", Ints},
    {"rhs_dilation", Ints},
    {"window_reversal", Flags},
    {"feature_group_count", Int},
    {"batch_group_count", Int},
};
constexpr GenericAttribute gather_table[] = {
    {"dimension_numbers", Group, "#stablehlo.gather"},
    {"offset_dims", GroupList},
    {"collapsed_slice_dims", GroupList},
    {"operand_batching_dims", GroupList},
    {"start_indices_batching_dims", GroupList},
    {"start_index_map", GroupList},
    {"index_vector_dim", GroupInt},
    {"", GroupEnd},
    {"slice_sizes", Ints},
    {"indices_are_sorted", Bool},
};
constexpr GenericAttribute scatter_table[] = {
    {"scatter_dimension_numbers", Group, "#stablehlo.scatter"},
    {"update_window_dims", GroupList},
    {"inserted_window_dims", GroupList},
    {"input_batching_dims", GroupList},
    {"scatter_indices_batching_dims", GroupList},
    {"scatter_dims_to_operand_dims", GroupList},
    {"index_vector_dim", GroupInt},
    {"", GroupEnd},
    {"indices_are_sorted", Bool},
    {"unique_indices", Bool},
};
constexpr GenericAttribute sort_table[] = {{"dimension", Int}, {"is_stable", Bool}};

constexpr PrettySyntax elementwise{Opcode::Add, "%*", TypeSyntax::Same};

}  // namespace

const PrettySyntax* pretty_syntax(Opcode opcode) {
  for (const PrettySyntax& row : pretty_table) {
    if (row.opcode == opcode) return &row;
  }
  switch (op_info(opcode).category) {
    case OpCategory::Unary:
    case OpCategory::Binary:
    case OpCategory::Ternary:
      return &elementwise;
    default:
      return nullptr;
  }
}

std::span<const GenericAttribute> generic_attributes(Opcode opcode) {
  switch (opcode) {
    case Opcode::Reduce:
      return reduce_table;
    case Opcode::ReduceWindow:
      return reduce_window_table;
    case Opcode::Convolution:
      return convolution_table;
    case Opcode::Gather:
      return gather_table;
    case Opcode::Scatter:
      return scatter_table;
    case Opcode::Sort:
      return sort_table;
    default:
      return {};
  }
}

int find_opcode(std::string_view mnemonic) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    if (op_info(static_cast<Opcode>(i)).mnemonic == mnemonic) return i;
  }
  return -1;
}

std::string_view direction_name(ComparisonDirection direction) {
  static constexpr std::string_view names[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  return names[static_cast<int>(direction)];
}

std::string convolution_layout(size_t spatial) {
  std::string dimensions;
  for (size_t d = 0; d < spatial; ++d) dimensions += ", " + std::to_string(d);
  return "#stablehlo.conv<[b, f" + dimensions + "]x[o, i" + dimensions + "]->[b, f" + dimensions + "]>";
}

}  // namespace neuron::ir
