"""Ask the hub of this user to answer a hook.

Everything that goes wrong here has the same consequence: the hook answers itself, as it does without a hub.
So a hub that is frozen, stops, has another version or another installation costs time and nothing else.

`socket` takes as long to import as the start of Python, and `os` a tenth of that, so this uses what is below.
"""

import _socket
import _stat
import posix
import sys
import time

from coord.host.runtime.hub_socket import PID_BYTES, maker_of

VERSION = b"0.1.0"
"""The version of this coord; another version may read an event differently."""
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024
HEAD_BYTES_MAX = 16 * 1024
READ_BYTES = 64 * 1024
"""Most answers have a few hundred bytes; a larger buffer would come from the kernel each time."""
CONTENT_TYPE = "application/vnd.coord.hook"
HEAD = "POST {} HTTP/1.1\r\nHost: coord\r\nContent-Type: " + CONTENT_TYPE + "\r\n{}Content-Length: {}\r\n\r\n"
HOOK, PRINTED = "/v1/hook", "/v1/hook/printed"
EXPECT = "Expect: 100-continue\r\n"
"""The hub sends a line soon after it has read the request, unless it has answered: it is alive."""


class HubAnswer:
    """What the hook prints, and how it ends."""

    def __init__(self, code: int, out: bytes, said: bytes, confirmation: bytes, hub: _socket.socket) -> None:
        self.code = code
        self.out = out
        self.said = said
        self._confirmation = confirmation
        self._hub = hub

    def close(self) -> None:
        """Close the connection; a hook ends instead."""
        self._hub.close()

    def confirm(self, printed: bool) -> None:
        """Report that the tool has the answer, so that its messages count as received."""
        if self._confirmation and printed:
            head = HEAD.format(PRINTED, "", len(self._confirmation))
            try:
                self._hub.sendall(head.encode() + self._confirmation)
            except OSError:  # the next hook offers the messages again
                return


def ask_hub(
    path: str, call: "tuple[str, str, int]", payload: bytes, alive_by: float, answer_by: float
) -> "HubAnswer | None":
    """Return the answer of the hub at a socket; None if the hook has to answer itself.

    `call`: the tool, the git directory that the hook was set up for, and the parent process. A hub that shows
    no sign of life until `alive_by` is frozen. It does nothing in the name of this hook after `answer_by`, on
    the clock that all processes of a machine share.
    """
    if len(payload) > PAYLOAD_BYTES_MAX or not _somebody_reads():
        return None
    hub = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        hub.settimeout(_left(alive_by))
        hub.connect(path)
        peer = hub.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * PID_BYTES)
        if int.from_bytes(peer[PID_BYTES : 2 * PID_BYTES], sys.byteorder) != posix.getuid():
            return None
        hub.sendall(_request(call, payload, answer_by))
        return _read_answer(hub, alive_by, answer_by)
    except (OSError, ValueError, IndexError):
        return None


def _request(call: "tuple[str, str, int]", payload: bytes, answer_by: float) -> bytes:
    tool, installed_for, parent = call
    makers = ",".join(str(maker_of(fd)) for fd in (0, 1, 2) if _stat.S_ISSOCK(_mode(fd)))
    programs = sys.executable.rpartition("/")[0]
    texts = (programs, tool, installed_for, str(parent), makers, repr(answer_by))
    encoded = (text.encode("utf-8", "surrogateescape") for text in texts)
    block = b"\0".join((VERSION, *encoded, *(b"%b=%b" % each for each in posix.environ.items())))
    size = b"%d\n" % len(block)
    head = HEAD.format(HOOK, EXPECT, len(size) + len(block) + len(payload))
    return head.encode() + size + block + payload


def _somebody_reads() -> bool:
    """Whether the tool still waits for the answer; if that is in doubt, the hook finds out itself."""
    mode = _mode(1)
    if _stat.S_ISFIFO(mode):
        try:
            posix.close(posix.open("/proc/self/fd/1", posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC))
        except OSError:  # a pipe without a reader cannot be opened
            return False
    elif _stat.S_ISSOCK(mode):
        own = _socket.socket(fileno=posix.dup(1))
        try:
            return own.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            own.close()
    return True


def _mode(fd: int) -> int:
    try:
        return posix.fstat(fd).st_mode
    except OSError:
        return 0


def _read_answer(hub: _socket.socket, alive_by: float, answer_by: float) -> "HubAnswer | None":
    """Return the answer, whole; raise for half of one, or none in time."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(hub, alive_by)
    while data.startswith(b"HTTP/1.1 100 "):
        data = data.partition(b"\r\n\r\n")[2]
        while b"\r\n\r\n" not in data:
            data += _some(hub, answer_by)
            if len(data) > HEAD_BYTES_MAX + READ_BYTES:
                return None
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        return None
    (length,) = [
        int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    ]
    while len(body) < length:
        body += _some(hub, answer_by)
    first, _, printed = body.partition(b"\n")
    version, code, size, confirmation = first.split(b" ")
    if version != VERSION or len(body) != length or int(size) > len(printed):
        return None
    return HubAnswer(int(code), printed[: int(size)], printed[int(size) :], confirmation.strip(b"-"), hub)


def _some(hub: _socket.socket, deadline: float) -> bytes:
    hub.settimeout(_left(deadline))
    data = hub.recv(READ_BYTES)
    if not data:
        raise ConnectionError("the hub closed the connection")
    return data


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
