// SPDX-License-Identifier: Apache-2.0
// Hides secrets and home folders in text that is stored or leaves the machine. A guess by names and
// shapes: it hides more than needed rather than less, but nothing that is only a number.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace epochmeter::base {

inline constexpr std::string_view kHidden = "***";

// Whether a variable or flag of this name holds a secret: it has "token", "password", ... in it.
bool IsSecretName(std::string_view name);

// "scheme://user:pass@host" loses what stands before the @.
std::string RedactUrl(std::string_view word);

// One thread.
class Redactor {
 public:
  // Of free text, such as a line of output: home folders ("/home/ann/x" becomes "~/x"), values
  // behind names of secrets ("password=...", "--api-key ..."), credentials in URLs and what signs
  // them, words with the shape of a well-known kind of token, and private keys (PEM), also where
  // each line of one is a text of its own.
  std::string Text(std::string_view text);
  // Of JSON: each string as above, and whole where its key is the name of a secret. What is no
  // string stays; valid JSON without spaces stays valid.
  std::string Json(std::string_view json);
  // What was hidden so far, in words.
  const std::set<std::string>& found() const { return found_; }

 private:
  bool in_key_ = false;  // a private key began and did not end yet
  std::set<std::string> found_;
};

}  // namespace epochmeter::base
