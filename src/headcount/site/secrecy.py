"""Passwords, tokens and forms: hashed, compared in constant time, never kept as they are."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_hasher = PasswordHasher()  # argon2id
_room = BoundedSemaphore(4)  # each hash takes 64 MiB; a rush of log-ins must not take them all
_nobody = _hasher.hash(secrets.token_hex())


def hash_password(password: str) -> str:
    """Argon2id hash of a password."""
    with _room:
        return _hasher.hash(password)


def check_password(stored: str | None, password: str) -> bool:
    """Whether the password fits; as slow for a user that does not exist."""
    with _room:
        try:
            return _hasher.verify(stored or _nobody, password) and stored is not None
        except (VerificationError, InvalidHashError):
            return False


def make_secret(prefix: str = "") -> str:
    """A new random secret; the prefix makes it easy to find where it leaked."""
    return prefix + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """What is kept of a random secret; it has too much entropy to need a slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def form_token(key: bytes, cookie: str) -> str:
    """What a form must bring back to show that one of our pages made it, for this cookie."""
    return hmac.new(key, cookie.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def same_text(a: str, b: str) -> bool:
    """Whether two texts are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(
        a.encode("utf-8", "surrogatepass"), b.encode("utf-8", "surrogatepass")
    )


def site_key(folder: Path) -> bytes:
    """The server's own key, made on the first start, readable by its user only."""
    path = folder / "secret.key"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))
        file.flush()
        os.fsync(file.fileno())
    return path.read_bytes()
