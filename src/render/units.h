// SPDX-License-Identifier: Apache-2.0
// Figures with their units, short enough for a table cell. Nothing stays nothing.
#pragma once

#include <optional>
#include <string>

namespace epochmeter::render {

std::optional<std::string> Percent(std::optional<double> ratio);    // "78 %"
std::optional<std::string> Bytes(std::optional<double> bytes);      // "12.4 GB" (1e9)
std::optional<std::string> Cores(std::optional<double> cores);      // "1.9", "0.04"
std::optional<std::string> Watts(std::optional<double> watts);      // "655 W"
std::optional<std::string> Celsius(std::optional<double> degrees);  // "71 °C"
std::optional<std::string> Joules(std::optional<double> joules);    // "2.4 kJ"
std::optional<std::string> Seconds(std::optional<double> seconds);  // "19.9 ms", "9.30 s"
// Time of GPUs, in hours: "12.5 GPU-h", "0.04 GPU-h"; of less than 36 s in seconds: "8 GPU-s".
std::string GpuTime(double gpu_seconds);
// Five significant digits; "nan" and "inf" as they are.
std::string Scalar(double value);

}  // namespace epochmeter::render
