#include "neuron/ir/parser.h"

#include <map>

#include "neuron/base/error.h"
#include "neuron/ir/assembly.h"
#include "neuron/ir/builder.h"
#include "neuron/ir/parser_values.h"
#include "neuron/ir/verifier.h"

namespace neuron::ir {

namespace {

constexpr int deepest_region = 32;

struct Signature {
  std::vector<Type> operands, results;
};

// An operation as it is read, before it is appended.
struct Draft {
  Opcode opcode;
  size_t position;
  std::vector<Value> operands;
  Attributes attributes;
  std::vector<std::shared_ptr<const Graph>> regions;
};

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : cursor_(text) {}

  Graph parse();

 private:
  using Scope = std::map<std::string, Value, std::less<>>;

  void parse_function(Graph& main, bool& found);
  void parse_memory(Graph& graph, int parameter);
  void parse_body(Graph& graph, Scope& scope, std::string_view terminator);
  void parse_operation(Graph& graph, Scope& scope);

  void parse_pretty(const PrettySyntax& syntax, Draft& draft, const Scope& scope);
  void parse_slice(Draft& draft, const Scope& scope);
  void parse_dot_general(Draft& draft, const Scope& scope);
  void parse_reduce(Draft& draft, const Scope& scope, const Graph& graph);
  void parse_composite(Draft& draft, const Scope& scope);
  void parse_generic(Draft& draft, const Scope& scope);
  void parse_generic_attribute(Draft& draft);
  void parse_group(Draft& draft, const GenericAttribute& group);
  void parse_convolution_layout();
  std::shared_ptr<const Graph> parse_region();

  Value parse_value(const Scope& scope);
  std::vector<Value> parse_values(const Scope& scope);
  void define(Scope& scope, std::string name, Value value, size_t position);
  std::vector<Type> parse_types();
  Signature parse_functional_type();
  std::vector<Type> parse_type_tail(TypeSyntax syntax, const Graph& graph, const Draft& draft);

