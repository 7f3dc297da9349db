#include "neuron/base/options.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "neuron/base/error.h"

extern char** environ;

namespace neuron {
namespace {

struct Value {
  bool set = false;
  int64_t number = 0;  // Flag, Integer, Bytes
  std::string text;
  std::vector<std::string> items;
};

constexpr size_t kOptionCount = 0
#define HONOURED(id, name, type, fallback, allowed, help) +1
#define ACCEPTED(id, name, type, fallback, allowed, help, reason) +1
#include "neuron/base/options.def"
#undef HONOURED
#undef ACCEPTED
    ;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    items.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

[[noreturn]] void bad_value(const OptionRow& row, std::string_view text, const std::string& allowed) {
  fail(ErrorKind::Value, "{}={} is not a valid setting: allowed {}", row.name, text, allowed);
}

std::string comma_separated(const std::vector<std::string>& items) {
  std::string result;
  for (const std::string& item : items) result += (result.empty() ? "" : ", ") + item;
  return result;
}

int64_t parse_flag(const OptionRow& row, std::string_view text) {
  const std::string word = lower(text);
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (word == yes) return 1;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (word == no) return 0;
  }
  bad_value(row, text, "are 1, true, yes, on and 0, false, no, off");
}

int64_t parse_integer(const OptionRow& row, std::string_view text) {
  int64_t lowest = INT64_MIN, highest = INT64_MAX;
  std::string allowed = "is an integer";
  if (const auto limits = split(row.allowed, '|'); limits.size() == 2) {
    lowest = std::stoll(limits[0]);
    highest = std::stoll(limits[1]);
    allowed = fmt::format("are integers from {} to {}", lowest, highest);
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest || value > highest) {
    bad_value(row, text, allowed);
  }
  return value;
}

Value parse(const OptionRow& row, std::string_view text) {
  Value value;
  value.text = text;
  switch (row.type) {
    case OptionType::Flag:
      value.number = parse_flag(row, text);
      break;
    case OptionType::Integer:
      value.number = parse_integer(row, text);
      break;
    case OptionType::Bytes:
      value.number = text.empty() ? -1 : parse_bytes(text, row.name);
      break;
    case OptionType::Text:
    case OptionType::Path:
      break;
    case OptionType::Choice:
    case OptionType::List: {
      const auto allowed = split(row.allowed, '|');
      value.items = row.type == OptionType::List ? split(text, ',') : std::vector<std::string>{std::string(text)};
      for (const std::string& item : value.items) {
        if (std::find(allowed.begin(), allowed.end(), item) == allowed.end()) {
          bad_value(row, text,
                    (row.type == OptionType::List ? "are, separated by commas, " : "are ") + comma_separated(allowed));
        }
      }
      break;
    }
  }
  return value;
}

const OptionRow& row_of(Option option) { return option_table()[static_cast<size_t>(option)]; }

const char* environment_text(const OptionRow& row) {
  const char* text = std::getenv(row.name);
  return text != nullptr && *text != 0 ? text : nullptr;
}

Value read(const OptionRow& row) {
  const char* text = environment_text(row);
  Value value = parse(row, text != nullptr ? text : row.fallback);
  value.set = text != nullptr;
  return value;
}

struct Slot {
  std::atomic<const Value*> ready{nullptr};
  std::unique_ptr<const Value> value;
};

std::mutex read_mutex;
std::array<Slot, kOptionCount>& slots() {
  static auto* all = new std::array<Slot, kOptionCount>;
  return *all;
}

const Value& value_of(Option option) {
  Slot& slot = slots()[static_cast<size_t>(option)];
  if (const Value* value = slot.ready.load(std::memory_order_acquire)) return *value;
  std::lock_guard lock(read_mutex);
  if (const Value* value = slot.ready.load(std::memory_order_acquire)) return *value;
  slot.value = std::make_unique<const Value>(read(row_of(option)));
  slot.ready.store(slot.value.get(), std::memory_order_release);
  return *slot.value;
}

const Value& typed_value(Option option, std::initializer_list<OptionType> types) {
  const OptionRow& row = row_of(option);
  check_internal(std::find(types.begin(), types.end(), row.type) != types.end(), "{} is a {}", row.name,
                 option_type_name(row.type));
  return value_of(option);
}

}  // namespace

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> table = {
#define HONOURED(id, name, type, fallback, allowed, help) \
  {Option::id, name, OptionType::type, fallback, allowed, help, nullptr},
#define ACCEPTED(id, name, type, fallback, allowed, help, reason) \
  {Option::id, name, OptionType::type, fallback, allowed, help, reason},
#include "neuron/base/options.def"
#undef HONOURED
#undef ACCEPTED
  };
  return table;
}

