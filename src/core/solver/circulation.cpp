#include "solver/circulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace polymargin {
namespace {

/// A shortest path of edges with flow from `from` to a node that gets more than it gives; empty if there is none.
std::vector<Index> path_to_deficit(std::span<const double> flow, std::span<const double> excess, Index nodes,
                                   Index from) {
    std::vector<Index> parent(nodes, -1);
    parent[from] = from;
    std::queue<Index> reached({from});
    while (!reached.empty()) {
        const Index p = reached.front();
        reached.pop();
        if (excess[p] < 0.0) {
            std::vector<Index> path{p};
            while (path.back() != from) path.push_back(parent[path.back()]);
            std::reverse(path.begin(), path.end());
            return path;
        }
        for (Index m = 0; m < nodes; ++m) {
            if (parent[m] >= 0 || !(flow[p * nodes + m] > 0.0)) continue;
            parent[m] = p;
            reached.push(m);
        }
    }
    return {};
}

}  // namespace

std::vector<double> largest_circulation_below(std::span<const double> flow, Index nodes) {
    std::vector<double> left(flow.begin(), flow.end());
    std::vector<double> excess(nodes, 0.0);  // out minus in
    double size = 0.0;
    for (Index p = 0; p < nodes; ++p) {
        for (Index m = 0; m < nodes; ++m) {
            excess[p] += left[p * nodes + m];
            excess[m] -= left[p * nodes + m];
            size += left[p * nodes + m];
        }
    }
    const double rounding = size * std::numeric_limits<double>::epsilon();
    for (Index source = 0; source < nodes; ++source) {
        while (excess[source] > rounding) {
            const auto path = path_to_deficit(left, excess, nodes, source);
            if (path.empty()) break;  // what is left is rounding
            double amount = std::min(excess[source], -excess[path.back()]);
            for (std::size_t e = 1; e < path.size(); ++e) {
                amount = std::min(amount, left[path[e - 1] * nodes + path[e]]);
            }
            for (std::size_t e = 1; e < path.size(); ++e) left[path[e - 1] * nodes + path[e]] -= amount;
            excess[source] -= amount;
            excess[path.back()] += amount;
        }
    }
    return left;
}

}  // namespace polymargin
