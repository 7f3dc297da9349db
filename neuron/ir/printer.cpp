#include "neuron/ir/printer.h"

#include <cctype>
#include <map>

#include "neuron/base/error.h"
#include "neuron/ir/assembly.h"
#include "neuron/ir/decompositions.h"
#include "neuron/ir/verifier.h"

namespace neuron::ir {

namespace {

std::string join(const std::vector<int64_t>& list) { return fmt::format("{}", fmt::join(list, ", ")); }

// What all functions of one module share: symbol sizes, and the private functions printed so far.
class ModulePrinter {
 public:
  explicit ModulePrinter(std::span<const int64_t> symbol_sizes) : symbol_sizes_(symbol_sizes) {}

  Type concrete(Type type) const {
    if (symbol_sizes_.empty()) return type;
    for (Dim& dim : type.dims) {
      if (!is_symbolic(dim)) continue;
      auto symbol = static_cast<size_t>(symbol_of(dim));
      check_internal(symbol < symbol_sizes_.size(), "print: symbol {} has no size, {} sizes are given", symbol,
                     symbol_sizes_.size());
      dim = symbol_sizes_[symbol];
    }
    return type;
  }
  std::string text_of(const Type& type) const { return to_string(concrete(type)); }

  // Prints a decomposition and returns its name; equal bodies share one function.
  std::string add_function(std::string_view composite, const Graph& body);
  const std::string& functions() const { return functions_; }

 private:
  std::span<const int64_t> symbol_sizes_;
  std::string functions_;
  std::map<std::string, std::string> name_of_body_;
  std::map<std::string, int> uses_of_name_;
};

// Prints the body of one function. Names are unique in it, those inside regions included.
class FunctionPrinter {
 public:
  explicit FunctionPrinter(ModulePrinter& module) : module_(module) {}

  // "(%arg0: …) -> (…) {\n…}\n", with the attributes of arguments.
  std::string print(const Graph& graph, bool with_memory);

 private:
  using Names = std::vector<std::string>;

  Names name_parameters(const Graph& graph) {
    Names names(static_cast<size_t>(graph.value_count()));
    for (Value parameter : graph.parameters()) names[parameter.id] = fmt::format("%arg{}", arguments_++);
    return names;
  }

  void print_body(const Graph& graph, Names& names, const std::string& indent, const char* terminator);
  void print_operation(const Graph& graph, const Operation& operation, const Names& names, const std::string& indent);
  void print_pretty(const PrettySyntax& syntax, const Operation& operation, const Names& names);
  void print_slice(const Operation& operation, const Names& names);
  void print_dot_general(const Operation& operation, const Names& names);
  void print_composite(const Graph& graph, const Operation& operation, const Names& names);
  void print_generic(const Operation& operation, const Names& names, const std::string& indent);
  void print_generic_attributes(const Operation& operation);
  std::string attribute(const AttributeValue& value) const;

  std::string operand_list(const Operation& operation, const Names& names) const {
    std::string text;
    for (Value operand : operation.operands) text += (text.empty() ? "" : ", ") + names[operand.id];
    return text;
  }
  std::string functional_type(const Graph& graph, const Operation& operation) const {
    std::string operands, results;
    for (Value operand : operation.operands)
      operands += (operands.empty() ? "" : ", ") + module_.text_of(graph.type(operand));
    for (Value result : operation.results)
      results += (results.empty() ? "" : ", ") + module_.text_of(graph.type(result));
    if (operation.results.size() != 1) results = "(" + results + ")";
    return "(" + operands + ") -> " + results;
  }

