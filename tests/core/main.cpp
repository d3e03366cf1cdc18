#include <chrono>
#include <cstdio>
#include <string_view>

#include "check.hpp"

/// Run the tests of this executable, or those whose name contains the first argument.
int main(int argc, char** argv) {
    const std::string_view wanted = argc > 1 ? argv[1] : "";
    int failures = 0, run = 0;
    for (const auto& [name, body] : check::tests()) {
        if (name.find(wanted) == std::string_view::npos) continue;
        const auto start = std::chrono::steady_clock::now();
        std::string error;
        try {
            body();
        } catch (const std::exception& e) {
            error = e.what();
            ++failures;
        }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        std::printf("%s %s (%.2f s)\n", error.empty() ? "ok  " : "FAIL", name.data(), seconds.count());
        if (!error.empty()) std::printf("     %s\n", error.c_str());
        std::fflush(stdout);
        ++run;
    }
    std::printf("%d tests, %d failures\n", run, failures);
    return failures == 0 && run > 0 ? 0 : 1;
}
