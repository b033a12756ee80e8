# SPDX-License-Identifier: Apache-2.0
# Writes base/version.h. Input: SOURCE_DIR, VERSION, OUTPUT. Without git the revision is "unknown".
execute_process(COMMAND git -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE REVISION RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT failed EQUAL 0 OR REVISION STREQUAL "")
  set(REVISION "unknown")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/version.h.in" "${OUTPUT}" @ONLY)
