#include "solver/accumulate.hpp"

#include <vector>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Random;

namespace {

/// `f` is large, so that adding to it in single precision would show.
template <class Real>
void check_accumulate(double tolerance) {
    Random random(61);
    for (const Index count : {0, 1, 7, 1024, 2500}) {
        for (const std::size_t row_count : {0, 1, 3, 4, 5, 9}) {
            std::vector<std::vector<Real>> memory(row_count, std::vector<Real>(count));
            std::vector<const Real*> rows;
            std::vector<double> coefficients, f(count), expected;
            for (double& v : f) v = 1e4 + random.normal();
            expected = f;
            for (auto& row : memory) {
                coefficients.push_back(random.normal());
                for (Index t = 0; t < count; ++t) {
                    row[t] = static_cast<Real>(random.normal());
                    expected[t] += coefficients.back() * static_cast<double>(row[t]);
                }
                rows.push_back(row.data());
            }
            accumulate<Real>(rows, coefficients, f.data(), count);
            for (Index t = 0; t < count; ++t) CHECK_CLOSE(f[t], expected[t], tolerance);
        }
    }
}

}  // namespace

TEST(rows_are_added_to_doubles) {
    check_accumulate<float>(4e-6);
    check_accumulate<double>(1e-10);
}
