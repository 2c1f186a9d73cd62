/* What compiled code is measured against: the value and gradient of the negative log-likelihood, written by hand.
 *
 * A thread takes whole rows. While a row is in cache it is read for its maximum, then exp(x - max) is stored in the
 * gradient's row, once per element, and scaled in place. reference.rs compiles, loads and times this file; the
 * flags (-ffast-math, libmvec's exp) are there to make the opponent strong.
 *
 *   logits    [rows, classes]   targets [rows], each in 0..classes   cotangent [rows]
 *   loss      [rows]            gradient [rows, classes]
 */
#include <math.h>
#include <stdint.h>

static float row_max(const float *restrict x, int64_t n) {
  float max = x[0];
  for (int64_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
  return max;
}

/* e[i] = exp(x[i] - shift); returns the sum of e. */
static float exp_shifted(const float *restrict x, float *restrict e, int64_t n, float shift) {
  float sum = 0;
  for (int64_t i = 0; i < n; i++) {
    e[i] = expf(x[i] - shift);
    sum += e[i];
  }
  return sum;
}

void nll_reference(int64_t rows, int64_t classes, const float *logits, const int64_t *targets, const float *cotangent,
                   float *loss, float *gradient) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    const float *x = logits + row * classes;
    float *restrict g = gradient + row * classes;
    const int64_t target = targets[row];

    const float max = row_max(x, classes);
    const float sum = exp_shifted(x, g, classes, max);
    loss[row] = logf(sum) - (x[target] - max);

    const float scale = cotangent[row] / sum;
    for (int64_t i = 0; i < classes; i++) g[i] *= scale;
    g[target] -= cotangent[row];
  }
}
