#include "neuron/base/options.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "torch_neuronx/csrc/python/bindings.h"

namespace torch_neuronx {

namespace nb = nanobind;

namespace {

// (name of the variable, what is to be said about it)
nb::list pairs(const std::vector<neuron::OptionNotice>& notices) {
  nb::list result;
  for (const neuron::OptionNotice& notice : notices) result.append(nb::make_tuple(notice.name, notice.text));
  return result;
}

}  // namespace

void bind_options(nb::module_& module) {
  module.def("option_listing", [] {
    nb::list result;
    for (const neuron::OptionListing& option : neuron::option_listing()) {
      nb::dict row;
      row["name"] = option.name;
      row["type"] = option.type;
      row["default"] = option.fallback;
      row["value"] = option.value;
      row["set"] = option.set;
      row["help"] = option.help;
      row["reason"] = option.reason;
      result.append(row);
    }
    return result;
  });
  module.def("option_notices", [] { return pairs(neuron::option_notices()); });
  module.def("option_problems", [] { return pairs(neuron::option_problems()); });
}

}  // namespace torch_neuronx
