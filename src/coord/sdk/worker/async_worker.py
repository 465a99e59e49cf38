"""Run a worker for a coroutine function: the worker in a thread, the function on the event loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from coord.sdk.worker.work import LOOK_S, GiveBack, Work

if TYPE_CHECKING:
    from coord.sdk.worker.worker import AsyncHandle, Handle, Result, Worker, WorkerReport


async def run_on_loop(worker: "Worker", handle: "AsyncHandle", **options: Any) -> "WorkerReport":
    """Run a worker; when cancelled, stop the function, release its task and end."""
    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(1, thread_name_prefix="coord-work")
    in_thread = _in_thread(loop, handle)
    running = loop.run_in_executor(threads, lambda: worker.run(in_thread, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        worker.stop()
        await asyncio.wait([running])
        raise
    finally:
        threads.shutdown(wait=False)


def _in_thread(loop: asyncio.AbstractEventLoop, handle: "AsyncHandle") -> "Handle":
    """Return a function for the worker's thread that runs a coroutine on the loop."""

    def run(work: Work) -> "Result":
        ended = threading.Event()
        started: list[asyncio.Task[Result]] = []

        async def carry_out() -> "Result":
            return await handle(work)

        def start() -> None:
            task = loop.create_task(carry_out())
            task.add_done_callback(lambda _: ended.set())
            started.append(task)

        loop.call_soon_threadsafe(start)
        while not ended.wait(LOOK_S):
            if work.over and started:
                loop.call_soon_threadsafe(started[0].cancel)
                ended.wait()  # it may clean up first
        if started[0].cancelled():
            work.check()
            raise GiveBack("the coroutine was cancelled")
        return started[0].result()

    return run
