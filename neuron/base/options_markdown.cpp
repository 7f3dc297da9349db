// docs/environment.md, written from the table of variables.
#include <string>

#include "neuron/base/error.h"
#include "neuron/base/options.h"

namespace neuron {
namespace {

std::string allowed_values(const OptionRow& row) {
  const std::string allowed = row.allowed;
  switch (row.type) {
    case OptionType::Flag:
      return "0 or 1";
    case OptionType::Integer: {
      const size_t bar = allowed.find('|');
      if (bar == std::string::npos) return "integer";
      return allowed.substr(0, bar) + " to " + allowed.substr(bar + 1);
    }
    case OptionType::Bytes:
      return "bytes: `4096`, `512MiB`, `4GiB`";
    case OptionType::Text:
      return "text";
    case OptionType::Path:
      return "path";
    case OptionType::Choice:
    case OptionType::List: {
      std::string text = "`";
      for (char c : allowed) text += c == '|' ? std::string("`, `") : std::string(1, c);
      return text + "`" + (row.type == OptionType::List ? " (commas between)" : "");
    }
  }
  return "";
}

std::string fallback(const OptionRow& row) { return *row.fallback == 0 ? "" : fmt::format("`{}`", row.fallback); }

}  // namespace

std::string render_options_markdown() {
  std::string text =
      "# Environment variables\n\n"
      "Written from `neuron/base/options.def`. A variable is read once, when it is first needed; the empty text counts "
      "as not\n"
      "set. A value that is not allowed raises an error that names the variable, the value and what is allowed. Flags "
      "also take\n"
      "`true`/`false`, `yes`/`no`, `on`/`off`. Of byte sizes, `KiB`, `MiB`, `GiB` and `K`, `M`, `G` are powers of "
      "1024, `KB`, "
      "`MB`,\n`GB` powers of 1000.\n\n"
      "## Variables with an effect\n\n| variable | values | default | meaning |\n|---|---|---|---|\n";
  for (const OptionRow& row : option_table()) {
    if (row.reason != nullptr) continue;
    text += fmt::format("| `{}` | {} | {} | {} |\n", row.name, allowed_values(row), fallback(row), row.help);
  }
  text +=
      "\n## Variables that are accepted without an effect\n\n"
      "Programs written for AWS's package may set these. One notice says why nothing changes.\n\n"
      "| variable | meaning there | why it has no effect here |\n|---|---|---|\n";
  for (const OptionRow& row : option_table()) {
    if (row.reason == nullptr) continue;
    text += fmt::format("| `{}` | {} | {} |\n", row.name, row.help, row.reason);
  }
  return text;
}

}  // namespace neuron
