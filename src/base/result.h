// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error that tells the reader what failed and what to do.
//
// For failures of the world (files, processes, libraries). Bad input is counted as loss instead and
// a bug of ours is an EPM_CHECK. A Result has no conversion to bool, so that `if (r)` on a
// Result<bool> can't be misread; ask ok(). One alias header: std::expected can replace it.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"

namespace epochmeter::base {

// What failed, where, why, and what the reader can do about it. Each part may be empty but `what`.
struct Error {
  std::string what;   // "cannot open the run file"
  std::string where;  // a path, path:line, or a call
  std::string why;    // the system's word: "No such file or directory"
  std::string what_to_do;
  int code = 0;  // errno or the library's code where there is one, else 0

  // One line: "what: where: why (what to do)".
  std::string Message() const;
};

// Error with errno's text as `why`. Call at once after the failing call.
Error SystemError(std::string what, std::string where, int errno_value,
                  std::string what_to_do = {});

template <typename T = void>
class [[nodiscard]] Result {
 public:
  using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  template <typename U = Stored,
            typename = std::enable_if_t<std::is_convertible_v<U&&, Stored> &&
                                        !std::is_same_v<std::decay_t<U>, Result> &&
                                        !std::is_same_v<std::decay_t<U>, Error>>>
  Result(U&& value)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  template <typename U = T, typename = std::enable_if_t<std::is_void_v<U>>>
  Result() : state_(std::in_place_index<0>) {}

  bool ok() const { return state_.index() == 0; }
  operator bool() const = delete;

  Stored& value() & {
    EPM_CHECK(ok()) << error().Message();
    return std::get<0>(state_);
  }
  const Stored& value() const& {
    EPM_CHECK(ok()) << error().Message();
    return std::get<0>(state_);
  }
  Stored&& value() && {
    EPM_CHECK(ok()) << error().Message();
    return std::get<0>(std::move(state_));
  }
  const Error& error() const& {
    EPM_CHECK(!ok());
    return std::get<1>(state_);
  }
  Error&& error() && {
    EPM_CHECK(!ok());
    return std::get<1>(std::move(state_));
  }
  Stored* operator->() { return &value(); }
  const Stored* operator->() const { return &value(); }
  Stored& operator*() & { return value(); }
  const Stored& operator*() const& { return value(); }

 private:
  std::variant<Stored, Error> state_;
};

}  // namespace epochmeter::base

#define EPM_CONCAT_INNER(a, b) a##b
#define EPM_CONCAT(a, b) EPM_CONCAT_INNER(a, b)

// Returns the error of `expr` from the current function, which must return a Result.
#define EPM_TRY(expr)                                 \
  do {                                                \
    if (auto epm_result = (expr); !epm_result.ok()) { \
      return std::move(epm_result).error();           \
    }                                                 \
  } while (false)

// `EPM_ASSIGN(auto x, F());` declares or sets x, or returns the error.
#define EPM_ASSIGN(lhs, expr) EPM_ASSIGN_INNER(EPM_CONCAT(epm_result_, __LINE__), lhs, expr)
#define EPM_ASSIGN_INNER(tmp, lhs, expr)        \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  lhs = std::move(tmp).value()
