// The environment variables of the package, from one table (options.def). Each is read and checked once, when it is
// first asked for; a bad value raises Error(Value) naming variable, value and what is allowed, at every question. Any
// thread, no setup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neuron {

enum class OptionType : uint8_t { Flag, Integer, Bytes, Text, Path, Choice, List };
const char* option_type_name(OptionType type);

enum class Option : uint8_t {
#define HONOURED(id, name, type, fallback, allowed, help) id,
#define ACCEPTED(id, name, type, fallback, allowed, help, reason) id,
#include "neuron/base/options.def"
#undef HONOURED
#undef ACCEPTED
};

struct OptionRow {
  Option id;
  const char* name;
  OptionType type;
  const char* fallback;  // the default, in the variable's own syntax
  const char* allowed;
  const char* help;
  const char* reason;  // null: honoured; otherwise why it has no effect
};
const std::vector<OptionRow>& option_table();

// True when the variable is set to something (the empty text counts as not set).
bool option_is_set(Option option);

bool option_flag(Option option);                             // Flag
int64_t option_integer(Option option);                       // Integer, Bytes; an empty default is -1
const std::string& option_text(Option option);               // Text, Path, Choice
const std::vector<std::string>& option_list(Option option);  // List

// "4GiB", "1.5MB", "4096": binary for K, M, G, T and KiB …, decimal for KB …. Throws Error(Value) naming `what`.
int64_t parse_bytes(std::string_view text, std::string_view what);

// Raises for the first set variable whose value is bad. Called when the device is first used.
void check_environment();

struct OptionNotice {
  std::string name, text;
};
// Every set variable whose value is bad, with what check_environment() would raise for it.
std::vector<OptionNotice> option_problems();

// Variables that are set but have no effect, unknown variables that begin with TORCH_NEURONX_, and near misses of the
// others; an unknown name is answered with the one that was probably meant.
std::vector<OptionNotice> option_notices();

// Every variable with its value, for a listing command.
struct OptionListing {
  std::string name, type, fallback, value, help, reason;
  bool set = false;
};
std::vector<OptionListing> option_listing();

// The text of docs/environment.md.
std::string render_options_markdown();

// Forgets what was read. For tests: text handed out before is invalid afterwards.
void reload_options();

}  // namespace neuron
