"""Addresses of clients: one way of writing each, which of them count as one, and networks."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses as a translating gateway (NAT64) writes them: RFC 6052, section 2.1."""
_PRIVATE_BITS = 64
"""Whoever has one IPv6 address has a network of this length to choose from."""


def plain(host: str) -> str:
    """An address as it is written everywhere here: IPv4 as such, also where a socket or a proxy
    that speaks both writes it as IPv6 (``::ffff:192.0.2.7``), and without a zone. What is no
    address stays as it is."""
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
    """Who holds an address, for limits: itself, or the /64 network of an IPv6 address."""
    host = plain(host)
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host, _PRIVATE_BITS), strict=False))
    except ValueError:
        return host


def is_address(host: str) -> bool:
    """Whether it is an address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def without_port(host: str) -> str:
    """``example.org:443`` -> ``example.org``, ``[2001:db8::1]:443`` -> ``2001:db8::1``."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


class Networks:
    """Some addresses and networks; ``*`` is every address."""

    def __init__(self, words: Sequence[str]) -> None:
        """Errors: ``ValueError`` for what is neither an address, a network nor ``*``."""
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
