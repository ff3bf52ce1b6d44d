#include "engine/llama/threads.h"

#include <ggml-backend.h>
#include <ggml.h>
#include <llama.h>
#include <sched.h>

#include <algorithm>

namespace modeld {
namespace {

// How long a waiting thread polls before it sleeps, 0 … 100 in ggml's scale.
constexpr std::uint32_t kPoll = 0;

template <typename Function>
Function* cpu_function(const char* name) {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr) return nullptr;
  return reinterpret_cast<Function*>(ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), name));
}

using NewPool = ggml_threadpool*(ggml_threadpool_params*);
using FreePool = void(ggml_threadpool*);

}  // namespace

std::int32_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

ThreadCounts thread_counts(std::int32_t asked) {
  if (asked > 0) return {.prefill = asked, .decode = asked};
  const std::int32_t cores = std::min(available_cores(), GGML_MAX_N_THREADS);
  return {.prefill = cores, .decode = std::max(1, cores / 2)};
}

Threads::Threads(std::int32_t count) {
  if (count < 2) return;
  auto* make = cpu_function<NewPool>("ggml_threadpool_new");
  if (make == nullptr) return;
  ggml_threadpool_params params = ggml_threadpool_params_default(count);
  params.poll = kPoll;
  pool_ = make(&params);
}

Threads::~Threads() {
  if (pool_ == nullptr) return;
  if (auto* release = cpu_function<FreePool>("ggml_threadpool_free")) release(pool_);
}

void Threads::attach(llama_context* context) const {
  if (pool_ != nullptr) llama_attach_threadpool(context, pool_, pool_);
}

}  // namespace modeld
