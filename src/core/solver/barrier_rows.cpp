#include "solver/barrier_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace polymargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The coefficient on the central path, `mu / a - mu / (L - a) = slope` or, without a limit, `mu / a = slope`.
double central_coefficient(double slope, double mu, double largest) {
    if (std::isinf(largest)) return mu / slope;
    const double t = slope / mu;
    return 2.0 * largest / (t * largest + 2.0 + std::sqrt(t * largest * t * largest + 4.0));
}

}  // namespace

BarrierRows::BarrierRows(std::span<const Index> labels, std::vector<RowLimits> limits, Plane slopes, bool absolute,
                         ThreadPool& pool)
    : labels_(labels),
      limits_(std::move(limits)),
      slopes_(std::move(slopes)),
      absolute_(absolute),
      pool_(pool),
      classes_(slopes_.classes()),
      open_(labels.size()),
      each_(std::ranges::any_of(limits_, [](const RowLimits& l) { return std::isfinite(l.largest); })),
      together_(std::ranges::any_of(limits_, [](const RowLimits& l) { return std::isfinite(l.most); })),
      a_(classes_, size()),
      z_(classes_, size()),
      above_(each_ ? classes_ : 0, size()),
      w_(each_ ? classes_ : 0, size()),
      slack_(together_ ? size() : 0),
      u_(slack_.size()),
      inverse_(classes_, size()),
      damping_(slack_.size()),
      da_(classes_, size()),
      dz_(classes_, size()),
      dw_(each_ ? classes_ : 0, size()),
      dsum_(size()),
      du_(slack_.size()) {
    for (Index i = 0; i < size(); ++i) {
        const auto [largest, most, own] = limits_[i];
        open_[i] = std::max(largest, own) > 0.0 && most > 0.0;
        for (Index m = 0; m < classes_; ++m) margin_ = std::max(margin_, std::abs(slopes_.at(m, i)));
        const Index variables = (largest > 0.0 ? classes_ - 1 : 0) + (own > 0.0 ? 1 : 0);
        if (open_[i]) products_ += static_cast<double>(variables * (1 + each_) + together_);
    }
}

/// With a limit of the sum, its multiplier is where the row uses it up but for mu / u: the sum falls as u grows.
void BarrierRows::centre_row(Index i, const Plane& scores, double mu) {
    const double most = limits_[i].most;
    double least = kInfinity;
    std::vector<double> slope(classes_);
    for (Index m = 0; m < classes_; ++m) {
        slope[m] = on(m, i) ? gradient(scores.view(), {}, m, i) : kInfinity;
        least = std::min(least, slope[m]);
    }
    double low = each_ ? 0.0 : std::max(0.0, -least);
    double high = low + mu * static_cast<double>(classes_ + absolute_) / (together_ ? most : 1.0);
    const auto used = [&](double u) {
        double sum = 0.0;
        for (Index m = 0; m < classes_; ++m) {
            if (on(m, i)) sum += central_coefficient(slope[m] + u, mu, limit(m, i));
        }
        return sum;
    };
    for (int halvings = 0; together_ && halvings < 60; ++halvings) {
        const double middle = 0.5 * (low + high);
        (used(middle) + mu / middle > most ? low : high) = middle;
    }
    const double u = together_ ? high : 0.0;
    for (Index m = 0; m < classes_; ++m) {
        if (!on(m, i)) continue;
        const double a = a_.at(m, i) = central_coefficient(slope[m] + u, mu, limit(m, i));
        z_.at(m, i) = mu / a;
        if (!each_) continue;
        above_.at(m, i) = limit(m, i) - a;
        w_.at(m, i) = mu / above_.at(m, i);
    }
    if (together_) slack_[i] = mu / (u_[i] = u);
}

void BarrierRows::centre(const Plane& scores, double mu) {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
            if (open_[i]) centre_row(i, scores, mu);
        }
    });
}

double BarrierRows::complementarity() const {
    return complementarity_after(0.0);
}

double BarrierRows::complementarity_after(double step) const {
    return sum_of_strips(pool_, size(), [&](Index begin, Index end) {
        double sum = 0.0;
        for (Index m = 0; m < classes_; ++m) {
            for (Index i = begin; i < end; ++i) {
                sum += (a_.at(m, i) + step * da_.at(m, i)) * (z_.at(m, i) + step * dz_.at(m, i));
            }
            for (Index i = begin; each_ && i < end; ++i) {
                sum += (above_.at(m, i) - step * da_.at(m, i)) * (w_.at(m, i) + step * dw_.at(m, i));
            }
        }
        for (Index i = begin; together_ && i < end; ++i) {
            sum += (slack_[i] - step * dsum_[i]) * (u_[i] + step * du_[i]);
        }
        return sum;
    });
}

