// neuron-opt: read StableHLO text, run passes on it, print, verify or interpret it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "neuron/base/error.h"
#include "neuron/interpret/interpreter.h"
#include "neuron/ir/parser.h"
#include "neuron/ir/printer.h"
#include "neuron/passes/pipeline.h"

namespace {

using neuron::ErrorKind;
using neuron::fail;
using neuron::interpret::Buffer;
using neuron::ir::Graph;
using neuron::passes::Pass;

constexpr const char* usage = R"(usage: neuron-opt [options] FILE      (FILE may be -: standard input)

  --pass=NAME        run a pass; may be given several times, in order
  --pipeline         run the passes of a region, in their order
  --print-each       print the program before the first pass and after each one
  --list             list the passes and what they are for
  --verify           only check the program: print nothing
  --interpret        run the program and print its results, one literal a line
  --argument=TEXT    an argument of --interpret: dense<[1.0, 2.0]> : tensor<2xf32>; once per parameter, in order
  --arguments=FILE   the same, one a line
  --hexadecimal      print results as bytes: dense<"0x0000803F"> : tensor<f32> (i1: one byte an element)
)";

struct Settings {
  std::string file;
  std::vector<const Pass*> passes;
  std::vector<std::string> arguments;
  bool print_each = false, list = false, verify = false, interpret = false, hexadecimal = false, help = false;
};

std::string read(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::Value, "cannot read {}", path);
  text << file.rdbuf();
  return text.str();
}

Settings parse_arguments(int count, char** values) {
  Settings settings;
  auto value_of = [](const std::string& argument, std::string_view option) -> const char* {
    return argument.starts_with(option) ? argument.c_str() + option.size() : nullptr;
  };
  for (int i = 1; i < count; ++i) {
    std::string argument = values[i];
    if (const char* name = value_of(argument, "--pass=")) {
      const Pass* pass = neuron::passes::find_pass(name);
      if (pass == nullptr) fail(ErrorKind::Value, "there is no pass '{}'; --list shows them", name);
      settings.passes.push_back(pass);
    } else if (const char* text = value_of(argument, "--argument=")) {
      settings.arguments.emplace_back(text);
    } else if (const char* path = value_of(argument, "--arguments=")) {
      std::istringstream lines(read(path));
      for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) settings.arguments.push_back(line);
      }
    } else if (argument == "--pipeline") {
      auto list = neuron::passes::region_pipeline();
      settings.passes.insert(settings.passes.end(), list.begin(), list.end());
    } else if (argument == "--print-each") {
      settings.print_each = true;
    } else if (argument == "--list") {
      settings.list = true;
    } else if (argument == "--verify") {
      settings.verify = true;
    } else if (argument == "--interpret") {
      settings.interpret = true;
    } else if (argument == "--hexadecimal") {
      settings.hexadecimal = true;
    } else if (argument == "--help") {
      settings.help = true;
    } else if (argument.starts_with("--") || !settings.file.empty()) {
      fail(ErrorKind::Value, "unexpected argument '{}'; --help shows what is allowed", argument);
    } else {
      settings.file = argument;
    }
  }
  return settings;
}

void interpret(const Graph& graph, const Settings& settings) {
  std::vector<Buffer> arguments;
  for (const std::string& text : settings.arguments) {
    neuron::ir::Literal literal = neuron::ir::parse_literal_text(text);
    Buffer& buffer = arguments.emplace_back(literal.type.dtype, literal.type.dims);
    size_t step = literal.bytes.size();
    for (size_t at = 0; at < buffer.bytes.size(); at += step)
      std::copy(literal.bytes.begin(), literal.bytes.end(), buffer.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (const Buffer& result : neuron::interpret::evaluate(graph, arguments, {})) {
    neuron::ir::Literal literal{{result.dtype, result.sizes}, result.bytes};
    std::string text = neuron::ir::print_dense(literal, result.sizes);
    if (settings.hexadecimal && !result.bytes.empty()) {
      text = "dense<\"0x";
      for (std::byte byte : result.bytes) text += fmt::format("{:02X}", static_cast<int>(byte));
      text += "\">";
    }
    fmt::print("{} : {}\n", text, to_string(literal.type));
  }
}

void run(const Settings& settings) {
  if (settings.help) {
    fmt::print("{}", usage);
    return;
  }
  if (settings.list) {
    for (const Pass* pass : neuron::passes::all_passes()) fmt::print("{}\n    {}\n", pass->name, pass->purpose);
    return;
  }
  if (settings.file.empty()) fail(ErrorKind::Value, "no file is given; --help shows what is allowed");
  Graph graph = neuron::ir::parse(read(settings.file));
  neuron::passes::PipelineOptions options{.observe = {}, .verify = true};
  if (settings.print_each) {
    options.observe = [](std::string_view pass, const Graph& made) {
      fmt::print("// {}\n{}\n", pass, neuron::ir::print(made));
    };
  }
  graph = neuron::passes::run_passes(graph, settings.passes, options);
  if (settings.interpret) return interpret(graph, settings);
  if (!settings.verify && !settings.print_each) fmt::print("{}", neuron::ir::print(graph));
}

}  // namespace

int main(int count, char** values) {
  try {
    run(parse_arguments(count, values));
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {  // Error, or std::bad_alloc for a program of huge tensors
    fmt::print(stderr, "neuron-opt: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
