// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/xid_table.h"

#include <algorithm>
#include <array>

#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using enum XidCause;
constexpr auto kInfo = model::Severity::kInfo;
constexpr auto kWarning = model::Severity::kWarning;
constexpr auto kCritical = model::Severity::kCritical;

constexpr auto kTable = std::to_array<XidMeaning>({
    {13, kProgram, kWarning, "a kernel read or wrote out of bounds, or used a bad instruction",
     "kernel 越界访问或执行了非法指令"},
    {31, kProgram, kWarning, "a kernel used an address that is not mapped",
     "kernel 访问了未映射的地址"},
    {32, kHardware, kWarning, "a damaged command buffer: PCIe or driver",
     "命令缓冲区损坏：PCIe 或驱动问题"},
    {38, kDriver, kCritical, "a firmware error of the driver", "驱动固件错误"},
    {43, kProgram, kWarning, "the GPU stopped the program's work after a fault in it",
     "程序出错后 GPU 停止执行其任务"},
    {45, kConsequence, kInfo, "the program's work was removed, as after a kill or another error",
     "程序的任务被清除，通常发生在进程被终止或其他错误之后"},
    {46, kHardware, kCritical, "the GPU stopped working", "GPU 停止工作"},
    {48, kHardware, kCritical, "a memory error that could not be corrected (two bits)",
     "无法纠正的显存错误（双比特）"},
    {61, kHardware, kWarning, "a warning of the GPU's microcontroller", "GPU 微控制器警告"},
    {62, kHardware, kCritical, "the GPU's microcontroller halted", "GPU 微控制器停止运行"},
    {63, kHardware, kWarning, "a faulty memory row was marked for replacement",
     "出错的显存行已被标记为待替换"},
    {64, kHardware, kCritical, "a faulty memory row could not be replaced",
     "出错的显存行无法被替换"},
    {69, kProgram, kWarning, "the program gave the GPU a wrong command",
     "程序向 GPU 发送了错误的命令"},
    {74, kHardware, kWarning, "an NVLink error", "NVLink 错误"},
    {79, kHardware, kCritical, "the GPU fell off the bus", "GPU 从总线上掉线"},
    {92, kHardware, kWarning, "many corrected memory errors", "大量已纠正的显存错误"},
    {94, kHardware, kWarning,
     "a memory error that could not be corrected, kept to the program that met it",
     "无法纠正的显存错误，影响限于遇到它的程序"},
    {95, kHardware, kCritical, "a memory error that could not be corrected nor kept to one program",
     "无法纠正且无法隔离的显存错误"},
    {109, kDriver, kWarning, "the GPU did not switch to another program in time",
     "GPU 切换程序超时"},
    {119, kDriver, kCritical, "the GPU's system processor (GSP) did not answer in time",
     "GPU 系统处理器（GSP）响应超时"},
    {120, kDriver, kCritical, "the GPU's system processor (GSP) failed",
     "GPU 系统处理器（GSP）出错"},
    {137, kProgram, kWarning, "the program used memory of another GPU that it may not use",
     "程序访问了无权访问的其他 GPU 的显存"},
    {140, kHardware, kCritical, "a memory error that was not recovered from", "未能恢复的显存错误"},
    {143, kDriver, kCritical, "the GPU could not be initialised", "GPU 初始化失败"},
    {145, kHardware, kWarning, "an NVLink error (receiving side)", "NVLink 错误（接收端）"},
    {149, kHardware, kWarning, "an NVLink error (link layer)", "NVLink 错误（链路层）"},
    {154, kConsequence, kInfo, "the driver now asks for another way to recover the GPU",
     "驱动要求的 GPU 恢复方式发生了变化"},
});

}  // namespace

XidMeaning MeaningOf(int64_t code) {
  const auto* const found = std::find_if(
      kTable.begin(), kTable.end(), [code](const XidMeaning& row) { return row.code == code; });
  if (found != kTable.end()) return *found;
  return {code, kUnknown, kWarning, "an error of the driver that has no plain name here",
          "此处没有说明的驱动错误"};
}

model::Message XidAction(const XidMeaning& meaning) {
  switch (meaning.code) {
    case 63:
      return Say(
          "Reset the GPU when the job is done (nvidia-smi --gpu-reset -i N): the spare row "
          "comes into use then.",
          "作业结束后重置 GPU（nvidia-smi --gpu-reset -i N），备用行随后生效。");
    case 74:
    case 145:
    case 149:
      return Say(
          "Look at the link's error counters (nvidia-smi nvlink -e); if it comes again, "
          "reset all GPUs of the node, then have bridge, switch and board checked.",
          "查看链路错误计数（nvidia-smi nvlink -e）；若再次出现，重置该节点的所有 GPU，"
          "并检查 bridge、switch 和板卡。");
    case 79:
      return Say(
          "Take the node out of service and reboot it; if it comes again, check power, "
          "cooling and seating of the card, then replace it.",
          "将节点下线并重启；若再次出现，检查供电、散热和插槽接触，必要时更换显卡。");
    case 94:
      return Say(
          "Start the training again from its last checkpoint; the GPU is well again after a "
          "reset, and needs a look when it comes back.",
          "从最后一个检查点重新开始训练；重置后 GPU 可恢复正常，若再次出现需检查硬件。");
    default:
      break;
  }
  switch (meaning.cause) {
    case kProgram:
      return Say(
          "Most often the program's own fault: run a few steps with CUDA_LAUNCH_BLOCKING=1 "
          "or under compute-sanitizer to find the kernel. If the same program runs well on "
          "other GPUs, test this one (dcgmi diag -r 3).",
          "多为程序自身错误：用 CUDA_LAUNCH_BLOCKING=1 或 compute-sanitizer 运行几步以定位 "
          "kernel。若同一程序在其他 GPU 上正常，则检测该 GPU（dcgmi diag -r 3）。");
    case kHardware:
      return Say(
          "Drain the node and reset the GPU (nvidia-smi --gpu-reset -i N); if it comes "
          "again, test the board (dcgmi diag -r 3) and have it replaced.",
          "将节点排空并重置 GPU（nvidia-smi --gpu-reset -i N）；若再次出现，检测板卡"
          "（dcgmi diag -r 3）并更换。");
    case kDriver:
      return Say(
          "Reset the GPU or reboot the node, and update the driver; with a newer one it may "
          "be a known fault.",
          "重置 GPU 或重启节点，并更新驱动；这可能是较新驱动已修复的问题。");
    case kConsequence:
      return Say("Look for what came before it; by itself it needs nothing.",
                 "查看在它之前发生了什么；其本身无需处理。");
    case kUnknown:
      break;
  }
  return Say(
      "Look the code up in NVIDIA's catalogue of XID errors, and in the kernel log around "
      "it (dmesg | grep -i xid).",
      "在 NVIDIA 的 XID 错误目录中查找该代码，并查看内核日志中的上下文（dmesg | grep -i "
      "xid）。");
}

}  // namespace epochmeter::diagnose
