/* The C interface for foreign kernels: host functions that work on the memory of a neuron device in the order of a
 * stream, beside the operations that PyTorch records.
 *
 *   neuron_stream* stream;
 *   neuron_current_stream(-1, &stream);
 *   neuron_range ranges[] = {{out, bytes, NEURON_WRITE}, {in, bytes, NEURON_READ}};
 *   neuron_command command = {sizeof command, "scale", run, release, context, ranges, 2, 0};
 *   neuron_enqueue(stream, &command);
 *
 * Compile with the directory that torch_neuronx.get_include() names, link with libneuron.so from
 * torch_neuronx.get_library_dir(). C99; C++ may include it. foreign_torch.h has the ranges of a torch tensor.
 *
 * Versions: NEURON_FOREIGN_VERSION is what this header describes, neuron_foreign_version() what is loaded. A later
 * version only adds functions, and members at the end of the structures; `struct_bytes` says which the caller knows.
 *
 * Errors: a function that fails returns a status other than NEURON_OK; neuron_error_message() has the text. No function
 * throws. Threads: any. None takes Python's global interpreter lock, and no lock is held while a function of the caller
 * runs.
 */
#ifndef NEURON_FOREIGN_H
#define NEURON_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEURON_FOREIGN_VERSION 1

/* In Python, the status a function returns becomes the exception of that name. */
typedef enum neuron_status {
  NEURON_OK = 0,
  NEURON_RUNTIME_ERROR = 1,
  NEURON_INDEX_ERROR = 2,
  NEURON_TYPE_ERROR = 3,
  NEURON_VALUE_ERROR = 4,
  NEURON_NOT_IMPLEMENTED = 5,
  NEURON_OUT_OF_MEMORY = 6,
  NEURON_INTERNAL_ERROR = 7
} neuron_status;

/* What a command does to a range. WRITE promises that every byte is written, whatever was there before: earlier writes
 * that nobody else reads may then be left out. A command that writes some bytes only says READ_WRITE. */
typedef enum neuron_access { NEURON_READ = 1, NEURON_WRITE = 2, NEURON_READ_WRITE = 3 } neuron_access;

/* Bytes of device memory, within one allocation; or host memory, which is then only kept in order with other commands
 * that name it. */
typedef struct neuron_range {
  void* address;
  size_t bytes;
  neuron_access access;
} neuron_range;

/* A queue of commands; lives as long as the process. `native_handle` of a torch.Stream is its address. */
typedef struct neuron_stream neuron_stream;

/* Runs on a thread of the device, after the commands it depends on. May use up to `threads` threads, best through
 * neuron_parallel_for(). Must not enqueue, synchronise or take the global interpreter lock. To fail, call
 * neuron_set_error() and return another status: the error is raised by the next call that waits for the stream, and
 * what the command should have written counts as never written. */
typedef neuron_status (*neuron_function)(void* context, int threads);

typedef struct neuron_command {
  size_t struct_bytes; /* sizeof(neuron_command) */
  const char* name;    /* in error messages and reports; must live as long as the process */
  neuron_function run; /* called once; once a replay when it was captured into a graph; not at all when an input was
                          never written because of an error */
  void (*release)(void* context); /* called exactly once, when `run` will not be called again, also when enqueueing
                                     fails; on any thread; may be null */
  void* context;
  const neuron_range* ranges; /* read during the call only. Without ranges the command is a barrier: all earlier
                                 commands run before it, all later ones after it */
  size_t range_count;
  int threads; /* most threads to run on; 0: what the caller's thread is set to */
} neuron_command;

/* What is known of an address. */
typedef struct neuron_pointer_info {
  size_t struct_bytes; /* sizeof(neuron_pointer_info), set by the caller */
  int device;          /* index of the device, -1 when it is not device memory (then the rest is 0) */
  void* base;          /* of the allocation */
  size_t bytes;        /* usable, from `base` */
} neuron_pointer_info;

int neuron_foreign_version(void);

/* The text of the calling thread's last error; empty when there was none. Valid until the thread's next call. */
const char* neuron_error_message(void);
/* The text of the error that a neuron_function is about to return. */
void neuron_set_error(const char* message);

/* The stream on which the calling thread's operations on a device are recorded; -1: the current device. */
neuron_status neuron_current_stream(int device, neuron_stream** stream);
/* Hands everything recorded to the device; does not wait. */
neuron_status neuron_flush(neuron_stream* stream);
/* Waits until everything recorded has run, and returns the error of what failed, if any. */
neuron_status neuron_synchronize(neuron_stream* stream);

/* Records a command. Device memory that it names may be freed by its owner at once: it is not reused before the command
 * has run. Host memory must be kept by `context` until `release`. */
neuron_status neuron_enqueue(neuron_stream* stream, const neuron_command* command);

neuron_status neuron_get_pointer_info(const void* address, neuron_pointer_info* info);

/* The number of threads that the calling thread's operations may use (torch.get_num_threads()). */
int neuron_threads(void);
/* Divides [0, count) among at most `threads` threads of the device's pool, the caller being one, at least `grain` items
 * each, and returns when all calls of `body` have. */
neuron_status neuron_parallel_for(int threads, int64_t count, int64_t grain,
                                  void (*body)(void* context, int64_t begin, int64_t end), void* context);

/* For tensors of torch: `storage` is the c10::StorageImpl whose memory a command writes. Its pointer, should Python or
 * C++ ask for it later, then waits for the command. Call it for every range that is written. */
neuron_status neuron_note_write(void* storage);

#ifdef __cplusplus
}
#endif

#endif
