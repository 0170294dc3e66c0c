"""Asks for the passphrases that a login needs, before the screen takes the terminal."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncssh

from trainwatch.sources.channel import WayError
from trainwatch.sources.ssh import SshWay
from trainwatch.sources.ssh_errors import SecretNeededError
from trainwatch.sources.ssh_settings import SshSettings

TRIES = 3

Ask = Callable[[str], Awaitable[str]]


async def unlock(way: SshWay, settings: SshSettings, ask: Ask) -> None:
    """Connect to one host, and ask for each passphrase that this takes; the other hosts then need none.

    The connection stays. What is not unlocked, and any other trouble, is left for the source to tell. Raises WayError
    for a key that cannot be used at all.
    """
    while True:
        try:
            await way.connect()
            return
        except SecretNeededError as error:
            key = await _opened(error.file, ask)
            if key is None:
                return
            settings.unlocked[error.file] = key
        except WayError:
            return


async def _opened(file: str, ask: Ask) -> asyncssh.SSHKey | None:
    """A key that its passphrase has opened; None when the person gave up or knew no better."""
    question = f"passphrase for {file}: "
    for _ in range(TRIES):
        passphrase = await ask(question)
        if not passphrase:
            return None
        try:
            return await asyncio.to_thread(asyncssh.read_private_key, Path(file).expanduser(), passphrase)
        except asyncssh.KeyEncryptionError:
            question = f"that was wrong; passphrase for {file}: "
        except (OSError, asyncssh.KeyImportError) as error:
            raise WayError(f"{file}: {error}", final=True) from None
    return None
