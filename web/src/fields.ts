// SPDX-License-Identifier: Apache-2.0
// What fields of curves are called, and which of them make one chart. Fields without a place here
// get a chart of their own under "more metrics", named by their own words.
import { state } from './state';

const LABELS: Record<string, [string, string]> = {
  utilization_ratio: ['Utilisation', '利用率'],
  sm_active_ratio: ['SM activity', 'SM 活动率'],
  sm_occupancy_ratio: ['SM occupancy', 'SM 占用率'],
  tensor_active_ratio: ['Tensor cores active', '张量核心活动率'],
  engine_active_ratio: ['Graphics engine active', '图形引擎活动率'],
  integer_active_ratio: ['Integer pipe active', '整数管线活动率'],
  fp64_active_ratio: ['FP64 pipe active', 'FP64 管线活动率'],
  fp32_active_ratio: ['FP32 pipe active', 'FP32 管线活动率'],
  fp16_active_ratio: ['FP16 pipe active', 'FP16 管线活动率'],
  tensor_hmma_active_ratio: ['Tensor cores active, half precision', '张量核心活动率（半精度）'],
  dram_active_ratio: ['Memory bandwidth active', '显存带宽活动率'],
  memory_activity_ratio: ['Memory controller busy', '显存控制器忙'],
  memory_used_bytes: ['Memory used', '已用内存'],
  memory_free_bytes: ['Memory free', '空闲内存'],
  memory_total_bytes: ['Memory in total', '内存总量'],
  memory_reserved_bytes: ['Memory reserved by the driver', '驱动保留的显存'],
  process_memory_bytes: ['Memory of all processes', '全部进程的显存'],
  own_memory_bytes: ['Memory of the job', '本任务的显存'],
  others_memory_bytes: ['Memory of others', '其他进程的显存'],
  unexplained_memory_bytes: ['Memory of no known process', '来源不明的显存'],
  power_w: ['Power', '功率'],
  power_instant_w: ['Power, instant', '瞬时功率'],
  power_average_w: ['Power, average', '平均功率'],
  power_limit_w: ['Power limit', '功率上限'],
  temperature_c: ['Temperature', '温度'],
  memory_temperature_c: ['Memory temperature', '显存温度'],
  sm_clock_hz: ['SM clock', 'SM 时钟'],
  memory_clock_hz: ['Memory clock', '显存时钟'],
  graphics_clock_hz: ['Graphics clock', '图形时钟'],
  video_clock_hz: ['Video clock', '视频时钟'],
  fan_speed_ratio: ['Fan', '风扇'],
  processes: ['Processes', '进程数'],
  threads: ['Threads', '线程数'],
  pcie_transmit_bytes_per_s: ['PCIe, sent by the GPU', 'PCIe 发送'],
  pcie_receive_bytes_per_s: ['PCIe, received by the GPU', 'PCIe 接收'],
  nvlink_transmit_bytes_per_s: ['NVLink sent', 'NVLink 发送'],
  nvlink_receive_bytes_per_s: ['NVLink received', 'NVLink 接收'],
  cpu_ratio: ['CPU busy', 'CPU 忙'],
  iowait_ratio: ['Waiting for I/O', '等待 I/O'],
  cpu_cores: ['CPU cores used', '使用的 CPU 核数'],
  memory_available_bytes: ['Memory available', '可用内存'],
  memory_cached_bytes: ['Page cache', '页缓存'],
  memory_anon_bytes: ['Anonymous memory', '匿名内存'],
  memory_shmem_bytes: ['Shared memory', '共享内存'],
  memory_file_bytes: ['File memory', '文件缓存'],
  memory_current_bytes: ['Memory in the cgroup', 'cgroup 内存'],
  memory_working_set_bytes: ['Working set', '工作集'],
  memory_limit_bytes: ['Memory limit', '内存上限'],
  swap_free_bytes: ['Swap free', '空闲交换区'],
  swap_used_bytes: ['Swap used', '已用交换区'],
  rss_bytes: ['Resident memory', '常驻内存'],
  pss_bytes: ['Proportional memory', '按比例分摊内存'],
  anon_bytes: ['Anonymous memory', '匿名内存'],
  shmem_bytes: ['Shared memory', '共享内存'],
  file_bytes: ['File memory', '文件内存'],
  swapped_bytes: ['Swapped out', '已换出'],
  worker_rss_bytes: ['Resident memory of workers', '子进程常驻内存'],
  worker_anon_bytes: ['Anonymous memory of workers', '子进程匿名内存'],
  read_bytes_per_s: ['Read from disk', '磁盘读取'],
  written_bytes_per_s: ['Written to disk', '磁盘写入'],
  read_call_bytes_per_s: ['Read by calls', '读调用'],
  write_call_bytes_per_s: ['Written by calls', '写调用'],
  receive_bytes_per_s: ['Received', '接收'],
  transmit_bytes_per_s: ['Sent', '发送'],
  io_time_ratio: ['Disk busy', '磁盘忙'],
  io_ratio: ['Disk busy', '磁盘忙'],
  major_faults_per_s: ['Major page faults', '主缺页'],
  minor_faults_per_s: ['Minor page faults', '次缺页'],
  allocated_bytes: ['Allocated', '已分配'],
  reserved_bytes: ['Reserved', '已预留'],
  max_allocated_bytes: ['Peak allocated', '分配峰值'],
  max_reserved_bytes: ['Peak reserved', '预留峰值'],
  pressure_cpu_waiting_ratio: ['Some wait for CPU', '部分等待 CPU'],
  pressure_cpu_stalled_ratio: ['All wait for CPU', '全部等待 CPU'],
  pressure_io_waiting_ratio: ['Some wait for I/O', '部分等待 I/O'],
  pressure_io_stalled_ratio: ['All wait for I/O', '全部等待 I/O'],
  pressure_memory_waiting_ratio: ['Some wait for memory', '部分等待内存'],
  pressure_memory_stalled_ratio: ['All wait for memory', '全部等待内存'],
  run_delay_ratio: ['Waiting for a CPU', '等待 CPU'],
  duration_s: ['Step time', '步时'],
  data_wait_s: ['Data wait', '数据等待'],
  data_wait_ratio: ['Data wait', '数据等待'],
};

