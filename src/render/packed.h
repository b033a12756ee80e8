// SPDX-License-Identifier: Apache-2.0
// Bytes packed for a page. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace epochmeter::render {

// One gzip member (RFC 1952). `quick` takes a third of the time and is about a seventh larger.
// Fails only when memory does.
base::Result<std::string> Gzip(std::string_view bytes, bool quick = false);

// RFC 4648 with padding, on one line.
std::string Base64(std::string_view bytes);

}  // namespace epochmeter::render
