// SPDX-License-Identifier: Apache-2.0
// Numbers of NVML's binary interface: return codes, selectors; abi_fields.h has field and GPM ids.
// Valid C11 and C++20; abi.h holds the types.
#pragma once

#include "collect/nvml/abi_fields.h"

enum NvmlReturnCode {
  kNvmlSuccess = 0,
  kNvmlUninitialized = 1,
  kNvmlInvalidArgument = 2,
  kNvmlNotSupported = 3,
  kNvmlNoPermission = 4,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlDriverNotLoaded = 9,
  kNvmlTimeout = 10,
  kNvmlLibraryNotFound = 12,
  kNvmlFunctionNotFound = 13,
  kNvmlGpuIsLost = 15,
  kNvmlResetRequired = 16,
  kNvmlOperatingSystem = 17,
  kNvmlLibRmVersionMismatch = 18,
  kNvmlNoData = 21,
  kNvmlArgumentVersionMismatch = 25,
  kNvmlNotReady = 27,
  kNvmlGpuNotFound = 28,
  kNvmlInvalidState = 29,
  kNvmlUnknown = 999
};

// kNvmlInitNoGpus: initialisation succeeds on a machine whose GPUs are all gone or absent.
enum NvmlInitFlag { kNvmlInitNoGpus = 1 };
enum NvmlTemperatureSensor { kNvmlTemperatureGpu = 0 };
enum NvmlEccCounter { kNvmlEccVolatile = 0, kNvmlEccAggregate = 1 };
enum NvmlMemoryError { kNvmlErrorCorrected = 0, kNvmlErrorUncorrected = 1 };
enum NvmlRetirementCause { kNvmlRetiredSingleBit = 0, kNvmlRetiredDoubleBit = 1 };
enum NvmlAddressingMode { kNvmlAddressingNone = 0, kNvmlAddressingHmm = 1, kNvmlAddressingAts = 2 };
enum NvmlClock { kNvmlClockGraphics = 0, kNvmlClockSm = 1, kNvmlClockMem = 2, kNvmlClockVideo = 3 };
enum NvmlThreshold {
  kNvmlThresholdShutdown = 0,
  kNvmlThresholdSlowdown = 1,
  kNvmlThresholdMemMax = 2,
  kNvmlThresholdGpuMax = 3
};
enum NvmlPcieCounter { kNvmlPcieTx = 0, kNvmlPcieRx = 1 };

enum NvmlSamplingType {
  kNvmlSamplesTotalPower = 0,
  kNvmlSamplesGpuUtil = 1,
  kNvmlSamplesMemUtil = 2,
  kNvmlSamplesEncoderUtil = 3,
  kNvmlSamplesDecoderUtil = 4,
  kNvmlSamplesProcessorClock = 5,
  kNvmlSamplesMemoryClock = 6,
  kNvmlSamplesModulePower = 7,
  kNvmlSamplesJpgUtil = 8,
  kNvmlSamplesOfaUtil = 9
};

// Selector of nvmlDeviceGetViolationStatus.
enum NvmlPerfPolicy {
  kNvmlPolicyPower = 0,
  kNvmlPolicyThermal = 1,
  kNvmlPolicySyncBoost = 2,
  kNvmlPolicyBoardLimit = 3,
  kNvmlPolicyLowUtilization = 4,
  kNvmlPolicyReliability = 5,
  kNvmlPolicyAppClocks = 10,
  kNvmlPolicyBaseClocks = 11
};

enum NvmlArchitecture {
  kNvmlArchKepler = 2,
  kNvmlArchMaxwell = 3,
  kNvmlArchPascal = 4,
  kNvmlArchVolta = 5,
  kNvmlArchTuring = 6,
  kNvmlArchAmpere = 7,
  kNvmlArchAda = 8,
  kNvmlArchHopper = 9,
  kNvmlArchBlackwell = 10,
  kNvmlArchRubin = 13
};

// Answer of field 230; later drivers add values.
enum NvmlRecoveryAction {
  kNvmlRecoveryNone = 0,
  kNvmlRecoveryReset = 1,
  kNvmlRecoveryReboot = 2,
  kNvmlRecoveryDrainP2p = 3,
  kNvmlRecoveryDrainAndReset = 4
};

enum NvmlValueType {
  kNvmlValueDouble = 0,
  kNvmlValueUint = 1,
  kNvmlValueUlong = 2,
  kNvmlValueUlonglong = 3,
  kNvmlValueSignedLonglong = 4,
  kNvmlValueSignedInt = 5,
  kNvmlValueUshort = 6
};