const SHORT: Record<string, string> = {
  pcie: 'PCIe', nvlink: 'NVLink', cpu: 'CPU', gpu: 'GPU', io: 'I/O', sm: 'SM', ecc: 'ECC',
  fp16: 'FP16', fp32: 'FP32', fp64: 'FP64', rss: 'RSS', pss: 'PSS', bar1: 'BAR1', xid: 'XID',
  xids: 'XIDs', rdma: 'RDMA', numa: 'NUMA', fs: 'file system', irq: 'IRQ', jpeg: 'JPEG',
};

export function fieldLabel(field: string): string {
  if (field.startsWith('sampled_')) {
    const plain = fieldLabel(field.slice('sampled_'.length));
    return state.lang === 'zh' ? `${plain}（采样）` : `${plain} (sampled)`;
  }
  const known = LABELS[field];
  if (known) return known[state.lang === 'zh' ? 1 : 0];
  const words = field.replace(/_(bytes_per_s|per_s|bytes|ratio|w|c|s|hz|j|cores)$/, '')
    .split('_').filter(Boolean).map((word) => SHORT[word] ?? word);
  const text = words.join(' ') || field;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export interface Group {
  id: string;
  title: [string, string];
  fields: string[];
}

export const titleOf = (group: Group): string => group.title[state.lang === 'zh' ? 1 : 0];

// Of GPUs: one chart a metric, one line a GPU.
export const GPU_CHARTS = [
  'utilization_ratio', 'sm_active_ratio', 'power_w', 'temperature_c', 'sm_clock_hz',
  'tensor_active_ratio', 'dram_active_ratio', 'pcie_receive_bytes_per_s',
  'pcie_transmit_bytes_per_s', 'nvlink_receive_bytes_per_s', 'nvlink_transmit_bytes_per_s',
];
// Shown in the memory section, or constants that other charts draw as a limit.
export const GPU_ELSEWHERE = [
  'memory_used_bytes', 'memory_total_bytes', 'power_limit_w', 'throttle_reasons',
];

export const HEAT_METRICS = [
  'utilization_ratio', 'sm_active_ratio', 'memory_used_bytes', 'power_w', 'temperature_c',
  'sm_clock_hz', 'tensor_active_ratio', 'dram_active_ratio',
];

export const HOST_GROUPS: Group[] = [
  { id: 'cpu', title: ['CPU of the machine', '整机 CPU'], fields: ['cpu_ratio', 'iowait_ratio'] },
  { id: 'cores', title: ['CPU cores used by the training', '训练使用的 CPU 核数'],
    fields: ['cpu_cores', 'worker_cpu_cores'] },
  { id: 'io', title: ['Disk traffic', '磁盘流量'],
    fields: ['read_bytes_per_s', 'written_bytes_per_s', 'disk_read_bytes_per_s',
      'disk_written_bytes_per_s', 'io_read_bytes_per_s', 'io_written_bytes_per_s'] },
  { id: 'psi', title: ['Pressure: part of the time that work waited', '压力：工作等待的时间占比'],
    fields: ['pressure_cpu_waiting_ratio', 'pressure_io_waiting_ratio',
      'pressure_memory_waiting_ratio', 'pressure_cpu_stalled_ratio', 'pressure_io_stalled_ratio',
      'pressure_memory_stalled_ratio'] },
  { id: 'net', title: ['Network', '网络'],
    fields: ['receive_bytes_per_s', 'transmit_bytes_per_s', 'network_receive_bytes_per_s',
      'network_transmit_bytes_per_s', 'rdma_receive_bytes_per_s', 'rdma_transmit_bytes_per_s'] },
  { id: 'tree', title: ['Processes and threads', '进程与线程'], fields: ['processes', 'threads'] },
  { id: 'faults', title: ['Page faults', '缺页'],
    fields: ['major_faults_per_s'] },
];

export const HOST_MEMORY_GROUPS: Group[] = [
  { id: 'hostmem', title: ['Memory of the machine', '整机内存'],
    fields: ['memory_used_bytes', 'memory_cached_bytes', 'memory_shmem_bytes'] },
  { id: 'treemem', title: ['Memory of the training\'s processes', '训练进程的内存'],
    fields: ['rss_bytes', 'pss_bytes', 'anon_bytes', 'shmem_bytes', 'worker_rss_bytes',
      'worker_anon_bytes'] },
  { id: 'cgroupmem', title: ['Memory of the cgroup', 'cgroup 内存'],
    fields: ['memory_current_bytes', 'memory_working_set_bytes'] },
];

// Bits of the driver's reasons for holding clocks down.
export const THROTTLE_BITS: [number, [string, string]][] = [
  [0x4, ['power cap', '功率上限']],
  [0x8, ['hardware slowdown', '硬件降频']],
  [0x20, ['software thermal', '软件热限制']],
  [0x40, ['hardware thermal', '硬件热限制']],
  [0x80, ['power brake', '电源制动']],
  [0x10, ['sync boost', '同步加速']],
  [0x2, ['clocks set', '时钟设定']],
  [0x100, ['display clocks', '显示时钟']],
  [0x1, ['idle', '空闲']],
];
