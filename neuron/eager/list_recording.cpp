#include "neuron/eager/list_recording.h"

#include "neuron/eager/recording.h"
#include "neuron/eager/settings.h"
#include "neuron/eager/stream.h"

namespace neuron::eager {

ListRecording::ListRecording(Stream& stream, const lowering::Operator& op, DType common, bool reduces, int outputs,
                             int inputs, std::span<const int64_t> attributes, size_t most_items, int threads)
    : stream_(stream), reduces_(reduces) {
  if (most_items == 0 || !may_record()) return;
  const char* location = caller_location();
  lock_ = std::unique_lock(stream.mutex());
  window_ = &stream.window();
  command_ = &append_command(stream, CommandKind::Region, location);
  command_->op = &op;
  command_->common = common;
  command_->rank = 1;
  command_->output_count = static_cast<uint8_t>(outputs);
  command_->input_count = static_cast<uint16_t>(inputs);
  command_->attribute_count = static_cast<uint8_t>(attributes.size());
  command_->attributes = window_->arena.copy(attributes);
  command_->threads = threads;
  command_->reduced = reduces ? 1 : 0;
  next_ = command_->operands = window_->arena.allocate<Operand>(most_items * command_->operand_count());
}

ListRecording::~ListRecording() {
  if (command_ != nullptr) window_->commands.pop_back();
}

void ListRecording::begin_item(int64_t count) {
  if (command_ == nullptr) return;
  if (size_ == nullptr || *size_ != count) {
    int64_t* size = window_->arena.allocate<int64_t>(1);
    *size = count;
    size_ = size;
  }
  if (items_++ == 0) command_->sizes = size_;
}

void ListRecording::keep(std::shared_ptr<void> owner) {
  if (command_ != nullptr) window_->owners.push_back(std::move(owner));
}

void ListRecording::finish() {
  if (command_ == nullptr || items_ == 0) return;
  command_->items = items_;
  command_ = nullptr;
  window_->further_items += items_ - 1;
  counters().commands.fetch_add(items_ - 1, std::memory_order_relaxed);
  counters().region_commands.fetch_add(items_, std::memory_order_relaxed);
  const uint64_t wait_for = stream_.recorded();
  lock_.unlock();
  finish_recording(stream_, wait_for);
}

}  // namespace neuron::eager