void BarrierRows::linearise(Plane& diagonal, Plane& weights) {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
            if (!open_[i]) continue;
            double sum = 0.0;
            for (Index m = 0; m < classes_; ++m) {
                if (!on(m, i)) continue;
                const double theta = z_.at(m, i) / a_.at(m, i) + (each_ ? w_.at(m, i) / above_.at(m, i) : 0.0);
                sum += weights.at(m, i) = inverse_.at(m, i) = 1.0 / theta;
            }
            double& own = weights.at(labels_[i], i);
            if (!absolute_) own = together_ ? slack_[i] / u_[i] : kInfinity;
            if (absolute_ && together_) own = 0.0;
            if (together_) damping_[i] = slack_[i] / u_[i] + sum;
            put_diagonal(i, sum, diagonal);
        }
    });
}

std::vector<double> BarrierRows::spare() const {
    std::vector<double> spare(slack_.size(), kInfinity);
    for (std::size_t i = 0; i < spare.size(); ++i) {
        if (open_[i]) spare[i] = slack_[i] / u_[i];
    }
    return spare;
}

/// `sum` is that of the row of Theta's first part, inverted.
void BarrierRows::put_diagonal(Index i, double sum, Plane& diagonal) const {
    const Index y = labels_[i];
    if (!absolute_) {
        for (Index m = 0; m < classes_; ++m) {
            const double own = m == y ? sum : inverse_.at(m, i);
            diagonal.at(m, i) = own - (together_ ? own * own / damping_[i] : 0.0);
        }
        return;
    }
    // Of N = D - D sigma sigma'D / damping: N_mm - 2/k (N 1)_m + 1/k^2 1'N 1.
    const auto k = static_cast<double>(classes_);
    const double balance = 2.0 * inverse_.at(y, i) - sum, share = together_ ? 1.0 / damping_[i] : 0.0;
    for (Index m = 0; m < classes_; ++m) {
        const double d = inverse_.at(m, i), other = m == y ? share * balance : -share * balance;
        diagonal.at(m, i) =
            d - share * d * d - 2.0 / k * d * (1.0 - other) + (sum - share * balance * balance) / (k * k);
    }
}

double BarrierRows::response(Index i, const Step& step, std::span<double> da) const {
    double together = 0.0, sum = 0.0;
    if (together_) together = (step.mu + (step.correct ? dsum_[i] * du_[i] : 0.0)) / slack_[i];
    for (Index m = 0; m < classes_; ++m) {
        da[m] = 0.0;
        if (!on(m, i)) continue;
        double c = (step.mu - (step.correct ? da_.at(m, i) * dz_.at(m, i) : 0.0)) / a_.at(m, i) - together -
                   gradient(step.scores, step.shift, m, i) -
                   margin([&](Index c) { return step.change.at(c, i); }, m, i);
        if (each_) c -= (step.mu + (step.correct ? da_.at(m, i) * dw_.at(m, i) : 0.0)) / above_.at(m, i);
        sum += da[m] = c * inverse_.at(m, i);
    }
    if (!together_) return sum;
    const double share = sum / damping_[i];
    sum = 0.0;
    for (Index m = 0; m < classes_; ++m) sum += da[m] -= share * inverse_.at(m, i);
    return sum;
}

void BarrierRows::respond(const Step& step, ClassMajor<double> out) const {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        std::vector<double> da(classes_);
        for (Index i = begin; i < end; ++i) {
            if (!open_[i]) continue;
            const double sum = response(i, step, da);
            put_row(i, da, sum, out);
        }
    });
}

void BarrierRows::put_row(Index i, std::span<const double> a, double sum, ClassMajor<double> out) const {
    const Index y = labels_[i];
    const double mean = absolute_ ? (2.0 * a[y] - sum) / static_cast<double>(classes_) : 0.0;
    for (Index m = 0; m < classes_; ++m) out.at(m, i) = -a[m] - mean;
    out.at(y, i) = absolute_ ? a[y] - mean : sum;
}

void BarrierRows::apply(ClassMajor<const double> x, ClassMajor<double> out) const {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        absolute_ ? apply_absolute(begin, end, x, out) : apply_relative(begin, end, x, out);
    });
}

