"""A small training for 7B1_test.sh: descends a bowl, saves a checkpoint and exits 9 when it is told to stop."""
import os
import signal
import sys
import time
from pathlib import Path

STEPS = int(os.environ.get("FIELD_STEPS", "20"))


def main() -> None:
    """Train for FIELD_STEPS steps, then exit with FIELD_EXIT."""
    signal.signal(signal.SIGTERM, save_and_stop)
    position, step = 4.0, 0
    while step < STEPS or STEPS == 0:
        step += 1
        position -= 0.1 * 2 * position
        print(f"iteration {step:8d} | lm loss: {position * position:.6E} | learning rate: 1.000E-01", flush=True)
        if STEPS == 0:
            time.sleep(0.05)
    sys.exit(int(os.environ.get("FIELD_EXIT", "0")))


def save_and_stop(number: int, frame: object) -> None:
    """What a preempted training does."""
    print("received SIGTERM, saving a checkpoint", flush=True)
    Path(os.environ["FIELD_CHECKPOINT"]).write_text("saved")
    sys.exit(9)


if __name__ == "__main__":
    main()
