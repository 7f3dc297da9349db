// What the ways of recording share. Private to this folder.
#pragma once

#include "neuron/eager/command.h"

namespace neuron::eager {

// Where the caller is in its program, or null. Asked before the stream is locked: the provider may wait for the
// interpreter, whose holder may be recording.
const char* caller_location();
// A new command at the end of the stream's window, whose mutex is held.
Command& append_command(Stream& stream, CommandKind kind, const char* location);
// After the stream was unlocked: immediate modes wait for what they recorded (0: nothing to wait for).
void finish_recording(Stream& stream, uint64_t wait_for);

}  // namespace neuron::eager
