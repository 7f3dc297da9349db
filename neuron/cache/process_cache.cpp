// The cache of the process: where the environment puts it.
#include <cstdlib>

#include "neuron/base/options.h"
#include "neuron/cache/build_id.h"
#include "neuron/cache/cache.h"

namespace neuron::cache {
namespace {

std::string environment_directory() {
  if (option_flag(Option::DisableNeffCache) || option_flag(Option::NeffDisableCache)) return "";
  if (option_is_set(Option::CacheDir)) return option_text(Option::CacheDir);
  if (option_is_set(Option::NeffCacheDir)) return option_text(Option::NeffCacheDir);
  // A relative XDG_CACHE_HOME is invalid by its specification.
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base == '/') {
    return std::string(base) + "/torch_neuronx";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != 0 ? std::string(home) + "/.cache/torch_neuronx" : "";
}

}  // namespace

Settings environment_settings() {
  Settings settings;
  settings.directory = environment_directory();
  settings.disk_limit = option_integer(Option::CacheSize);
  settings.build = build_id();
  const std::string library = own_library_path();
  settings.packs = {library.substr(0, library.rfind('/') + 1) + "kernels.pack"};
  return settings;
}

Cache& process_cache() {
  static auto* cache = new Cache(environment_settings());
  return *cache;
}

}  // namespace neuron::cache