  TextCursor cursor_;
  std::map<std::string, std::shared_ptr<const Graph>, std::less<>> functions_;
  int depth_ = 0;
};

Graph ModuleParser::parse() {
  cursor_.expect("module");
  std::string name = cursor_.peek() == '@' ? cursor_.symbol_name() : "main";
  Graph main(name);
  bool found = false;
  cursor_.expect("{");
  while (!cursor_.consume("}")) parse_function(main, found);
  if (!cursor_.at_end()) cursor_.fail("text follows the module");
  if (!found) cursor_.fail("the module has no function @main");
  return main;
}

void ModuleParser::parse_function(Graph& main, bool& found) {
  cursor_.expect("func.func");
  if (!cursor_.consume("private")) cursor_.consume("public");
  cursor_.peek();
  size_t position = cursor_.position();
  std::string name = cursor_.symbol_name();
  bool is_main = name == "main";
  if (is_main ? found : functions_.contains(name)) cursor_.fail_at(position, "function '@{}' is defined twice", name);
  auto owned = std::make_shared<Graph>(name);
  Graph& graph = is_main ? main : *owned;
  Scope scope;
  cursor_.expect("(");
  if (!cursor_.consume(")")) {
    do {
      cursor_.peek();
      size_t at = cursor_.position();
      std::string parameter(cursor_.value_name());
      cursor_.expect(":");
      define(scope, std::move(parameter), graph.add_parameter(parse_type(cursor_)), at);
      if (cursor_.consume("{")) parse_memory(graph, static_cast<int>(graph.parameters().size()) - 1);
    } while (cursor_.consume(","));
    cursor_.expect(")");
  }
  std::vector<Type> results;
  if (cursor_.consume("->")) results = parse_types();
  cursor_.expect("{");
  parse_body(graph, scope, "return");
  bool fits = results.size() == graph.results().size();
  for (size_t i = 0; fits && i < results.size(); ++i) fits = results[i] == graph.type(graph.results()[i]);
  if (!fits) cursor_.fail_at(position, "'@{}' returns other types than it declares", name);
  if (is_main) {
    found = true;
  } else {
    functions_[name] = std::move(owned);
  }
}

// After "{": the attributes of a parameter.
void ModuleParser::parse_memory(Graph& graph, int parameter) {
  do {
    if (cursor_.consume("tf.aliasing_output")) {
      cursor_.expect("=");
      graph.add_alias({static_cast<int>(cursor_.integer()), parameter});
      cursor_.expect(":");
      cursor_.expect("i32");
    } else {
      cursor_.expect("jax.buffer_donor");
      cursor_.expect("=");
      if (parse_bool(cursor_)) graph.donate(parameter);
    }
  } while (cursor_.consume(","));
  cursor_.expect("}");
}

// Operations up to and including the terminator and the closing brace.
void ModuleParser::parse_body(Graph& graph, Scope& scope, std::string_view terminator) {
  while (!cursor_.consume(terminator)) {
    if (cursor_.at_end()) cursor_.fail("expected '{}', found the end of the text", terminator);
    parse_operation(graph, scope);
  }
  std::vector<Value> results;
  if (cursor_.peek() == '%') {
    results = parse_values(scope);
    cursor_.expect(":");
    for (size_t i = 0; i < results.size(); ++i) {
      if (i > 0) cursor_.expect(",");
      cursor_.peek();
      size_t at = cursor_.position();
      if (!(parse_type(cursor_) == graph.type(results[i])))
        cursor_.fail_at(at, "result {} is {}", i, to_string(graph.type(results[i])));
    }
  }
  graph.set_results(results);
  cursor_.expect("}");
}

void ModuleParser::define(Scope& scope, std::string name, Value value, size_t position) {
  auto [entry, inserted] = scope.emplace(std::move(name), value);
  if (!inserted) cursor_.fail_at(position, "'{}' is defined twice", entry->first);
}

Value ModuleParser::parse_value(const Scope& scope) {
  cursor_.peek();
  size_t position = cursor_.position();
  std::string_view name = cursor_.value_name();
  auto found = scope.find(name);
  if (found == scope.end()) cursor_.fail_at(position, "'{}' is not defined here", name);
  return found->second;
}

std::vector<Value> ModuleParser::parse_values(const Scope& scope) {
  std::vector<Value> values;
  while (cursor_.peek() == '%') {
    values.push_back(parse_value(scope));
    // A comma may also lead on to a keyword.
    TextCursor ahead = cursor_;
    if (!ahead.consume(",") || ahead.peek() != '%') break;
    cursor_ = ahead;
  }
  return values;
}

std::vector<Type> ModuleParser::parse_types() {
  std::vector<Type> types;
  if (!cursor_.consume("(")) return {parse_type(cursor_)};
  if (cursor_.consume(")")) return types;
  do {
    types.push_back(parse_type(cursor_));
  } while (cursor_.consume(","));
  cursor_.expect(")");
  return types;
}

Signature ModuleParser::parse_functional_type() {
  Signature signature;
  if (cursor_.peek() != '(') cursor_.expect("(");
  signature.operands = parse_types();
  cursor_.expect("->");
  signature.results = parse_types();
  return signature;
}

// After the colon: the types of operands, which are checked, and of results.
std::vector<Type> ModuleParser::parse_type_tail(TypeSyntax syntax, const Graph& graph, const Draft& draft) {
  cursor_.expect(":");
  cursor_.peek();
  size_t position = cursor_.position();
  Signature signature;
  if (syntax == TypeSyntax::Result) return {parse_type(cursor_)};
  if (syntax == TypeSyntax::Same && cursor_.peek() != '(') {
    signature.results = {parse_type(cursor_)};
    signature.operands.assign(draft.operands.size(), signature.results[0]);
  } else {
    signature = parse_functional_type();
  }
  if (signature.operands.size() != draft.operands.size())
    cursor_.fail_at(position, "{} operand types are given for {} operands", signature.operands.size(),
                    draft.operands.size());
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    const Type& type = graph.type(draft.operands[i]);
    if (!(type == signature.operands[i]))
      cursor_.fail_at(position, "operand {} is {}, not {}", i, to_string(type), to_string(signature.operands[i]));
  }
  return signature.results;
}

