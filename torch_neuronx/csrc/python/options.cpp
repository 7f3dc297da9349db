#include "neuron/base/options.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "torch_neuronx/csrc/python/bindings.h"

namespace torch_neuronx {

namespace nb = nanobind;

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
  module.def("option_notices", [] {
    nb::list result;
    for (const neuron::OptionNotice& notice : neuron::option_notices()) {
      result.append(nb::make_tuple(notice.name, notice.text));
    }
    return result;
  });
}

}  // namespace torch_neuronx
