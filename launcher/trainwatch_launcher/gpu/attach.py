"""How the launcher takes up its GPUs: whose they are, and what becomes of their events."""
from __future__ import annotations

import os

from trainwatch_launcher.gpu.sampler import Sampler
from trainwatch_launcher.gpu.xid import APPLICATION, GPU, NOTICE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainwatch_launcher.worker import Worker


MOST_EVENTS = 100


def place_of(facts: dict[str, Any]) -> str:
    """Where to look first for an event: as its Xid says, else at the GPU if it was really hurt; empty when not."""
    message = facts.get("message", "")
    hurt = facts.get("kind") == "gpu-lost" or "uncorrectable" in message or "could not be replaced" in message
    return str(facts.get("cause") or (GPU if hurt else ""))


def attach(worker: Worker) -> Sampler:
    """Start to sample the GPUs of a worker; its recorder gets their events. Returns at once."""
    who, recorder = worker.identity, worker.recorder

    def on_event(when: float, event: str, facts: dict[str, Any]) -> None:
        recorder.event_at(when, event, **facts)
        message = facts.get("message", "")
        if event == "warning" and len(worker.gpu_events) < MOST_EVENTS:
            worker.gpu_events.append((place_of(facts), message))
        if event == "recovered":
            recorder.update(warning="")
        elif event == "warning" and facts.get("cause") not in (APPLICATION, NOTICE):
            recorder.update(warning=message)
            worker.warn("WARNING: %s", message)

    source = who.sources.get("local_rank", "nothing")
    # an engine's local rank may stand for a container in which torchrun runs; these are surely for one process
    alone = worker.place.nested or source == "option" or "TORCHELASTIC_RUN_ID" in os.environ
    sampler = Sampler(os.environ, who.local_rank if source != "nothing" else None, on_event, alone=alone)
    sampler.start()
    return sampler
