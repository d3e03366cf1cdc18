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

std::vector<double> carry_excess(std::vector<double> excess, std::span<const double> capacity) {
    const auto nodes = static_cast<Index>(excess.size());
    std::vector<double> left(capacity.begin(), capacity.end());
    for (Index source = 0; source < nodes; ++source) {
        while (excess[source] > 0.0) {
            const auto path = path_to_deficit(left, excess, nodes, source);
            if (path.empty()) break;
            double amount = std::min(excess[source], -excess[path.back()]);
            for (std::size_t e = 1; e < path.size(); ++e) {
                amount = std::min(amount, left[path[e - 1] * nodes + path[e]]);
            }
            for (std::size_t e = 1; e < path.size(); ++e) left[path[e - 1] * nodes + path[e]] -= amount;
            excess[source] -= amount;
            excess[path.back()] += amount;
        }
    }
    for (std::size_t e = 0; e < left.size(); ++e) left[e] = capacity[e] - left[e];
    return left;
}

std::vector<double> largest_circulation_below(std::span<const double> flow, Index nodes) {
    std::vector<double> excess(nodes, 0.0);  // out minus in
    double size = 0.0;
    for (Index p = 0; p < nodes; ++p) {
        for (Index m = 0; m < nodes; ++m) {
            excess[p] += flow[p * nodes + m];
            excess[m] -= flow[p * nodes + m];
            size += flow[p * nodes + m];
        }
    }
    const double rounding = size * std::numeric_limits<double>::epsilon();
    for (double& e : excess) e = std::abs(e) > rounding ? e : 0.0;
    const auto carried = carry_excess(std::move(excess), flow);
    std::vector<double> left(flow.begin(), flow.end());
    for (std::size_t e = 0; e < left.size(); ++e) left[e] -= carried[e];
    return left;
}

}  // namespace polymargin
