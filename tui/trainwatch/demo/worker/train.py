"""The demo's training script: one rank of a synchronous data-parallel training, in plain Python.

It takes its rank from the variables that torchrun and others set, and prints as training scripts do. The arithmetic is
real: each rank has a shard of its own, gradients are averaged over TCP, the loss goes down, and all ranks hold the same
weights.
"""
from __future__ import annotations

import argparse
import array
import hashlib
import json
import math
import os
import shutil
import sys
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch.demo.worker.collective import Group
    from trainwatch.demo.worker.network import Network
    from trainwatch.demo.worker.shard import FEATURES, Shard, write_shard
else:  # as a script, its neighbours are top-level modules
    from collective import Group
    from network import Network
    from shard import FEATURES, Shard, write_shard

HIDDEN = 16
PEAK_RATE = 1e-3
CLIP = 2.0
LOG_EVERY = 5
CHECK_EVERY = 50
CHECKPOINT_EVERY = 200


def main() -> None:
    """Set up, load, train, save, upload."""
    arguments = parse_arguments()
    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    sys.stdout.reconfigure(encoding="utf-8", line_buffering=True)  # type: ignore[union-attr]
    group = set_up(rank, world_size)
    phase("Environment Setup Complete")
    phase("Load Data")
    shard = load(arguments, rank)
    group.barrier()
    phase("Training")
    trainer = Trainer(arguments, group)
    trainer.train(shard)
    phase("Training Finished, Starting Upload")
    if rank == 0:
        upload(trainer.checkpoint, arguments.data)
    group.barrier()
    info("rank %d done", rank)


def parse_arguments() -> argparse.Namespace:
    """The options of the training; which rank this is comes from the environment."""
    parser = argparse.ArgumentParser(description="One rank of the demo's training.")
    parser.add_argument("--data", default=".", help="directory for shards and checkpoints (the working directory)")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=16, help="samples of one rank in one step")
    parser.add_argument("--step-time", type=float, default=0.1, help="shortest time of a step, for a person to follow")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--damage", default="", metavar="RANK:RECORD", help="cut a record of the shard of RANK short")
    return parser.parse_args()


def phase(name: str) -> None:
    """Say what comes now, in the form that the launcher looks for."""
    print("=== [Phase] %s ===" % name)