void BarrierRows::apply_relative(Index begin, Index end, ClassMajor<const double> x, ClassMajor<double> out) const {
    double own[kExampleStrip], sum[kExampleStrip] = {};
    const Index count = end - begin;
    for (Index i = 0; i < count; ++i) own[i] = x.at(labels_[begin + i], begin + i);
    for (Index m = 0; m < classes_; ++m) {
        const double *t = inverse_.view().row(m) + begin, *from = x.row(m) + begin;
        double* to = out.row(m) + begin;
        for (Index i = 0; i < count; ++i) {
            to[i] = t[i] * (from[i] - own[i]);
            sum[i] -= to[i];
        }
    }
    if (together_) {
        for (Index i = 0; i < count; ++i) own[i] = open_[begin + i] ? sum[i] / damping_[begin + i] : 0.0;
        std::fill_n(sum, count, 0.0);
        for (Index m = 0; m < classes_; ++m) {
            const double* t = inverse_.view().row(m) + begin;
            double* to = out.row(m) + begin;
            for (Index i = 0; i < count; ++i) {
                to[i] += own[i] * t[i];
                sum[i] -= to[i];
            }
        }
    }
    for (Index i = 0; i < count; ++i) out.at(labels_[begin + i], begin + i) = sum[i];
}

/// `P (D - D sigma sigma'D / damping) P x` of an x without means.
void BarrierRows::apply_absolute(Index begin, Index end, ClassMajor<const double> x, ClassMajor<double> out) const {
    double mean[kExampleStrip] = {}, share[kExampleStrip] = {};
    const Index count = end - begin;
    for (Index m = 0; m < classes_; ++m) {
        const double *t = inverse_.view().row(m) + begin, *from = x.row(m) + begin;
        double* to = out.row(m) + begin;
        for (Index i = 0; i < count; ++i) mean[i] += to[i] = t[i] * from[i];
    }
    if (together_) {
        for (Index i = 0; i < count; ++i) {
            double& own = out.at(labels_[begin + i], begin + i);
            if (open_[begin + i]) share[i] = (2.0 * own - mean[i]) / damping_[begin + i];
            own -= 2.0 * share[i] * inverse_.at(labels_[begin + i], begin + i);
            mean[i] = 0.0;
        }
        for (Index m = 0; m < classes_; ++m) {
            const double* t = inverse_.view().row(m) + begin;
            double* to = out.row(m) + begin;
            for (Index i = 0; i < count; ++i) mean[i] += to[i] += share[i] * t[i];
        }
    }
    for (Index m = 0; m < classes_; ++m) {
        double* to = out.row(m) + begin;
        for (Index i = 0; i < count; ++i) to[i] -= mean[i] / static_cast<double>(classes_);
    }
}

void BarrierRows::set_direction(const Step& step) {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        std::vector<double> da(classes_);
        for (Index i = begin; i < end; ++i) {
            if (!open_[i]) continue;
            const double sum = response(i, step, da);
            for (Index m = 0; m < classes_; ++m) {
                if (!on(m, i)) continue;
                const double below = step.mu - (step.correct ? da_.at(m, i) * dz_.at(m, i) : 0.0);
                dz_.at(m, i) = (below - z_.at(m, i) * da[m]) / a_.at(m, i) - z_.at(m, i);
                if (each_) {
                    const double over = step.mu + (step.correct ? da_.at(m, i) * dw_.at(m, i) : 0.0);
                    dw_.at(m, i) = (over + w_.at(m, i) * da[m]) / above_.at(m, i) - w_.at(m, i);
                }
                da_.at(m, i) = da[m];
            }
            if (together_) {
                const double all = step.mu + (step.correct ? dsum_[i] * du_[i] : 0.0);
                du_[i] = (all + u_[i] * sum) / slack_[i] - u_[i];
            }
            dsum_[i] = sum;
        }
    });
}

double BarrierRows::longest_step() const {
    std::vector<double> steps((size() + kExampleStrip - 1) / kExampleStrip, 1.0);
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        double least = 1.0;
        const auto meet = [&](double value, double change) {
            if (change < 0.0) least = std::min(least, value / -change);
        };
        for (Index m = 0; m < classes_; ++m) {
            for (Index i = begin; i < end; ++i) {
                meet(a_.at(m, i), da_.at(m, i));
                meet(z_.at(m, i), dz_.at(m, i));
                if (!each_) continue;
                meet(above_.at(m, i), -da_.at(m, i));
                meet(w_.at(m, i), dw_.at(m, i));
            }
        }
        for (Index i = begin; together_ && i < end; ++i) {
            meet(slack_[i], -dsum_[i]);
            meet(u_[i], du_[i]);
        }
        steps[begin / kExampleStrip] = least;
    });
    return *std::ranges::min_element(steps);
}

