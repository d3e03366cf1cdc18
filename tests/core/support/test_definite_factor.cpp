#include "support/definite_factor.hpp"

#include <vector>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

/// A positive definite matrix, and a factor of the part that belongs to some variables.
struct Problem {
    Blas blas = plain::blas();
    Matrix matrix;
    DefiniteFactor factor{blas};
    std::vector<Index> members;

    Problem(Index size, Random& random) : matrix(size, size) {
        const Matrix x = fixtures::random_matrix(size, size + 3, random);
        matrix = fixtures::plain_gram({.type = KernelType::linear}, x, fixtures::identity(size));
    }
    void factorise(std::vector<Index> some) {
        members = std::move(some);
        CHECK(factor.factorise(std::ssize(members), [&](Index k, double* out) {
            for (Index r = k; r < std::ssize(members); ++r) *out++ = matrix.at(members[k], members[r]);
        }));
    }
    void remove(Index place) {
        factor.remove(place);
        members.erase(members.begin() + place);
    }
    bool append(Index variable, double more = 0.0) {
        std::vector<double> values;
        for (const Index other : members) values.push_back(matrix.at(variable, other));
        if (!factor.append(values, matrix.at(variable, variable) + more)) return false;
        members.push_back(variable);
        return true;
    }
    /// Whether the factor is that of its members: it finds a solution again.
    void check(Random& random) const {
        const Index m = std::ssize(members);
        CHECK(factor.size() == m);
        std::vector<double> solution(m), right(m, 0.0);
        for (double& x : solution) x = random.uniform(-1.0, 1.0);
        for (Index a = 0; a < m; ++a) {
            for (Index b = 0; b < m; ++b) right[a] += matrix.at(members[a], members[b]) * solution[b];
        }
        factor.solve(right);
        for (Index a = 0; a < m; ++a) CHECK_CLOSE(right[a], solution[a], 1e-8);
    }
};

}  // namespace

TEST(a_factor_follows_variables_that_go_and_come) {
    Random random(191);
    Problem problem(40, random);
    problem.factorise(fixtures::identity(20));
    problem.check(random);
    for (const Index place : {19, 0, 7, 7, 3}) {  // the last, the first, some between
        problem.remove(place);
        problem.check(random);
    }
    for (const Index variable : {30, 0, 39}) {
        CHECK(problem.append(variable));
        problem.check(random);
    }
    while (!problem.members.empty()) problem.remove(std::ssize(problem.members) / 2);
    problem.check(random);
    CHECK(problem.append(5));
    problem.check(random);
}

TEST(a_factor_says_what_is_not_positive_definite_and_stays) {
    Random random(192);
    Problem problem(12, random);
    problem.factorise(fixtures::identity(8));
    CHECK(!problem.append(9, -1e3));
    problem.check(random);
    CHECK(!problem.factor.factorise(3, [](Index k, double* out) {
        for (Index r = k; r < 3; ++r) *out++ = 1.0;  // of rank one
    }));
    CHECK(problem.factor.size() == 0);
}

TEST(a_factor_without_room_takes_no_more_variables) {
    Random random(193);
    Problem problem(60, random);
    problem.factorise(fixtures::identity(4));
    Index next = 4;
    while (next < 60 && problem.append(next)) ++next;
    CHECK(next > 4 && next < 60);
    problem.check(random);
}
