// SPDX-License-Identifier: Apache-2.0
// The page's template as bytes of the program. EPM_PAGE_TEMPLATE is its path, set by CMake.
#include <cstddef>
#include <string_view>

#include "render/html.h"

// The assembler copies the file; no other way takes a file into a C++20 program as it is.
__asm__(
    ".pushsection .rodata\n"
    ".hidden epm_page_template_begin\n"
    ".hidden epm_page_template_end\n"
    ".global epm_page_template_begin\n"
    ".global epm_page_template_end\n"
    "epm_page_template_begin:\n"
    ".incbin \"" EPM_PAGE_TEMPLATE
    "\"\n"
    "epm_page_template_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char epm_page_template_begin[];
extern const char epm_page_template_end[];
}

namespace epochmeter::render {

std::string_view PageTemplate() {
  return {epm_page_template_begin,
          static_cast<size_t>(epm_page_template_end - epm_page_template_begin)};
}

}  // namespace epochmeter::render