  ModulePrinter& module_;
  std::string text_;
  int arguments_ = 0;
  int values_ = 0;
};

std::string FunctionPrinter::print(const Graph& graph, bool with_memory) {
  Names names = name_parameters(graph);
  std::string results;
  for (Value result : graph.results()) results += (results.empty() ? "" : ", ") + module_.text_of(graph.type(result));
  text_ = "(";
  for (size_t i = 0; i < graph.parameters().size(); ++i) {
    Value parameter = graph.parameters()[i];
    text_ += fmt::format("{}{}: {}", i == 0 ? "" : ", ", names[parameter.id], module_.text_of(graph.type(parameter)));
    if (!with_memory) continue;
    for (const Alias& alias : graph.aliases()) {
      if (alias.parameter == static_cast<int>(i))
        text_ += fmt::format(" {{tf.aliasing_output = {} : i32}}", alias.result);
    }
    for (int donated : graph.donated()) {
      if (donated == static_cast<int>(i)) text_ += " {jax.buffer_donor = true}";
    }
  }
  text_ += ") -> (" + results + ") {\n";
  print_body(graph, names, "    ", "return");
  return text_ + "  }\n";
}

void FunctionPrinter::print_body(const Graph& graph, Names& names, const std::string& indent, const char* terminator) {
  for (const Operation& operation : graph.operations()) {
    int number = values_++;
    for (size_t i = 0; i < operation.results.size(); ++i)
      names[operation.results[i].id] =
          operation.results.size() == 1 ? fmt::format("%{}", number) : fmt::format("%{}#{}", number, i);
    text_ += indent;
    if (operation.results.size() == 1) text_ += fmt::format("%{} = ", number);
    if (operation.results.size() > 1) text_ += fmt::format("%{}:{} = ", number, operation.results.size());
    print_operation(graph, operation, names, indent);
    text_ += "\n";
  }
  std::string values, types;
  for (Value result : graph.results()) {
    values += (values.empty() ? "" : ", ") + names[result.id];
    types += (types.empty() ? "" : ", ") + module_.text_of(graph.type(result));
  }
  text_ += indent + terminator + (values.empty() ? "" : " " + values + " : " + types) + "\n";
}

void FunctionPrinter::print_operation(const Graph& graph, const Operation& operation, const Names& names,
                                      const std::string& indent) {
  std::string functional = " : " + functional_type(graph, operation);
  if (operation.opcode == Opcode::Constant) {
    const auto& literal = operation.attributes.get<Literal>("value");
    Type type = module_.concrete(graph.type(operation.results[0]));
    text_ += fmt::format("stablehlo.constant {} : {}", print_dense(literal, type.dims), to_string(type));
    return;
  }
  if (const PrettySyntax* syntax = pretty_syntax(operation.opcode)) {
    print_pretty(*syntax, operation, names);
    bool same = true;
    for (Value operand : operation.operands) same &= graph.type(operand) == graph.type(operation.results[0]);
    bool single = syntax->types == TypeSyntax::Result || (syntax->types == TypeSyntax::Same && same);
    text_ += single ? " : " + module_.text_of(graph.type(operation.results[0])) : functional;
    return;
  }
  SimpleReducer reducer;
  if (operation.opcode == Opcode::Reduce && operation.results.size() == 1)
    reducer = simple_reducer(*operation.regions[0]);
  if (operation.opcode == Opcode::Slice) {
    print_slice(operation, names);
  } else if (operation.opcode == Opcode::DotGeneral) {
    print_dot_general(operation, names);
  } else if (reducer.valid) {
    text_ += fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.{} across dimensions = [{}]",
                         names[operation.operands[0].id], names[operation.operands[1].id],
                         op_info(reducer.opcode).mnemonic, join(operation.attributes.get_ints("dimensions")));
  } else if (operation.opcode == Opcode::Composite || operation.opcode == Opcode::RngBitGenerator) {
    print_composite(graph, operation, names);
  } else {
    print_generic(operation, names, indent);
  }
  text_ += functional;
}

void FunctionPrinter::print_pretty(const PrettySyntax& syntax, const Operation& operation, const Names& names) {
  text_ += fmt::format("stablehlo.{} ", op_info(operation.opcode).mnemonic);
  std::string_view format = syntax.format;
  for (size_t i = 0; i < format.size(); ++i) {
    auto name_up_to = [&](char close) {
      size_t end = format.find(close, i);
      std::string_view name = format.substr(i + 1, end - i - 1);
      i = end;
      return name;
    };
    switch (format[i]) {
      case '%':
        ++i;
        text_ += format[i] == '*' ? operand_list(operation, names) : names[operation.operands[format[i] - '0'].id];
        break;
      case '[':
        text_ += "[" + join(operation.attributes.get_ints(name_up_to(']'))) + "]";
        break;
      case '{':
        text_ += fmt::format("{}", operation.attributes.get_int(name_up_to('}')));
        break;
      case '<':
        text_ += direction_name(operation.attributes.get<ComparisonDirection>(name_up_to('>')));
        break;
      default:
        text_ += format[i];
    }
  }
}

void FunctionPrinter::print_slice(const Operation& operation, const Names& names) {
  const auto& start = operation.attributes.get_ints("start_indices");
  const auto& limit = operation.attributes.get_ints("limit_indices");
  const auto& strides = operation.attributes.get_ints("strides");
  text_ += "stablehlo.slice " + operand_list(operation, names) + " [";
  for (size_t d = 0; d < start.size(); ++d) {
    text_ += fmt::format("{}{}:{}", d == 0 ? "" : ", ", start[d], limit[d]);
    if (strides[d] != 1) text_ += fmt::format(":{}", strides[d]);
  }
  text_ += "]";
}

void FunctionPrinter::print_dot_general(const Operation& operation, const Names& names) {
  const Attributes& attributes = operation.attributes;
  text_ += "stablehlo.dot_general " + operand_list(operation, names);
  if (!attributes.get_ints("lhs_batching_dimensions").empty())
    text_ += fmt::format(", batching_dims = [{}] x [{}]", join(attributes.get_ints("lhs_batching_dimensions")),
                         join(attributes.get_ints("rhs_batching_dimensions")));
  text_ += fmt::format(", contracting_dims = [{}] x [{}]", join(attributes.get_ints("lhs_contracting_dimensions")),
                       join(attributes.get_ints("rhs_contracting_dimensions")));
}

void FunctionPrinter::print_composite(const Graph& graph, const Operation& operation, const Names& names) {
  bool random = operation.opcode == Opcode::RngBitGenerator;
  std::string name = random ? std::string(kRngComposite) : operation.attributes.get<std::string>("name");
  constexpr std::string_view prefix = "neuron.";
  std::string_view short_name = std::string_view(name).substr(name.starts_with(prefix) ? prefix.size() : 0);
  std::string function;
  if (random) {
    function = module_.add_function(short_name, rng_decomposition(module_.concrete(graph.type(operation.results[1]))));
  } else if (name.starts_with(prefix) && function_operands(short_name) != 0) {
    Type type = module_.concrete(graph.type(operation.results[0]));
    const bool numbers = short_name.starts_with("random_");
    function = module_.add_function(
        short_name, numbers ? random_decomposition(short_name, type) : function_decomposition(short_name, type));
  } else {
    check_internal(!operation.regions.empty(), "print: composite '{}' has no decomposition", name);
    function = module_.add_function(short_name, *operation.regions[0]);
  }
  text_ += fmt::format("stablehlo.composite \"{}\" {} {{", name, operand_list(operation, names));
  std::string entries;
  for (const auto& [key, value] : operation.attributes.entries()) {
    if (random || key == "name") continue;
    entries += fmt::format("{}{} = {}", entries.empty() ? "" : ", ", key, attribute(value));
  }
  if (!entries.empty()) text_ += "composite_attributes = {" + entries + "}, ";
  text_ += "decomposition = @" + function + "}";
}

void FunctionPrinter::print_generic(const Operation& operation, const Names& names, const std::string& indent) {
  text_ += fmt::format("\"stablehlo.{}\"({}) <{{", op_info(operation.opcode).mnemonic, operand_list(operation, names));
  print_generic_attributes(operation);
  text_ += "}>";
  for (const auto& region : operation.regions) {
    text_ += " ({\n";
    Names inner = name_parameters(*region);
    text_ += indent + "^bb0(";
    for (size_t i = 0; i < region->parameters().size(); ++i) {
      Value parameter = region->parameters()[i];
      text_ +=
          fmt::format("{}{}: {}", i == 0 ? "" : ", ", inner[parameter.id], module_.text_of(region->type(parameter)));
    }
    text_ += "):\n";
    print_body(*region, inner, indent + "  ", "stablehlo.return");
    text_ += indent + "})";
  }
}

void FunctionPrinter::print_generic_attributes(const Operation& operation) {
  const Attributes& attributes = operation.attributes;
  bool first = true;
  for (const GenericAttribute& row : generic_attributes(operation.opcode)) {
    if (row.syntax == AttributeSyntax::GroupEnd) {
      text_ += ">";
      first = false;
      continue;
    }
    text_ += fmt::format("{}{} = ", first ? "" : ", ", row.name);
    first = false;
    auto pairs = [&] {
      const auto& list = attributes.get_ints(row.name);
      std::string inside;
      for (size_t i = 0; i + 1 < list.size(); i += 2)
        inside += fmt::format("{}[{}, {}]", i == 0 ? "" : ", ", list[i], list[i + 1]);
      std::string value = list.empty() ? "" : "[" + inside + "]";
      return fmt::format("dense<{}> : tensor<{}x2xi64>", value, list.size() / 2);
    };
    auto array = [&](const char* element, const std::string& values) {
      return fmt::format("array<{}{}{}>", element, values.empty() ? "" : ": ", values);
    };
    switch (row.syntax) {
      case AttributeSyntax::Ints:
        text_ += array("i64", join(attributes.get_ints(row.name)));
        break;
      case AttributeSyntax::Flags: {
        std::string flags;
        for (int64_t flag : attributes.get_ints(row.name))
          flags += fmt::format("{}{}", flags.empty() ? "" : ", ", flag != 0);
        text_ += array("i1", flags);
        break;
      }
      case AttributeSyntax::Int:
        text_ += fmt::format("{} : i64", attributes.get_int(row.name));
        break;
      case AttributeSyntax::Bool:
        text_ += fmt::format("{}", attributes.get<bool>(row.name));
        break;
      case AttributeSyntax::Pairs:
        text_ += pairs();
        break;
      case AttributeSyntax::Group:
        text_ += fmt::format("{}<", row.keyword);
        first = true;
        break;
      case AttributeSyntax::GroupList:
        text_ += "[" + join(attributes.get_ints(row.name)) + "]";
        break;
      case AttributeSyntax::GroupInt:
        text_ += fmt::format("{}", attributes.get_int(row.name));
        break;
      case AttributeSyntax::GroupEnd:
        break;
      case AttributeSyntax::ConvolutionLayout:
        text_ += convolution_layout(attributes.get_ints("window_strides").size());
        break;
    }
  }
}

// An attribute of a composite, in MLIR's self-describing syntax.
std::string FunctionPrinter::attribute(const AttributeValue& value) const {
  struct Printer {
    const ModulePrinter& module;
    std::string operator()(bool x) const { return x ? "true" : "false"; }
    std::string operator()(int64_t x) const { return fmt::format("{} : i64", x); }
    std::string operator()(double x) const {
      return print_element(DType::Float64, reinterpret_cast<const std::byte*>(&x)) + " : f64";
    }
    std::string operator()(const std::string& x) const {
      std::string text = "\"";
      for (char c : x) {
        bool plain = std::isprint(static_cast<unsigned char>(c)) && c != '"' && c != '\\';
        text += plain ? std::string(1, c) : fmt::format("\\{:02X}", static_cast<unsigned char>(c));
      }
      return text + "\"";
    }
    std::string operator()(const std::vector<int64_t>& x) const {
      return "array<i64" + (x.empty() ? "" : ": " + join(x)) + ">";
    }
    std::string operator()(DType x) const { return std::string(dtype_name(x)); }
    std::string operator()(ComparisonDirection x) const {
      return fmt::format("#stablehlo<comparison_direction {}>", direction_name(x));
    }
    std::string operator()(const Literal& x) const {
      Type type = module.concrete(x.type);
      return print_dense(x, type.dims) + " : " + to_string(type);
    }
  };
  return std::visit(Printer{module_}, value);
}

std::string ModulePrinter::add_function(std::string_view composite, const Graph& body) {
  std::string text = FunctionPrinter(*this).print(body, false);
  auto known = name_of_body_.find(text);
  if (known != name_of_body_.end()) return known->second;
  std::string name;
  for (char c : composite) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || name == "main" || std::isdigit(static_cast<unsigned char>(name[0]))) name = "composite_" + name;
  int use = uses_of_name_[name]++;
  // A dot cannot come from a composite's name, so numbered names do not collide with others.
  if (use > 0) name += fmt::format(".{}", use);
  functions_ += "  func.func private @" + name + text;
  name_of_body_[text] = name;
  return name;
}

}  // namespace

std::string print(const Graph& graph, std::span<const int64_t> symbol_sizes) {
  ModulePrinter module(symbol_sizes);
  std::string main = FunctionPrinter(module).print(graph, true);
  std::string name;
  for (char c : graph.name()) name += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "graph_" + name;
  // Decompositions come first: a reader meets each name before its use.
  return "module @" + name + " {\n" + module.functions() + "  func.func public @main" + main + "}\n";
}

}  // namespace neuron::ir
