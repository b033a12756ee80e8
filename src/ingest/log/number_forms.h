// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a line end, in the forms that trainings print. Pure; any thread. Offsets are
// in the text; an end is behind the last byte.
#pragma once

#include <cstddef>
#include <string_view>

namespace epochmeter::ingest::log {

// A plain number at `at`: digits, one point, an exponent.
size_t NumberEnd(std::string_view text, size_t at);
// A date, or a date and a clock: "2021-11-23 20:45:42,845", "12/25/2021 14:22:40".
bool SkipStamp(std::string_view text, size_t begin, size_t* end);
// "0:00:49", "05:57", "2 days, 1:45:32", "1 day, 2:03:04.123"
bool SkipDuration(std::string_view text, size_t begin, size_t* end);
// "1,234,567"
bool SkipThousands(std::string_view text, size_t begin, size_t* end);
// Of "3/10", "3 / 10", "3 of 10" what stands behind the first number.
bool ReadTotal(std::string_view text, size_t end, size_t* total_begin, size_t* total_end);

}  // namespace epochmeter::ingest::log
