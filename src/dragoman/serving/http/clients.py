"""Clients: each is an address, or the holder of an API key.

Addresses are normalised. All addresses of one IPv6 network count as one client. The settings list
the networks of proxies and operators. The file of keys can set separate limits for a key.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from starlette.requests import Request

from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_bytes
from dragoman.serving.http.limits import Client, LimitSettings
from dragoman.serving.http.refusals import Refusal

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""The network in which a gateway (NAT64) embeds IPv4 addresses: RFC 6052, section 2.1."""
_PRIVATE_BITS = 64
"""The length in bits of the prefix that all IPv6 addresses of one client share: the client can
choose any address in that network."""


def plain(host: str) -> str:
    """Normalise an address. An IPv4 address that a dual-stack socket or a proxy writes as IPv6
    (``::ffff:192.0.2.7``) becomes an IPv4 address again, and the zone of an IPv6 address is
    removed. A string that is not an address is returned unchanged."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        if address in _TRANSLATED:
            return str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return str(address)


def holder(host: str) -> str:
    """Return the name under which an address counts towards limits: the address itself, or the /64
    network of an IPv6 address."""
    host = plain(host)
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host, _PRIVATE_BITS), strict=False))
    except ValueError:
        return host


def stranger(http: Request) -> Client:
    """Return the client of a request without a known key. It is identified by its address, or by
    the address that a trusted proxy reports."""
    return Client(holder(http.client.host) if http.client else "unknown")


def is_address(host: str) -> bool:
    """True for an IP address, False for a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Networks:
    """A set of addresses and networks. ``*`` stands for every address."""

    def __init__(self, words: Sequence[str]) -> None:
        """Make a set from the words of a setting. Errors: ``ValueError`` for a word that is not an
        address, a network or ``*``."""
        self._every = "*" in words
        self._networks = [ipaddress.ip_network(plain(word)) for word in words if word != "*"]

    def __contains__(self, host: str) -> bool:
        if self._every:
            return True
        try:
            address = ipaddress.ip_address(plain(host))
        except ValueError:
            return False
        return any(address in network for network in self._networks)


KEY = "key:"
"""The prefix of the names of clients with a key; the names of other clients are addresses."""

MAX_KEY_BYTES = 10_000_000
"""The maximum size of a file of API keys."""

OF_ONE_HOLDER = ("characters", "items", "requests_per_minute", "burst", "concurrent")
"""The names of the limits that the file of keys may set for the holder of a key."""


class ApiKeys:
    """The keys that may use the server; only their hashes are kept."""

    def __init__(self, keys: dict[str, Client]) -> None:
        """``keys`` maps each key to its holder. If it is empty, the server needs no key."""
        self.required = bool(keys)
        self._holders = {_digest(key): client for key, client in keys.items()}
        self.limits = {client.name: client.limits for client in keys.values()}
        """The limits of each holder, by name; None for a holder for whom the file of keys sets
        none."""

    @classmethod
    def load(cls, path: Path | None, limits: LimitSettings) -> ApiKeys:
        """Read a file with a key on each line, optionally followed by its holder's name and limits
        (``requests_per_minute=1200``); # begins a comment. If ``path`` is None, there are no keys.

        Errors: ``DataError`` for a file that cannot be read (or is a pipe, which could block), that
        contains no key or one that is too short, or that sets an unknown or invalid limit.
        """
        if path is None:
            return cls({})
        try:
            lines = read_bytes(path, MAX_KEY_BYTES).decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"cannot read the API keys in {path}: {error}") from error
        except RunError as error:
            raise DataError(f"API keys: {error}") from error
        keys: dict[str, Client] = {}
        named: dict[str, LimitSettings | None] = {}
        for number, line in enumerate(lines, 1):
            key, *words = line.split("#")[0].split() or [""]
            if not key:
                continue
            where = f"{path}, line {number}"
            if len(key) < 16:
                raise DataError(
                    f"{where}: a key of {len(key)} characters can be guessed. Use at least 16 "
                    "characters, for example from openssl rand -hex 16"
                )
            own = _own_limits([word for word in words if "=" in word], limits, where)
            name = " ".join(word for word in words if "=" not in word) or f"key on line {number}"
            if named.setdefault(name, own) != own:
                raise DataError(
                    f"{where}: the keys of {name} share one account and must have the same limits"
                )
            keys[key] = Client(f"{KEY}{name}", own)
        if not keys:
            raise DataError(f"{path} contains no API key. Write one on each line")
        return cls(keys)

    def client(self, given: str | None, stranger: Client) -> Client:
        """Return the client of a request: the holder of the key ``given`` if keys are required,
        else ``stranger``, the client by its address. Raises Refusal 403 if a required key is
        missing or unknown."""
        if not self.required:
            return stranger
        if not given:
            raise Refusal("key_needed")
        client = self._holders.get(_digest(given))
        if client is None:
            raise Refusal("key_unknown")
        return client


def _own_limits(words: list[str], limits: LimitSettings, where: str) -> LimitSettings | None:
    if not words:
        return None
    values = dict(word.split("=", 1) for word in words)
    for name in values.keys() - set(OF_ONE_HOLDER):
        raise DataError(
            f"{where}: {name} is not a limit of an account. Use one of {', '.join(OF_ONE_HOLDER)}"
        )
    try:
        return LimitSettings.model_validate({**limits.model_dump(), **values})
    except ValidationError as error:
        problem = error.errors()[0]
        raise DataError(
            f"{where}: {problem['loc'][0]}: {problem['msg']} (given: {problem['input']!r})"
        ) from None


_BEARER = re.compile(r"bearer\s+(\S+)\s*$", re.IGNORECASE)


def key_in_header(http: Request) -> str | None:
    """Return the key in the header ``Authorization: Bearer KEY``, or None."""
    match = _BEARER.match(http.headers.get("authorization", ""))
    return match[1] if match else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
