// Ordered queues of work on one executor thread per core: the shape of the Neuron runtime's asynchronous queues.
//
// Tasks of one queue run in submission order; queues of one core share its executor. The executor thread starts on the
// first submission that nobody waits for. A thread that waits runs the queue's tasks itself when the executor is not at
// it, so a host read costs no thread switch. After fork the child must not use queues of the parent (Error(Runtime)
// says so).
#pragma once

#include <cstdint>
#include <memory>

namespace neuron::runtime {

class Task {
 public:
  virtual ~Task() = default;
  // False: the queue waits (an event of another stream is not complete); the executor turns to other queues meanwhile.
  // Asked without locks by whichever thread is at work; asked again after each task of the core and after
  // notify_queues().
  virtual bool ready() { return true; }
  // Exceptions must not escape: a task records its own failure.
  virtual void run() noexcept = 0;
};

class Queue {
 public:
  virtual ~Queue() = default;
  // Any thread. Returns the sequence number of the task: 1, 2, 3 … per queue.
  // A caller that waits right after says so: then the executor is not woken, and the waiting thread runs the task
  // itself.
  virtual uint64_t submit(std::unique_ptr<Task> task, bool caller_waits = false) = 0;
  // submit() and wait() in one.
  virtual uint64_t run(std::unique_ptr<Task> task) = 0;
  virtual uint64_t submitted() const = 0;
  virtual uint64_t completed() const = 0;
  // Returns when `sequence` has completed; helps as described above. Must not be called from a task.
  virtual void wait(uint64_t sequence) = 0;
};

// What a thread gives up while it waits for another one, which may need it: the lock of an interpreter, when a task's
// memory belongs to an object of its. `leave` is called without locks of the queues and returns what `enter` is given
// when the wait ends; both run on the waiting thread and must not throw.
struct WaitHooks {
  void* (*leave)();
  void (*enter)(void* state);
};
// For the whole process; what is pointed to must outlive every wait. Null: none.
void set_wait_hooks(const WaitHooks* hooks);

// Whether the calling thread is running a task: it must not wait for a queue then.
bool inside_task();

// A new queue on logical core `core`. The runtime keeps it alive until the process ends.
Queue& create_queue(int core);

// Wakes the executor of a core after an event that its tasks' ready() depends on has changed.
void notify_queues(int core);

// Runs what is queued on all cores, ends the executor threads and refuses later submissions (Error(Runtime)). A task
// that can never become ready is dropped. For the end of the process; does nothing in a forked child and on a second
// call.
void shutdown_queues();

}  // namespace neuron::runtime
