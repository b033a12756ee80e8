# SPDX-License-Identifier: Apache-2.0
# Joins FILES (separated by '|') into OUTPUT: before each its name behind the byte 0x1e, and a line
# end (named_format_files.h).
string(ASCII 30 mark)
string(REPLACE "|" ";" files "${FILES}")
file(WRITE "${OUTPUT}" "")
foreach(path IN LISTS files)
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" text)
  file(APPEND "${OUTPUT}" "${mark}${name}\n${text}")
endforeach()
