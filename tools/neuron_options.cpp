// Lists the environment variables; with --markdown writes the text of docs/environment.md.
#include <cstdio>
#include <cstring>

#include "neuron/base/options.h"

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--markdown") == 0) {
    std::fputs(neuron::render_options_markdown().c_str(), stdout);
    return 0;
  }
  for (const auto& row : neuron::option_listing()) {
    std::printf("%-52s %-8s %s%s%s\n", row.name.c_str(), row.type.c_str(), row.value.c_str(), row.set ? " (set)" : "",
                row.reason.empty() ? "" : " (no effect)");
  }
  return 0;
}