void ModuleParser::parse_operation(Graph& graph, Scope& scope) {
  cursor_.peek();
  size_t position = cursor_.position();
  std::string name;
  int64_t count = 0;
  if (cursor_.peek() == '%') {
    name = cursor_.value_name();
    count = cursor_.consume(":") ? cursor_.integer() : 1;
    cursor_.expect("=");
  }
  bool generic = cursor_.peek() == '"';
  cursor_.peek();
  Draft draft{Opcode::Constant, cursor_.position(), {}, {}, {}};
  std::string mnemonic = generic ? cursor_.string() : std::string(cursor_.identifier());
  constexpr std::string_view dialect = "stablehlo.";
  int opcode = mnemonic.starts_with(dialect) ? find_opcode(std::string_view(mnemonic).substr(dialect.size())) : -1;
  if (opcode < 0) cursor_.fail_at(draft.position, "'{}' is no operation", mnemonic);
  draft.opcode = static_cast<Opcode>(opcode);
  std::vector<Type> results;
  if (generic) {
    if (generic_attributes(draft.opcode).empty())
      cursor_.fail_at(draft.position, "'{}' has no generic form here", mnemonic);
    parse_generic(draft, scope);
    results = parse_type_tail(TypeSyntax::Functional, graph, draft);
  } else if (draft.opcode == Opcode::Constant) {
    Literal literal = parse_literal(cursor_);
    results = {literal.type};
    draft.attributes.set("value", std::move(literal));
  } else if (const PrettySyntax* syntax = pretty_syntax(draft.opcode)) {
    parse_pretty(*syntax, draft, scope);
    results = parse_type_tail(syntax->types, graph, draft);
  } else {
    switch (draft.opcode) {
      case Opcode::Slice:
        parse_slice(draft, scope);
        break;
      case Opcode::DotGeneral:
        parse_dot_general(draft, scope);
        break;
      case Opcode::Reduce:
        parse_reduce(draft, scope, graph);
        break;
      case Opcode::Composite:
        parse_composite(draft, scope);
        break;
      default:
        cursor_.fail_at(draft.position, "'{}' has only a generic form here", mnemonic);
    }
    results = parse_type_tail(TypeSyntax::Functional, graph, draft);
  }
  if (static_cast<int64_t>(results.size()) != count)
    cursor_.fail_at(position, "the operation gives {} results, {} are named", results.size(), count);
  graph.add_operation(draft.opcode, draft.operands, results, std::move(draft.attributes), std::move(draft.regions));
  const auto& made = graph.operations().back().results;
  for (size_t i = 0; i < made.size(); ++i)
    define(scope, count == 1 ? name : fmt::format("{}#{}", name, i), made[i], position);
}

void ModuleParser::parse_pretty(const PrettySyntax& syntax, Draft& draft, const Scope& scope) {
  std::string_view format = syntax.format;
  for (size_t i = 0; i < format.size(); ++i) {
    auto name_up_to = [&](char close) {
      size_t end = format.find(close, i);
      std::string_view name = format.substr(i + 1, end - i - 1);
      i = end;
      return name;
    };
    char c = format[i];
    if (c == '%') {
      ++i;
      if (format[i] == '*') {
        draft.operands = parse_values(scope);
      } else {
        draft.operands.push_back(parse_value(scope));
      }
    } else if (c == '[') {
      draft.attributes.set(name_up_to(']'), parse_list(cursor_));
    } else if (c == '{') {
      draft.attributes.set(name_up_to('}'), cursor_.integer());
    } else if (c == '<') {
      draft.attributes.set(name_up_to('>'), parse_direction(cursor_));
    } else if (c != ' ') {
      size_t end = format.find_first_of(" ,=", i + 1);
      if (c == ',' || c == '=') end = i + 1;
      cursor_.expect(format.substr(i, end - i));
      i = end - 1;
    }
  }
}

void ModuleParser::parse_slice(Draft& draft, const Scope& scope) {
  draft.operands.push_back(parse_value(scope));
  std::vector<int64_t> start, limit, strides;
  cursor_.expect("[");
  if (!cursor_.consume("]")) {
    do {
      start.push_back(parse_entry(cursor_));
      cursor_.expect(":");
      limit.push_back(parse_entry(cursor_));
      strides.push_back(cursor_.consume(":") ? parse_entry(cursor_) : 1);
    } while (cursor_.consume(","));
    cursor_.expect("]");
  }
  draft.attributes.set("start_indices", std::move(start));
  draft.attributes.set("limit_indices", std::move(limit));
  draft.attributes.set("strides", std::move(strides));
}

void ModuleParser::parse_dot_general(Draft& draft, const Scope& scope) {
  draft.operands = parse_values(scope);
  auto pair = [&](std::string_view what) {
    cursor_.expect("=");
    draft.attributes.set(fmt::format("lhs_{}_dimensions", what), parse_list(cursor_));
    cursor_.expect("x");
    draft.attributes.set(fmt::format("rhs_{}_dimensions", what), parse_list(cursor_));
  };
  draft.attributes.set("lhs_batching_dimensions", std::vector<int64_t>{});
  draft.attributes.set("rhs_batching_dimensions", std::vector<int64_t>{});
  cursor_.expect(",");
  if (cursor_.consume("batching_dims")) {
    pair("batching");
    cursor_.expect(",");
  }
  cursor_.expect("contracting_dims");
  pair("contracting");
}

