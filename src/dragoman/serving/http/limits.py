"""What one client may ask of the server, in numbers.

A client is the holder of an API key, or else an address (``api_keys.py``). Every limit answers with
a sentence that names the limit, what was asked, and what to do (``limiter.py``).
"""

from __future__ import annotations

from pydantic import Field

from dragoman.settings import Settings

BACKLOG = 2048
"""Connections that may wait in the system until they are taken."""


class LimitSettings(Settings):
    """Limits of the server. The defaults suit a machine that is open to the public."""

    characters: int = Field(default=20_000, ge=1, le=1_000_000_000)
    """The total number of characters of text in one request."""
    items: int = Field(default=256, ge=1, le=1_000_000)
    """The number of texts, pictures or recordings in one request."""
    body_bytes: int = Field(default=1_000_000, ge=1, le=1_000_000_000)
    """The size of one request body, in bytes."""
    values: int = Field(default=20_000, ge=64, le=1_000_000_000)
    """The number of values in the lists and objects of one JSON request."""
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000_000)
    """The number of requests per minute from one client. Typing into the page sends at most three
    or four per second."""
    burst: int = Field(default=60, ge=1, le=1_000_000_000)
    """The number of requests that one client may send at once before the rate limit applies."""
    concurrent: int = Field(default=16, ge=1, le=1_000_000)
    """The number of requests from one client that are processed at the same time."""
    waiting: int = Field(default=4096, ge=1, le=1_000_000_000)
    """The number of sentences, from all clients, that may be queued for one run."""
    seconds: float = Field(default=60.0, gt=0, le=86_400)
    """The time limit, in seconds, for receiving one request, and again for answering it, including
    the time in the queue."""
    beam: int = Field(default=16, ge=1, le=1024)
    """The largest beam, and the largest number of translations of one text, that a request may
    set."""
    translations: int = Field(default=4096, ge=1, le=10_000_000)
    """The number of translations in one response: sentences times translations per sentence."""
    token_steps: int = Field(default=2_000_000, ge=1, le=10**15)
    """The maximum cost of one request, estimated before it is processed (docs/serve.md)."""
    written: int = Field(default=1000, ge=1, le=1_000_000)
    """The number of tokens that a language model generates in one response."""
    file_bytes: int = Field(default=10_000_000, ge=1, le=1_000_000_000)
    """The size of one document, in bytes."""
    file_characters: int = Field(default=1_000_000, ge=1, le=1_000_000_000)
    """The number of characters of text in one document."""
    file_seconds: float = Field(default=3600.0, gt=0, le=86_400)
    """The time limit, in seconds, for translating one document or transcribing one recording,
    including the time in the queue."""
    files: int = Field(default=2, ge=1, le=1_000)
    """The number of documents from one client that are translated at the same time."""
    files_kept: int = Field(default=200_000_000, ge=1, le=1_000_000_000_000)
    """The total size, in bytes, of translated documents that are kept in memory until they are
    downloaded, for ten minutes at most. Where there is no room left, the oldest document of the
    client that holds the most bytes is deleted."""
    upload_bytes: int = Field(default=10_000_000, ge=1, le=1_000_000_000)
    """The total size, in bytes, of the pictures or recordings in one request."""
    recording_bytes: int = Field(default=26_214_400, ge=1, le=1_000_000_000)
    """The size, in bytes, of one recording to transcribe."""
    uploads_held: int = Field(default=200_000_000, ge=1, le=1_000_000_000_000)
    """The total size, in bytes, of the requests of more than 65,536 bytes that are in memory at the
    same time; a quarter of it for one client, and a quarter of it more for all clients whose key is
    not known before their request is read."""
    pixels: int = Field(default=25_000_000, ge=1, le=1_000_000_000)
    """The total number of pixels of the pictures in one request, checked before they are decoded,
    and of those that one request has painted."""
    sound_seconds: float = Field(default=600.0, gt=0, le=86_400)
    """The total length, in seconds, of the recordings in one request, checked before they are
    decoded."""
    connections: int = Field(default=2048, ge=1, le=1_000_000)
    """The total number of connections; fewer if the system allows few open files."""
    connections_each: int = Field(default=512, ge=1, le=1_000_000)
    """The number of connections from one address; at most half of the total."""
    head_seconds: float = Field(default=10.0, gt=0, le=86_400)
    """The time limit, in seconds, for receiving the headers of a request."""
    idle_seconds: float = Field(default=30.0, gt=0, le=86_400)
    """The number of seconds that a connection may stay open without a request."""
    reading_rate: int = Field(default=2_000, ge=0, le=1_000_000_000)
    """The number of bytes per second that a client must read of a response."""
    unread_bytes: int = Field(default=64_000_000, ge=1, le=1_000_000_000_000)
    """The number of bytes of responses that one address may leave unread; a quarter of the limit
    for all addresses together."""
