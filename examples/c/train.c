/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training in C, recorded: logistic regression on points in a plane, by stochastic gradient.
 *
 *     cc -std=gnu99 -I include examples/c/train.c -o train -lm
 *     epochmeter run -- ./train 4
 *
 * Prints the loss of each epoch, and at its end the accuracy on points it has not seen.
 */
#define _POSIX_C_SOURCE 200809L
#include <epochmeter/epochmeter.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 2000, BATCH = 50, STEPS = POINTS / BATCH };

struct point {
  double x, y;
  int above;
};

static uint64_t state = 88172645463325252u;

/* Between -1 and 1, the same numbers each time. */
static double random_number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 4503599627370496.0 - 1.0;
}

static void make_points(struct point* points, int count) {
  for (int i = 0; i < count; i++) {
    points[i].x = random_number();
    points[i].y = random_number();
    points[i].above = 3 * points[i].x - 2 * points[i].y + 0.5 > 0;
  }
}

/* Stands for reading a batch from a disk: it takes a millisecond. */
static const struct point* load_batch(const struct point* points, int step) {
  const struct timespec pause = {0, 1000000};
  nanosleep(&pause, NULL);
  return points + step * BATCH;
}

static double probability(const double* weights, const struct point* point) {
  return 1 / (1 + exp(-(weights[0] * point->x + weights[1] * point->y + weights[2])));
}

/* One step of gradient descent on a batch; returns the mean loss before it. */
static double train_step(double* weights, const struct point* batch) {
  double gradient[3] = {0, 0, 0}, loss = 0;
  for (int i = 0; i < BATCH; i++) {
    const double p = probability(weights, &batch[i]);
    loss -= log(batch[i].above ? p : 1 - p);
    gradient[0] += (p - batch[i].above) * batch[i].x;
    gradient[1] += (p - batch[i].above) * batch[i].y;
    gradient[2] += p - batch[i].above;
  }
  for (int i = 0; i < 3; i++) weights[i] -= 2.0 * gradient[i] / BATCH;
  return loss / BATCH;
}

static double accuracy(const double* weights, const struct point* points, int count) {
  int right = 0;
  for (int i = 0; i < count; i++)
    right += (probability(weights, &points[i]) > 0.5) == points[i].above;
  return (double)right / count;
}

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? atoi(argv[1]) : 4;
  static struct point points[POINTS], unseen[POINTS];
  static struct epochmeter_run run; /* 74 KB: not for a small stack */
  double weights[3] = {0, 0, 0};

  make_points(points, POINTS);
  make_points(unseen, POINTS);
  epochmeter_open(&run, "c-example");
  epochmeter_train_begin(&run, epochs, STEPS, BATCH);
  for (int epoch = 0; epoch < epochs; epoch++) {
    double sum = 0;
    epochmeter_epoch_begin(&run, epoch, 0);
    for (int step = 0; step < STEPS; step++) {
      const struct point* batch = load_batch(points, step);
      epochmeter_data_ready(&run);
      const double loss = train_step(weights, batch);
      const struct epochmeter_scalar values[] = {{"loss", loss}};
      epochmeter_step(&run, BATCH, values, 1);
      sum += loss;
    }
    const struct epochmeter_scalar mean[] = {{"mean_loss", sum / STEPS}};
    epochmeter_epoch_end(&run, 0, mean, 1);

    epochmeter_phase_begin(&run, "eval");
    const struct epochmeter_scalar score[] = {{"accuracy", accuracy(weights, unseen, POINTS)}};
    epochmeter_phase_end(&run, "eval", score, 1);
    printf("epoch %d steps %d mean_loss %.17g accuracy %.17g\n", epoch, STEPS, mean[0].value,
           score[0].value);
  }
  epochmeter_train_end(&run, "completed");
  epochmeter_close(&run);
  return 0;
}
