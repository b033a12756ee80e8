// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/event_kinds.h"

#include <algorithm>
#include <array>

#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

constexpr auto kFamilies = std::to_array<const EventFamily*>(
    {&kTracebackFamily, &kOomGpuFamily, &kOomHostFamily, &kKilledFamily, &kSlurmFamily,
     &kSignalFamily, &kLauncherFamily, &kNcclFamily, &kDeviceFamily, &kCudaFamily, &kKernelFamily,
     &kXlaFamily, &kPrecisionFamily, &kWorkersFamily, &kDataFamily, &kRayFamily, &kStorageFamily,
     &kStopFamily, &kNoteFamily});

using enum EventRole;
constexpr auto kKinds = std::to_array<EventKind>({
    {"oom_gpu", kRoot, "GPU memory ran out", "显存不足"},
    {"oom_host", kRoot, "host memory ran out", "主机内存不足"},
    {"oom_kill_host", kRoot, "killed for host memory", "因主机内存不足被杀死"},
    {"srun_oom", kConfirm, "Slurm ended a task for memory", "Slurm 因内存结束了任务"},
    {"xid", kRoot, "the GPU's driver reported an error", "显卡驱动报告错误"},
    {"cuda_assert", kRoot, "an assertion failed on the GPU", "GPU 上断言失败"},
    {"cuda_error", kRoot, "a CUDA call failed", "CUDA 调用失败"},
    {"device_not_bound", kRoot, "no usable GPU at start", "启动时没有可用的 GPU"},
    {"nccl_timeout", kCascade, "a collective timed out", "集合通信超时"},
    {"nccl_error", kCascade, "NCCL failed", "NCCL 失败"},
    {"nccl_warn", kNote, "NCCL warned", "NCCL 警告"},
    {"peers_not_ready", kRoot, "other ranks did not come up", "其他进程没有就绪"},
    {"xla_error", kRoot, "XLA failed", "XLA 失败"},
    {"traceback", kRoot, "Python traceback", "Python 回溯"},
    {"exception", kRoot, "an exception in a running training", "训练中出现异常"},
    {"cpp_traceback", kConfirm, "C++ traceback", "C++ 回溯"},
    {"dataloader_worker", kRoot, "a data loader worker failed", "数据加载进程失败"},
    {"data_error", kRoot, "bad or missing data", "数据损坏或缺失"},
    {"ray_worker_died", kCascade, "a Ray task failed or its worker died", "Ray 任务失败或进程死亡"},
    {"time_limit", kRoot, "the scheduler's time limit", "调度器时间上限"},
    {"slurm_cancelled", kRoot, "Slurm cancelled the job", "Slurm 取消了作业"},
    {"killed", kConfirm, "killed by signal 9", "被信号 9 杀死"},
    {"fatal_signal", kRoot, "ended by a signal", "因信号终止"},
    {"fatal_signal_paddle", kConfirm, "Paddle was ended by a signal", "Paddle 因信号终止"},
    {"unix_abort_time", kNote, "when the process was ended", "进程终止的时间"},
    {"child_failed", kConfirm, "a rank failed, says torchrun", "torchrun 报告有进程失败"},
    {"exitcode", kConfirm, "a process ended with a code", "进程以退出码结束"},
    {"process_exit", kConfirm, "a rank ended with a code", "训练进程以退出码结束"},
    {"keyboard_interrupt", kRoot, "interrupted by hand", "被手动中断"},
    {"disk_full", kRoot, "no space left", "磁盘已满"},
    {"permission_denied", kRoot, "a file may not be read or written", "没有文件权限"},
    {"fp16_overflow", kNote, "a step was skipped: fp16 overflow", "fp16 溢出，跳过一步"},
    {"grad_overflow", kNote, "a step was skipped: gradient overflow", "梯度溢出，跳过一步"},
    {"nan_loss", kRoot, "the loss is not finite", "损失不是有限值"},
    {"early_stopping", kNote, "early stopping", "提前停止"},
    {"run_start", kNote, "a training starts", "训练开始"},
    {"total_steps", kNote, "the length of the training", "训练总步数"},
    {"glog_warning", kNote, "a warning of glog", "glog 警告"},
    {"warning", kNote, "a warning", "警告"},
});

}  // namespace

std::span<const EventFamily* const> EventFamilies() { return kFamilies; }

std::span<const EventKind> EventKinds() { return kKinds; }

const EventKind* FindEventKind(std::string_view name) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [name](const EventKind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace epochmeter::ingest::log
