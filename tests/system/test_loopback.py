"""Servers on loopback: how they answer."""

import asyncio
import socket

from backstory.system.loopback import listen, port_of


def test_a_small_answer_is_sent_at_once() -> None:
    """Without this option of its socket, the system keeps it back for 40 ms."""

    async def find_option() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            option = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            found.set_result(option)
            writer.close()

        listener = listen(0)
        async with await asyncio.start_server(answer, sock=listener):
            _, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
            writer.close()
            return await found

    assert asyncio.run(find_option()) != 0
