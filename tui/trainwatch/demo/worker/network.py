"""The demo's model: a perceptron with one hidden layer, in plain Python."""
from __future__ import annotations

import array
import math
import random
from operator import mul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    from trainwatch.demo.worker.shard import Sample


class Network:
    """`inputs` numbers to one, through `hidden` tanh units; its parameters in one flat array, as all-reduce wants."""

    def __init__(self, inputs: int, hidden: int, seed: int) -> None:
        self.inputs = inputs
        self.hidden = hidden
        source = random.Random(seed)
        weights = [source.gauss(0, 1 / math.sqrt(inputs)) for _ in range(inputs * hidden)]
        outs = [source.gauss(0, 1 / math.sqrt(hidden)) for _ in range(hidden)]
        self.parameters = array.array("d", weights + [0.0] * hidden + outs + [0.0])
        self._velocity = array.array("d", [0.0] * len(self.parameters))

    def gradient(self, batch: List[Sample]) -> Tuple[float, array.array[float]]:
        """Mean squared error over a batch, and its gradient: forward and backward."""
        inputs, hidden, p = self.inputs, self.hidden, self.parameters
        biases_at, outs_at = inputs * hidden, inputs * hidden + hidden
        rows = [p[j * inputs:(j + 1) * inputs] for j in range(hidden)]
        biases, outs, out_bias = p[biases_at:outs_at], p[outs_at:-1], p[-1]
        row_sums = [[0.0] * inputs for _ in range(hidden)]
        tail_sums = [0.0] * (2 * hidden + 1)
        loss = 0.0
        for features, target in batch:
            units = [math.tanh(sum(map(mul, row, features)) + bias) for row, bias in zip(rows, biases)]
            error = sum(map(mul, outs, units)) + out_bias - target
            loss += error * error
            slope = 2 * error / len(batch)
            tail_sums[-1] += slope
            for j, unit in enumerate(units):
                tail_sums[hidden + j] += slope * unit
                inner = slope * outs[j] * (1 - unit * unit)
                tail_sums[j] += inner
                row_sums[j] = [total + inner * x for total, x in zip(row_sums[j], features)]
        flat = array.array("d")
        for row_sum in row_sums:
            flat.extend(row_sum)
        flat.extend(tail_sums)
        return loss / len(batch), flat

    def step(self, gradient: array.array[float], rate: float, momentum: float = 0.9) -> None:
        """One step of gradient descent with momentum."""
        for i, slope in enumerate(gradient):
            self._velocity[i] = momentum * self._velocity[i] - rate * slope
            self.parameters[i] += self._velocity[i]
