#include <unordered_map>

#include "neuron/base/error.h"
#include "neuron/lowering/families.h"

namespace neuron::lowering {

namespace {

struct Table {
  std::vector<Operator> operators;
  std::unordered_map<std::string_view, const Operator*> by_name;

  Table() {
    const std::span<const Rule> families[] = {arithmetic_rules(),  comparison_rules(), bitwise_rules(),
                                              mathematics_rules(), activation_rules(), activation_gradient_rules(),
                                              loss_rules(),        creation_rules(),   random_rules(),
                                              reduction_rules(),   softmax_rules(),    normalization_rules(),
                                              optimizer_rules(),   recurrent_rules(),  special_rules()};
    for (std::span<const Rule> family : families)
      for (const Rule& rule : family)
        operators.push_back({rule.name, rule.kind, rule.lower, static_cast<uint32_t>(operators.size())});
    for (const Operator& op : operators) {
      bool inserted = by_name.emplace(op.name, &op).second;
      check_internal(inserted, "two lowering rules are named '{}'", op.name);
    }
  }
};

// Never destroyed: commands that hold operators may outlive static destructors.
const Table& table() {
  static const Table* table = new Table();
  return *table;
}

}  // namespace

const Operator* find_operator(std::string_view name) {
  auto found = table().by_name.find(name);
  return found == table().by_name.end() ? nullptr : found->second;
}

std::span<const Operator> all_operators() { return table().operators; }

}  // namespace neuron::lowering
