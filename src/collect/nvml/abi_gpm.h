// SPDX-License-Identifier: Apache-2.0
// GPU performance monitoring (GPM) in NVML's binary interface. Valid C11 and C++20.
#pragma once

#include <assert.h>
#include <stdint.h>

#include "collect/nvml/abi_fields.h"
#include "collect/nvml/abi_types.h"

typedef struct NvmlGpmMetric {
  uint32_t metric_id;
  NvmlReturn nvml_return;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
} NvmlGpmMetric;

typedef struct NvmlGpmMetricsGet {
  uint32_t version;
  uint32_t num_metrics;
  NvmlGpmSample sample1;
  NvmlGpmSample sample2;
  NvmlGpmMetric metrics[kNvmlGpmMetricMax];
} NvmlGpmMetricsGet;

typedef struct NvmlGpmSupport {
  uint32_t version;
  uint32_t is_supported;
} NvmlGpmSupport;

static_assert(sizeof(NvmlGpmMetric) == 40, "NVML GPM metric");
static_assert(sizeof(NvmlGpmMetricsGet) == 13344, "NVML GPM metrics call");