void ModuleParser::parse_reduce(Draft& draft, const Scope& scope, const Graph& graph) {
  cursor_.expect("(");
  draft.operands.push_back(parse_value(scope));
  cursor_.expect("init");
  cursor_.expect(":");
  draft.operands.push_back(parse_value(scope));
  cursor_.expect(")");
  cursor_.expect("applies");
  cursor_.peek();
  size_t position = cursor_.position();
  cursor_.expect("stablehlo.");
  std::string_view mnemonic = cursor_.identifier();
  int opcode = find_opcode(mnemonic);
  bool binary = opcode >= 0 && op_info(static_cast<Opcode>(opcode)).category == OpCategory::Binary;
  if (!binary || static_cast<Opcode>(opcode) == Opcode::Compare || static_cast<Opcode>(opcode) == Opcode::Complex)
    cursor_.fail_at(position, "'{}' cannot be a reducer", mnemonic);
  cursor_.expect("across");
  cursor_.expect("dimensions");
  cursor_.expect("=");
  draft.attributes.set("dimensions", parse_list(cursor_));
  draft.regions.push_back(make_reducer(static_cast<Opcode>(opcode), graph.type(draft.operands[0]).dtype));
}

void ModuleParser::parse_composite(Draft& draft, const Scope& scope) {
  std::string name = cursor_.string();
  draft.operands = parse_values(scope);
  cursor_.expect("{");
  std::shared_ptr<const Graph> decomposition;
  draft.attributes.set("name", name);
  do {
    if (cursor_.consume("composite_attributes")) {
      cursor_.expect("=");
      cursor_.expect("{");
      if (cursor_.consume("}")) continue;
      do {
        std::string key(cursor_.identifier());
        if (draft.attributes.has(key)) cursor_.fail("attribute '{}' is given twice", key);
        cursor_.expect("=");
        draft.attributes.set(key, parse_attribute(cursor_));
      } while (cursor_.consume(","));
      cursor_.expect("}");
    } else {
      cursor_.expect("decomposition");
      cursor_.expect("=");
      cursor_.peek();
      size_t position = cursor_.position();
      std::string function = cursor_.symbol_name();
      auto found = functions_.find(function);
      if (found == functions_.end())
        cursor_.fail_at(position, "function '@{}' is not defined before its use", function);
      decomposition = found->second;
    }
  } while (cursor_.consume(","));
  cursor_.expect("}");
  if (!decomposition) cursor_.fail_at(draft.position, "the composite has no decomposition");
  if (name == kRngComposite) {
    draft.opcode = Opcode::RngBitGenerator;
    draft.attributes = {};
    draft.attributes.set("rng_algorithm", std::string("PHILOX"));
    return;
  }
  constexpr std::string_view prefix = "neuron.";
  bool known = name.starts_with(prefix) && function_operands(std::string_view(name).substr(prefix.size())) != 0;
  if (!known) draft.regions.push_back(std::move(decomposition));
}

void ModuleParser::parse_generic(Draft& draft, const Scope& scope) {
  cursor_.expect("(");
  draft.operands = parse_values(scope);
  cursor_.expect(")");
  if (cursor_.consume("<{")) {
    if (!cursor_.consume("}>")) {
      do {
        parse_generic_attribute(draft);
      } while (cursor_.consume(","));
      cursor_.expect("}>");
    }
  }
  if (!cursor_.consume("(")) return;
  do {
    draft.regions.push_back(parse_region());
  } while (cursor_.consume(","));
  cursor_.expect(")");
}