void BarrierRows::go(double step) {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        for (Index m = 0; m < classes_; ++m) {
            for (Index i = begin; i < end; ++i) {
                a_.at(m, i) += step * da_.at(m, i);
                z_.at(m, i) += step * dz_.at(m, i);
                if (!each_) continue;
                above_.at(m, i) -= step * da_.at(m, i);
                w_.at(m, i) += step * dw_.at(m, i);
            }
        }
        for (Index i = begin; together_ && i < end; ++i) {
            slack_[i] -= step * dsum_[i];
            u_[i] += step * du_[i];
        }
    });
}

void BarrierRows::coefficients(Plane& out) const {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        std::vector<double> row(classes_);
        for (Index i = begin; i < end; ++i) {
            double sum = 0.0;
            for (Index m = 0; m < classes_; ++m) sum += row[m] = a_.at(m, i);
            put_row(i, row, sum, out.view());
        }
    });
}

void BarrierRows::snapped_coefficients(Plane& out) const {
    for_example_strips(pool_, size(), [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
            if (open_[i]) snap_row(i, out);
        }
    });
}

void BarrierRows::snap_row(Index i, Plane& out) const {
    const Index y = labels_[i], other = y == 0 ? 1 : 0;
    const double largest = limits_[i].largest, most = limits_[i].most;
    // The unit of coefficients, where that of multipliers is the margin; costs between classes may ask for none.
    const auto margin = [&](Index m) { return slopes_.at(m, i) == 0.0 ? margin_ : std::abs(slopes_.at(m, i)); };
    const auto scale = [&](Index m) { return std::min(limit(m, i), most) / margin(m); };
    double sum = 0.0;
    for (Index m = 0; m < classes_; ++m) {
        if (!on(m, i)) continue;
        double a = a_.at(m, i);
        if (a < scale(m) * z_.at(m, i)) a = 0.0;
        if (each_ && above_.at(m, i) < scale(m) * w_.at(m, i)) a = limit(m, i);
        out.at(m, i) = m == y ? a : -a;
        sum += a;
    }
    if (together_ && sum > 0.0 && slack_[i] < scale(other) * u_[i]) {
        const double share = most / std::exchange(sum, 0.0);
        for (Index m = 0; m < classes_; ++m) {
            if (!on(m, i)) continue;
            out.at(m, i) = std::max(-largest, share * out.at(m, i));
            sum -= out.at(m, i);
        }
        if (std::isinf(largest)) sum = most;
    }
    if (!absolute_) out.at(y, i) = sum;
}

double BarrierRows::linear() const {
    return sum_of_strips(pool_, size(), [&](Index begin, Index end) {
        double sum = 0.0;
        for (Index m = 0; m < classes_; ++m) {
            for (Index i = begin; i < end; ++i) sum += a_.at(m, i) * slopes_.at(m, i);
        }
        return sum;
    });
}

double BarrierRows::linear(const Plane& rows) const {
    return sum_of_strips(pool_, size(), [&](Index begin, Index end) {
        double sum = 0.0;
        for (Index m = 0; m < classes_; ++m) {
            for (Index i = begin; i < end; ++i) {
                const double part = rows.at(m, i) * slopes_.at(m, i);
                sum += m == labels_[i] ? part : -part;
            }
        }
        return sum;
    });
}

/// The largest `sum r'a` over the feasible a whose sum is limited: what is worth most is filled first.
double BarrierRows::row_loss(Index i, std::vector<double>& rewards) const {
    const double largest = limits_[i].largest;
    std::ranges::sort(rewards, std::ranges::greater{});
    double loss = 0.0, left = limits_[i].most;
    for (const double r : rewards) {
        if (!(r > 0.0) || !(left > 0.0)) break;
        const double a = std::min(largest, left);
        loss += a * r;
        left -= a;
    }
    return loss;
}

double BarrierRows::loss(ClassMajor<const double> scores, std::span<const double> shift) const {
    return sum_of_strips(pool_, size(), [&](Index begin, Index end) {
        double sum = 0.0;
        std::vector<double> rewards;
        for (Index i = begin; i < end; ++i) {
            if (!open_[i]) continue;
            rewards.clear();
            for (Index m = 0; m < classes_; ++m) {
                if (!on(m, i)) continue;
                const double reward = -gradient(scores, shift, m, i);
                if (together_) rewards.push_back(reward);
                if (!together_ && reward > 0.0) sum += limit(m, i) * reward;
            }
            sum += row_loss(i, rewards);
        }
        return sum;
    });
}

}  // namespace polymargin