def info(text: str, *values: object, level: str = "\033[32mINFO\033[0m") -> None:
    """A line in the manner of the usual frameworks: time, level, place."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + ",%03d" % (now % 1 * 1000)
    print("[%s] [%s] [rank%s] %s" % (stamp, level, os.environ.get("RANK", "0"), text % values))


def warn(text: str, *values: object) -> None:
    """A warning, in yellow."""
    info(text, *values, level="\033[33mWARNING\033[0m")


def set_up(rank: int, world_size: int) -> Group:
    """Say where we are and connect all ranks."""
    address, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))
    info("python %s on %s, pid %d", sys.version.split()[0], os.uname().nodename, os.getpid())
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"):
        info("  %-16s %s", name, os.environ.get(name, "(not set)"))
    if "OMP_NUM_THREADS" not in os.environ:
        warn("OMP_NUM_THREADS is not set; this model is single-threaded and does not mind")
    started = time.monotonic()
    group = Group(rank, world_size, address, port)
    group.barrier()
    info("process group ready: %d ranks around %s:%d, %.2f s", world_size, address, port, time.monotonic() - started)
    return group


def load(arguments: argparse.Namespace, rank: int) -> Shard:
    """Make this rank's shard, with a progress bar as loaders draw them."""
    path = os.path.join(arguments.data, "shard-%d.tsv" % rank)
    records = arguments.steps * arguments.batch_size
    damaged_rank, _, record = arguments.damage.partition(":")
    damaged = int(record) if damaged_rank == str(rank) else None
    every = max(records // 50, 1)
    started = time.monotonic()

    def draw(done: int) -> None:
        if done % every == 0 or done == records:
            filled = 30 * done // records
            bar = "█" * filled + " " * (30 - filled)
            rate = done / max(time.monotonic() - started, 1e-6)
            sys.stdout.write("\rLoading shard %d: %3d%%|%s| %d/%d [%.0f records/s]"
                             % (rank, 100 * done // records, bar, done, records, rate))
            sys.stdout.flush()

    write_shard(path, rank, records, arguments.seed, damaged, draw)
    print()
    size = os.path.getsize(path)
    info("数据加载完成：%d 条样本，%.1f MB，用时 %.1f 秒", records, size / 1e6, time.monotonic() - started)
    return Shard(path, rank)


class Trainer:
    """The loop: forward and backward on our own batch, gradients averaged over all ranks, one step, all alike."""

    def __init__(self, arguments: argparse.Namespace, group: Group) -> None:
        self.steps = arguments.steps
        self.batch_size = arguments.batch_size
        self.step_time = arguments.step_time
        self.group = group
        self.network = Network(FEATURES, HIDDEN, arguments.seed)
        self.checkpoint = os.path.join(arguments.data, "checkpoint.json")
        count = len(self.network.parameters)
        info("model: %d-%d-1 perceptron, %d parameters, %.1f KiB a gradient", FEATURES, HIDDEN, count, count * 8 / 1024)
        info("optimizer: SGD, momentum 0.9, peak lr %.1e, clip %.1f; global batch %d",
             PEAK_RATE, CLIP, self.batch_size * group.world_size)

    def train(self, shard: Shard) -> None:
        """Train over the shard once."""
        logged = time.monotonic()
        for step, batch in enumerate(shard.batches(self.batch_size), 1):
            started = time.monotonic()
            rate = self.rate(step)
            loss = self.one_step(step, batch, rate)
            time.sleep(max(0.0, self.step_time - (time.monotonic() - started)))
            if step % LOG_EVERY == 0:
                now = time.monotonic()
                speed = LOG_EVERY * self.batch_size * self.group.world_size / (now - logged)
                logged = now
                print("step %d/%d | loss %.4f | lr %.1e | %.1f samples/s" % (step, self.steps, loss, rate, speed))
            if step % CHECK_EVERY == 0:
                self.check_weights(step)
            if step % CHECKPOINT_EVERY == 0 or step == self.steps:
                self.save(step, loss)

    def one_step(self, step: int, batch: list[tuple[list[float], float]], rate: float) -> float:
        """Forward, backward, all-reduce, clip, step. Returns the loss over all ranks."""
        loss, gradient = self.network.gradient(batch)
        gradient.append(loss)
        mean = array.array("d", [value / self.group.world_size for value in self.group.all_reduce(gradient)])
        loss = mean.pop()
        norm = math.sqrt(sum(value * value for value in mean))
        if norm > CLIP:
            if step % LOG_EVERY == 0 or step == 1:
                warn("gradient norm %.2f is above %.1f: clipped", norm, CLIP)
            mean = array.array("d", [value * CLIP / norm for value in mean])
        self.network.step(mean, rate)
        return loss

    def rate(self, step: int) -> float:
        """The learning rate: 20 steps of warm-up, then a cosine to a tenth."""
        if step < 20:
            return PEAK_RATE * step / 20
        return PEAK_RATE * (0.55 + 0.45 * math.cos(math.pi * step / self.steps))

    def check_weights(self, step: int) -> None:
        """All ranks must hold the same weights, to the last bit."""
        checksum = float(zlib.crc32(self.network.parameters.tobytes()))
        total = self.group.all_reduce(array.array("d", [checksum]))[0]
        if total != checksum * self.group.world_size:
            raise RuntimeError("weights differ between ranks at step %d" % step)
        info("weights agree on all %d ranks (crc32 %08x)", self.group.world_size, int(checksum))

    def save(self, step: int, loss: float) -> None:
        """Write a checkpoint on rank 0 while the others wait."""
        phase("Save Checkpoint")
        if self.group.rank == 0:
            state = {"step": step, "loss": loss, "parameters": list(self.network.parameters)}
            with open(self.checkpoint + ".tmp", "w", encoding="ascii") as file:
                json.dump(state, file)
            os.replace(self.checkpoint + ".tmp", self.checkpoint)
            info("saved %s at step %d", self.checkpoint, step)
        self.group.barrier()
        if step < self.steps:
            phase("Training")


def upload(checkpoint: str, directory: str) -> None:
    """Copy the checkpoint to where results go, and see that it came through whole."""
    target = os.path.join(directory, "upload")
    os.makedirs(target, exist_ok=True)
    copy = shutil.copy(checkpoint, target)
    digests = []
    for path in (checkpoint, copy):
        with open(path, "rb") as file:
            digests.append(hashlib.sha256(file.read()).hexdigest())
    if digests[0] != digests[1]:
        raise RuntimeError("upload of %s is damaged" % checkpoint)
    info("uploaded to %s, sha256 %s", copy, digests[0][:16])


if __name__ == "__main__":
    main()