void ModuleParser::parse_generic_attribute(Draft& draft) {
  cursor_.peek();
  size_t position = cursor_.position();
  std::string_view name = cursor_.identifier();
  const GenericAttribute* row = nullptr;
  for (const GenericAttribute& entry : generic_attributes(draft.opcode)) {
    bool inside_group = entry.syntax == AttributeSyntax::GroupList || entry.syntax == AttributeSyntax::GroupInt;
    if (entry.name == name && !inside_group) row = &entry;
  }
  if (row == nullptr) cursor_.fail_at(position, "{} has no attribute '{}'", op_info(draft.opcode).mnemonic, name);
  cursor_.expect("=");
  switch (row->syntax) {
    case AttributeSyntax::Ints:
    case AttributeSyntax::Flags:
      draft.attributes.set(name, parse_array(cursor_));
      break;
    case AttributeSyntax::Int:
      draft.attributes.set(name, cursor_.integer());
      cursor_.expect(":");
      cursor_.expect("i64");
      break;
    case AttributeSyntax::Bool:
      draft.attributes.set(name, parse_bool(cursor_));
      break;
    case AttributeSyntax::Pairs: {
      Literal literal = parse_literal(cursor_);
      bool fits = literal.type.dtype == DType::Int64 && literal.type.rank() == 2 && literal.type.dims[1] == 2;
      if (!fits) cursor_.fail_at(position, "'{}' is no list of pairs", name);
      int64_t count = literal.type.dims[0] * 2;
      if (count > 1024) cursor_.fail_at(position, "'{}' has too many entries", name);
      std::vector<int64_t> list;
      for (int64_t i = 0; i < count; ++i) {
        int64_t value = literal_int(literal, literal.is_splat() ? 0 : i);
        if (value > most_elements || value < -most_elements) cursor_.fail_at(position, "'{}' holds {}", name, value);
        list.push_back(value);
      }
      draft.attributes.set(name, std::move(list));
      break;
    }
    case AttributeSyntax::Group:
      parse_group(draft, *row);
      break;
    case AttributeSyntax::ConvolutionLayout:
      parse_convolution_layout();
      break;
    default:
      break;
  }
}

void ModuleParser::parse_group(Draft& draft, const GenericAttribute& group) {
  cursor_.expect(group.keyword);
  cursor_.expect("<");
  // MLIR's own printer leaves empty lists out.
  for (const GenericAttribute& entry : generic_attributes(draft.opcode)) {
    if (entry.syntax == AttributeSyntax::GroupList) draft.attributes.set(entry.name, std::vector<int64_t>{});
  }
  do {
    cursor_.peek();
    size_t position = cursor_.position();
    std::string_view name = cursor_.identifier();
    cursor_.expect("=");
    const GenericAttribute* row = nullptr;
    for (const GenericAttribute& entry : generic_attributes(draft.opcode)) {
      if (entry.name == name) row = &entry;
    }
    if (row == nullptr) cursor_.fail_at(position, "'{}' is not known here", name);
    if (row->syntax == AttributeSyntax::GroupList) {
      draft.attributes.set(name, parse_list(cursor_));
    } else {
      draft.attributes.set(name, cursor_.integer());
    }
  } while (cursor_.consume(","));
  cursor_.expect(">");
}

// Only the layout that Builder::convolution has: it says nothing that has to be kept.
void ModuleParser::parse_convolution_layout() {
  cursor_.expect("#stablehlo.conv");
  cursor_.expect("<");
  auto part = [&](std::string_view first, std::string_view second) {
    cursor_.expect("[");
    cursor_.expect(first);
    cursor_.expect(",");
    cursor_.expect(second);
    for (int64_t d = 0; cursor_.consume(","); ++d) {
      if (cursor_.integer() != d) cursor_.fail("spatial dimensions must be in order");
    }
    cursor_.expect("]");
  };
  part("b", "f");
  cursor_.expect("x");
  part("o", "i");
  cursor_.expect("->");
  part("b", "f");
  cursor_.expect(">");
}

std::shared_ptr<const Graph> ModuleParser::parse_region() {
  if (++depth_ > deepest_region) cursor_.fail("regions are nested more than {} deep", deepest_region);
  auto graph = std::make_shared<Graph>("region");
  Scope scope;
  cursor_.expect("{");
  if (cursor_.consume("^")) {
    cursor_.identifier();
    cursor_.expect("(");
    if (!cursor_.consume(")")) {
      do {
        cursor_.peek();
        size_t position = cursor_.position();
        std::string name(cursor_.value_name());
        cursor_.expect(":");
        define(scope, std::move(name), graph->add_parameter(parse_type(cursor_)), position);
      } while (cursor_.consume(","));
      cursor_.expect(")");
    }
    cursor_.expect(":");
  }
  parse_body(*graph, scope, "stablehlo.return");
  --depth_;
  return graph;
}

}  // namespace

Literal parse_literal_text(std::string_view text) {
  TextCursor cursor(text);
  Literal literal = parse_literal(cursor);
  if (!cursor.at_end()) cursor.fail("text follows the literal");
  return literal;
}

Graph parse(std::string_view text) {
  Graph graph = ModuleParser(text).parse();
  try {
    verify(graph);
  } catch (const Error& error) {
    fail(ErrorKind::Value, "{}", error.what());
  }
  return graph;
}

}  // namespace neuron::ir