const char* option_type_name(OptionType type) {
  switch (type) {
    case OptionType::Flag:
      return "flag";
    case OptionType::Integer:
      return "integer";
    case OptionType::Bytes:
      return "bytes";
    case OptionType::Text:
      return "text";
    case OptionType::Path:
      return "path";
    case OptionType::Choice:
      return "choice";
    case OptionType::List:
      return "list";
  }
  return "?";
}

int64_t parse_bytes(std::string_view text, std::string_view what) {
  double amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  std::string unit = lower(std::string_view(end, text.data() + text.size()));
  double scale = 1;
  bool known = error == std::errc() && amount >= 0 && std::isfinite(amount);
  if (!unit.empty() && unit != "b") {
    const size_t power = std::string_view("kmgt").find(unit[0]);
    const std::string_view rest = std::string_view(unit).substr(1);
    known = known && power != std::string_view::npos && (rest.empty() || rest == "ib" || rest == "b");
    scale = known ? std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1)) : 0;
  }
  if (!known || amount * scale > 9e18) {
    fail(ErrorKind::Value, "{}={} is not a valid setting: allowed is a number of bytes, such as 4096, 512MiB or 4GiB",
         what, text);
  }
  return static_cast<int64_t>(amount * scale);
}

bool option_is_set(Option option) { return value_of(option).set; }
bool option_flag(Option option) { return typed_value(option, {OptionType::Flag}).number != 0; }
int64_t option_integer(Option option) { return typed_value(option, {OptionType::Integer, OptionType::Bytes}).number; }
const std::string& option_text(Option option) {
  return typed_value(option, {OptionType::Text, OptionType::Path, OptionType::Choice}).text;
}
const std::vector<std::string>& option_list(Option option) { return typed_value(option, {OptionType::List}).items; }

void check_environment() {
  for (const OptionRow& row : option_table()) {
    if (row.reason == nullptr) value_of(row.id);
  }
}

namespace {

// Changes of one character, and swaps of neighbours, that make one text the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

// The variable a name was probably meant to be; null when none is near.
const OptionRow* nearest_option(std::string_view name, size_t furthest) {
  const OptionRow* nearest = nullptr;
  for (const OptionRow& row : option_table()) {
    const size_t distance = edit_distance(name, row.name);
    if (distance > furthest) continue;
    furthest = distance - 1;
    nearest = &row;
    if (distance <= 1) break;
  }
  return nearest;
}

}  // namespace

std::vector<OptionNotice> option_problems() {
  std::vector<OptionNotice> problems;
  for (const OptionRow& row : option_table()) {
    if (row.reason != nullptr) continue;
    try {
      read(row);
    } catch (const Error& error) {
      problems.push_back({row.name, error.what()});
    }
  }
  return problems;
}

std::vector<OptionNotice> option_notices() {
  std::vector<OptionNotice> notices;
  for (const OptionRow& row : option_table()) {
    if (row.reason != nullptr && environment_text(row) != nullptr) {
      notices.push_back({row.name, fmt::format("{} has no effect here: {}", row.name, row.reason)});
    }
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool ours = name.starts_with("TORCH_NEURONX_");
    // Other programs have variables of these families too: only a near miss is worth a notice.
    if (!ours && !name.starts_with("NEURON_") && !name.starts_with("TORCH_NEURON")) continue;
    const auto& table = option_table();
    if (std::any_of(table.begin(), table.end(), [&](const OptionRow& row) { return name == row.name; })) continue;
    const OptionRow* meant = nearest_option(name, ours ? 4 : 2);
    if (!ours && meant == nullptr) continue;
    const std::string hint = meant != nullptr ? fmt::format("; did you mean {}?", meant->name) : "";
    notices.push_back({std::string(name), fmt::format("{} is not a variable of this package{}", name, hint)});
  }
  return notices;
}

std::vector<OptionListing> option_listing() {
  std::vector<OptionListing> listing;
  for (const OptionRow& row : option_table()) {
    const char* text = environment_text(row);
    listing.push_back({row.name, option_type_name(row.type), row.fallback, text != nullptr ? text : row.fallback,
                       row.help, row.reason != nullptr ? row.reason : "", text != nullptr});
  }
  return listing;
}

void reload_options() {
  std::lock_guard lock(read_mutex);
  for (Slot& slot : slots()) {
    slot.ready.store(nullptr);
    slot.value.reset();
  }
}

}  // namespace neuron
