#include "neuron/eager/region_emitter.h"

#include <algorithm>
#include <cstring>

#include "neuron/eager/region_space.h"

namespace neuron::eager {

namespace {

codegen::InnerStride inner_class(int64_t size, int64_t stride) {
  if (size == 1) return codegen::InnerStride::One;
  if (stride == 0) return codegen::InnerStride::Zero;
  return stride == 1 ? codegen::InnerStride::One : codegen::InnerStride::Other;
}

template <typename T>
void append(std::string& key, T value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void RegionEmitter::collect(std::span<const RegionCommand> commands, const Space& space, bool single) {
  inputs_.clear();
  outputs_.clear();
  stored_.clear();
  references_.clear();
  auto bind_strides = [&](const CanonicalCommand& canonical, int operand, int64_t* result) {
    const int64_t* strides = canonical.operand_strides(operand);
    if (single) {
      std::copy(strides, strides + space.rank, result);
    } else {
      refine_strides(space, canonical.space, strides, result);
    }
  };
  for (int32_t c = 0; c < static_cast<int32_t>(commands.size()); ++c) {
    const PlannedCommand& planned = *commands[c].planned;
    const Command& command = *planned.command;
    for (int i = 0; i < command.input_count; ++i) {
      int operand_index = command.output_count + i;
      const Operand& operand = command.operands[operand_index];
      const Source& source = commands[c].sources[i];
      if (source.command >= 0) {
        references_.push_back({-1, source.command, source.output});
        continue;
      }
      char* data = commands[c].data && commands[c].data[operand_index] ? commands[c].data[operand_index] : operand.data;
      uint64_t layout = planned.canonical.layouts[operand_index];
      int32_t external = -1;
      if (operand.kind == codegen::OperandKind::Tensor) {
        for (size_t e = 0; e < inputs_.size(); ++e) {
          if (inputs_[e].layout == layout && inputs_[e].data == data) external = static_cast<int32_t>(e);
        }
      }
      if (external < 0) {
        external = static_cast<int32_t>(inputs_.size());
        External& added = inputs_.emplace_back();
        added.operand = &operand;
        added.reference = {c, operand_index};
        added.data = data;
        added.layout = layout;
        bind_strides(planned.canonical, operand_index, added.strides);
      }
      references_.push_back({external, -1, -1});
    }
    for (int o = 0; o < command.output_count; ++o) {
      if (!planned.stored[o] && !single) continue;
      const Operand& operand = command.operands[o];
      char* data = commands[c].data && commands[c].data[o] ? commands[c].data[o] : operand.data;
      External& added = outputs_.emplace_back();
      added.operand = &operand;
      added.reference = {c, o};
      added.data = data;
      added.layout = planned.canonical.layouts[o];
      bind_strides(planned.canonical, o, added.strides);
      stored_.push_back({c, o});
    }
  }
}

void RegionEmitter::collapse(const Space& space) {
  // Dimensions at the end that carry the reduction stay as they are.
  int fixed = reduction_ == codegen::Reduction::None ? 0 : reduction_ == codegen::Reduction::Inner ? 1 : 2;
  int free = space.rank - fixed;
  int map[kMaxRank];  // collapsed dimension -> innermost dimension of `space` it covers
  rank_ = 0;
  auto mergeable = [&](const External& external, int outer, int inner) {
    if (external.operand->kind == codegen::OperandKind::Scalar) return true;
    return external.strides[outer] == external.strides[inner] * space.sizes[inner];
  };
  for (int d = 0; d < space.rank; ++d) {
    bool merge = rank_ > 0 && d < free;
    for (const auto* list : {&inputs_, &outputs_}) {
      for (const External& external : *list) merge = merge && mergeable(external, map[rank_ - 1], d);
    }
    if (merge) {
      collapsed_[rank_ - 1] *= space.sizes[d];
      map[rank_ - 1] = d;
    } else {
      collapsed_[rank_] = space.sizes[d];
      map[rank_++] = d;
    }
  }
  sizes_.assign(collapsed_, collapsed_ + rank_);
  strides_.clear();
  pointers_.clear();
  scalars_.clear();
  for (const auto* list : {&inputs_, &outputs_}) {
    for (const External& external : *list) {
      bool tensor = external.operand->kind == codegen::OperandKind::Tensor;
      pointers_.push_back(tensor ? external.data : nullptr);
      if (list == &inputs_) scalars_.push_back(external.operand->scalar);
      for (int d = 0; d < rank_; ++d) {
        int64_t stride = external.operand->kind == codegen::OperandKind::Scalar ? 0 : external.strides[map[d]];
        strides_.push_back(stride);
      }
    }
  }
}

void RegionEmitter::append_key(std::span<const RegionCommand> commands) {
  key_.clear();
  append(key_, static_cast<uint8_t>(rank_));
  append(key_, reduction_);
  size_t reference = 0;
  for (const RegionCommand& entry : commands) {
    const Command& command = *entry.planned->command;
    append(key_, command.op->id);
    append(key_, command.common);
    append(key_, command.attribute_count);
    for (int i = 0; i < command.attribute_count; ++i) append(key_, command.attributes[i]);
    append(key_, command.output_count);
    for (const Operand& output : command.outputs()) append(key_, output.dtype);
    append(key_, command.input_count);
    for (int i = 0; i < command.input_count; ++i) {
      const InputReference& from = references_[reference++];
      append(key_, static_cast<int16_t>(from.external));
      append(key_, static_cast<int16_t>(from.command));
      append(key_, static_cast<int16_t>(from.output));
    }
  }
  size_t strides = 0;
  auto append_external = [&](const External& external) {
    append(key_, external.operand->kind);
    // The dtype of a number matters only as float or integer; of a tensor, exactly.
    append(key_, external.operand->dtype);
    append(key_, inner_class(collapsed_[rank_ - 1], strides_[strides + rank_ - 1]));
    strides += rank_;
  };
  for (const External& external : inputs_) append_external(external);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    append_external(outputs_[i]);
    append(key_, static_cast<int16_t>(stored_[i].command));
    append(key_, static_cast<int16_t>(stored_[i].output));
  }
}

void RegionEmitter::bind(std::span<const RegionCommand> commands, const Space& space, codegen::Reduction reduction,
                         bool single) {
  reduction_ = reduction;
  collect(commands, space, single);
  collapse(space);
  append_key(commands);
}

void RegionEmitter::append_references(std::vector<Reference>& references) const {
  for (const External& external : inputs_) references.push_back(external.reference);
  for (const External& external : outputs_) references.push_back(external.reference);
}

codegen::RegionSpec RegionEmitter::build_spec(std::span<const RegionCommand> commands) const {
  auto graph = std::make_shared<ir::Graph>("region");
  ir::Builder builder(*graph);
  Dims space;
  for (int d = 0; d < rank_; ++d) space.push_back(graph->add_symbol());
  codegen::RegionSpec spec;
  spec.rank = rank_;
  spec.reduction = reduction_;

  size_t strides = 0;
  auto signature = [&](const External& external) {
    codegen::OperandSignature result{external.operand->kind, external.operand->dtype,
                                     inner_class(collapsed_[rank_ - 1], strides_[strides + rank_ - 1])};
    if (result.kind == codegen::OperandKind::Scalar) result.inner = codegen::InnerStride::Zero;
    strides += rank_;
    return result;
  };
  std::vector<ir::Value> parameters;
  for (const External& external : inputs_) {
    bool scalar = external.operand->kind == codegen::OperandKind::Scalar;
    parameters.push_back(graph->add_parameter({external.operand->dtype, scalar ? Dims{} : space}));
    spec.inputs.push_back(signature(external));
  }
  int reduced_dimension = reduction_ == codegen::Reduction::None    ? -1
                          : reduction_ == codegen::Reduction::Inner ? rank_ - 1
                                                                    : rank_ - 2;
  std::vector<int64_t> kept_dimensions;
  for (int d = 0; d < rank_; ++d) {
    if (d != reduced_dimension) kept_dimensions.push_back(d);
  }
  std::vector<std::vector<ir::Value>> values;
  size_t reference = 0;
  for (const RegionCommand& entry : commands) {
    const Command& command = *entry.planned->command;
    std::vector<ir::Value> inputs;
    for (int i = 0; i < command.input_count; ++i) {
      const InputReference& from = references_[reference++];
      ir::Value value = from.external >= 0 ? parameters[from.external] : values[from.command][from.output];
      bool reduced = from.external < 0 && graph->type(value).rank() < rank_;
      inputs.push_back(reduced ? builder.broadcast_in_dim(value, space, kept_dimensions) : value);
    }
    std::vector<DType> output_dtypes;
    for (const Operand& output : command.outputs()) output_dtypes.push_back(output.dtype);
    lowering::Context context(builder, space, reduced_dimension, inputs,
                              std::span(command.attributes, command.attribute_count), command.common, output_dtypes);
    command.op->lower(context);
    values.emplace_back(context.results().begin(), context.results().end());
  }
  std::vector<ir::Value> results;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ir::Value value = values[stored_[i].command][stored_[i].output];
    results.push_back(value);
    codegen::OperandSignature output = signature(outputs_[i]);
    bool reduced = graph->type(value).rank() < rank_;
    if (reduced && reduction_ == codegen::Reduction::Inner) output.inner = codegen::InnerStride::Zero;
    spec.outputs.push_back(output);
  }
  graph->set_results(results);
  spec.graph = std::move(graph);
  return spec;
}

}  // namespace neuron::eager
