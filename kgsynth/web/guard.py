"""Which addresses may be reached, enforced where connections are made (server-side request forgery, CWE-918).

A name is resolved once per connection, every address it has is checked, and the connection goes to one of those very
addresses: a name that resolves differently a moment later ("DNS rebinding") gains nothing. The URL keeps its name, so
Host header, SNI and the check of the certificate are what they always are, and so is the reuse of connections.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpcore

from kgsynth.errors import WebError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # host, port -> addresses, best first

_ROUTED = ipaddress.ip_network("2000::/3")  # the only IPv6 space given out: leaves out mapped, NAT64, local, multicast
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("192.88.99.0/24"))  # 6to4 and its relays
_TRIED = 3  # addresses of one name
_CONNECT = 6.0  # seconds for each
_NAMES = ThreadPoolExecutor(max_workers=16, thread_name_prefix="dns")  # slow names must not block other threads' work


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public Internet and leads nowhere else (IANA special-purpose registries)."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address) and (ip not in _ROUTED or ip.scope_id):
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in net for net in _TUNNELS if net.version == ip.version)


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host by the system's resolver. Raises OSError or UnicodeError."""
    found = await asyncio.get_running_loop().run_in_executor(
        _NAMES, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses only. Raises WebError: "private address" or "connection"."""

    def __init__(
        self, *, allow_private: bool, resolve: Resolve = resolve, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allow_private, self._resolve = allow_private, resolve
        self._network: httpcore.AsyncNetworkBackend = network or httpcore.AnyIOBackend()  # pyright: ignore

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        for address in (await self._addresses(host, port))[:_TRIED]:
            try:
                return await self._network.connect_tcp(
                    address, port, timeout or _CONNECT, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout, OSError) as error:
                failure = error
        what = f"{type(failure).__name__}: {failure}" if failure else f"{host} has no address"
        raise WebError(what, cause="connection") from failure

    async def connect_unix_socket(self, *args: object, **kwargs: object) -> httpcore.AsyncNetworkStream:
        raise WebError("pages are not read from Unix sockets")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise WebError(f"{host} cannot be resolved: {error}", cause="connection") from error
        private = [address for address in addresses if not is_public(address)]
        if private and not self._allow_private:
            raise WebError(
                f"{host} is the private address {private[0]}; set [web.http] allow_private = true to reach it",
                cause="private address",
            )
        return addresses
