#pragma once

#include <cmath>
#include <concepts>
#include <exception>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// The test harness: TEST(name) { ... } defines a test, CHECK and its kin end it with a message when they do
/// not hold.
namespace check {

/// A check that failed. It is an exception so that a check inside a task of a pool fails the test like any
/// other.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Test {
    std::string_view name;
    void (*body)();
};

/// The tests of this executable. Local to a function, so that it exists before the first test registers.
inline std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}

struct Registration {
    Registration(std::string_view name, void (*body)()) { tests().push_back({name, body}); }
};

[[noreturn]] inline void fail(std::string_view what, const std::source_location& where) {
    std::ostringstream message;
    message << where.file_name() << ":" << where.line() << ": " << what;
    throw Failure(message.str());
}

inline void is_true(bool holds, std::string_view text,
                    const std::source_location& where = std::source_location::current()) {
    if (!holds) fail(text, where);
}

/// |a - b| <= tolerance; equal infinities are close, NaN is close to nothing.
inline void is_close(double a, double b, double tolerance, std::string_view text,
                     const std::source_location& where = std::source_location::current()) {
    if (a == b || std::abs(a - b) <= tolerance) return;
    std::ostringstream message;
    message.precision(17);
    message << text << ": " << a << " and " << b << " differ by " << std::abs(a - b) << " > " << tolerance;
    fail(message.str(), where);
}

/// `action` throws an `Error` whose message contains `part`.
template <class Error>
void throws(std::invocable auto&& action, std::string_view part, std::string_view text,
            const std::source_location& where = std::source_location::current()) {
    try {
        action();
    } catch (const Error& error) {
        if (std::string_view(error.what()).find(part) != std::string_view::npos) return;
        fail(std::string(text) + ": the message does not say \"" + std::string(part) + "\": " + error.what(), where);
    }
    fail(std::string(text) + ": nothing was thrown", where);
}

}  // namespace check

#define TEST(name)                                                 \
    static void name();                                            \
    static const check::Registration register_##name(#name, name); \
    static void name()

#define CHECK(...) check::is_true(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__)
#define CHECK_CLOSE(a, b, tolerance) check::is_close((a), (b), (tolerance), #a " ~ " #b)
#define CHECK_THROWS(Error, part, ...) check::throws<Error>([&] { __VA_ARGS__; }, part, #__VA_ARGS__)
