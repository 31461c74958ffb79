"""The table of behaviours: each way in which servers and cables misbehave, one row each, and what
comes of it.

A row says which requests are struck, how often, and what the download must then end with: the right
file, or an exit status. Whatever is not struck is answered as it should be.
"""

from __future__ import annotations

import contextlib
import gzip
import time
from collections.abc import Callable

from scripted_server import (
    ALWAYS,
    CONTENT,
    NEW,
    OTHER,
    RIGHT,
    SIZE,
    Answer,
    Behaviour,
    Outcome,
    Struck,
    head,
)

HTML = b"<!DOCTYPE html><html><body>Please sign in.</body></html>"
JSON = b'{"code": 429, "message": "Too many requests"}'

TABLE: list[Behaviour] = []
_SAME: Outcome = -1
Act = Callable[[Answer], None]
Enter = Callable[[Act], Act]
Header = str | Callable[[Answer], str] | None


def must(
    outcome: Outcome,
    at: Struck = "all",
    times: int = ALWAYS,
    *,
    plain: Outcome = _SAME,
    loses: bool = False,
    stall: float = 10,
) -> Enter:
    """Put a function into the table, with what must come of it;
    ``plain`` where that is another without a digest.
    """

    def enter(act: Act) -> Act:
        TABLE.append(
            Behaviour(act, at, times, outcome, outcome if plain == _SAME else plain, loses, stall)
        )
        return act

    return enter


def enter(name: str, act: Act, *rows: Enter) -> None:
    """Put a behaviour into the table by a name of its own."""
    act.__name__ = name
    for row in rows:
        row(act)


def sends(
    name: str,
    *rows: Enter,
    body: bytes | Callable[[bytes], bytes] | None = None,
    status: int | str = 0,
    closes: bool = False,
    **headers: Header,
) -> None:
    """Rows of the right answer with another status, other headers (None: left out) or another body,
    which may be cut.

    The length that is announced is that of the right body; ``closes``: the connection ends with the
    answer.
    """

    def act(answer: Answer) -> None:
        number, right, content = answer.right()
        changed = {
            key.replace("_", "-"): each(answer) if callable(each) else each
            for key, each in headers.items()
        }
        sent = content if body is None else body(content) if callable(body) else body
        answer.reply(status or number, {**right, **changed}, sent)
        answer.close_connection |= closes

    enter(name, act, *rows)


def _half(body: bytes) -> bytes:
    return body[: max(1, len(body) // 2)]


def _wrong(body: bytes) -> bytes:
    """Whoever keeps a byte of it ends with another file."""
    return b"\xff" * len(body)


def _length(answer: Answer) -> int:
    return len(answer.right()[2])


# it ends early ------------------------------------------------------------------------------------


_FIRST = must(RIGHT, "first", 1)
_PARTS_TWICE = must(RIGHT, "parts", 2)
_SHAKY = (_FIRST, _PARTS_TWICE, must(5))
enter("closes_at_once", lambda answer: answer.hang_up(), *_SHAKY)


@must(RIGHT, "parts", 2)
def resets_midway(answer: Answer) -> None:
    """A reset in the body; the system may drop what had come."""
    status, headers, body = answer.right()
    answer.reply(status, headers, _half(body))
    answer.reset()


# half of each body comes: that is progress, however often it happens
sends("closes_midway", must(RIGHT, "parts"), body=_half, closes=True)
sends(
    "closes_before_the_last_byte", must(RIGHT, "parts", 3), body=lambda body: body[:-1], closes=True
)


# it falls silent, or crawls -----------------------------------------------------------------------


# the connection stands, and nothing comes
_SLOW = (must(RIGHT, "first", 1, stall=0.5), must(RIGHT, "parts", 1, stall=0.5))
enter("silent_at_once", lambda answer: answer.fall_silent(), *_SLOW, must(5, "parts", stall=0.3))


@must(RIGHT, "parts", 1, stall=0.5)
def silent_midway(answer: Answer) -> None:
    """Half of the body comes."""
    answer.cut(_length(answer) // 2)
    answer.fall_silent()


def _trickle(answer: Answer, data: bytes) -> None:
    """A byte now and then: it is never silent for long."""
    for byte in data:
        answer.raw(bytes([byte]))
        if answer.server.over.wait(0.02):
            break
    answer.close_connection = True


# the headers come to no end
_ENDLESS = b"HTTP/1.1 200 OK\r\nX-Slow: " + b"." * 10_000
enter("headers_trickle", lambda answer: _trickle(answer, _ENDLESS), *_SLOW)


@must(RIGHT, "parts", 1)
def body_trickles(answer: Answer) -> None:
    """Far below the minimum speed."""
    status, headers, body = answer.right()
    answer.reply(status, headers)
    _trickle(answer, body)


# no HTTP, or hardly -------------------------------------------------------------------------------


# the greeting of another protocol
enter("speaks_something_else", lambda answer: answer.hang_up(b"SSH-2.0-OpenSSH_9.6\r\n"), *_SHAKY)


@must(5, "parts", stall=0.3)
def headers_without_end(answer: Answer) -> None:
    """Hints and hints, as fast as they go."""
    with contextlib.suppress(OSError):
        while not answer.server.over.wait(0.002):
            answer.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 10)
    answer.close_connection = True


@must(RIGHT)
def speaks_http_1_0(answer: Answer) -> None:
    """A connection for each answer."""
    status, headers, body = answer.right()
    answer.reply(f"HTTP/1.0 {status} OK", headers, body)
    answer.close_connection = True


# more than http.client takes by itself, and more than it takes at all
sends("many_headers", must(RIGHT), **dict.fromkeys((f"X_{number}" for number in range(500)), "."))
_TOO_MANY = dict.fromkeys((f"X_{number}" for number in range(5000)), ".")
sends("very_many_headers", must(RIGHT, "parts", 2), must(5), closes=True, **_TOO_MANY)
_NO_HEADER = "HTTP/1.1 206 OK\r\nthis is no header"  # what comes behind it is no header either
sends(
    "a_line_that_is_no_header", must(RIGHT, "parts", 2, loses=True), status=_NO_HEADER, closes=True
)


# lengths ------------------------------------------------------------------------------------------

# the end of the connection is the end of the body, or not; the probe tells the length
sends("no_length", must(RIGHT), closes=True, Content_Length=None, Connection="close")
_CUT = {"Content_Length": None, "Connection": "close"}
sends("no_length_and_cut", must(RIGHT, "parts", 2), body=_half, closes=True, **_CUT)


# neither for a part nor for the whole: the end of the connection is that of the file, and only a
# digest tells if not
_NO_LENGTH = head("HTTP/1.1 200 OK", {"Content-Type": "application/octet-stream"})
enter("no_length_at_all", lambda answer: answer.hang_up(_NO_LENGTH + CONTENT), must(RIGHT, plain=5))
enter(
    "no_length_at_all_and_cut",
    lambda answer: answer.hang_up(_NO_LENGTH + _half(CONTENT)),
    must(4, plain=5),
)
_LATER_TWICE = must(RIGHT, "later", 2)
sends(
    "length_too_long",
    _LATER_TWICE,
    closes=True,
    Content_Length=lambda answer: str(_length(answer) + 1000),
)
# the rest stands in the way of the next answer
sends("length_too_short", _LATER_TWICE, Content_Length=lambda answer: str(_length(answer) // 2))
# Python would take it for a number
_ODD = {"Content_Length": lambda answer: f"{_length(answer):_}"}
sends("length_is_no_number", _PARTS_TWICE, must(RIGHT, "later"), closes=True, **_ODD)
sends("two_lengths", _PARTS_TWICE, must(5), closes=True, content_length="7")
sends("empty_body", must(5, "parts"), body=b"", Content_Length="0")
sends("more_than_was_asked_for", must(RIGHT), body=lambda body: body + b"\0" * 999)


@must(RIGHT)
def another_answer_behind(answer: Answer) -> None:
    """A whole answer that nobody asked for: the next request would take it for its own."""
    status, headers, body = answer.right()
    answer.reply(status, headers, body + head(f"HTTP/1.1 {status} OK", headers) + _wrong(body))


# ranges -------------------------------------------------------------------------------------------


def _span(answer: Answer) -> tuple[int, int]:
    return answer.span or (0, SIZE)


def _shifted(answer: Answer) -> str:
    start, stop = _span(answer)
    return f"bytes {start + 1}-{stop - 1}/{SIZE}"


def _of_another_file(answer: Answer) -> str:
    start, stop = _span(answer)
    return f"bytes {start}-{stop - 1}/{SIZE + 512}"


_LATER = (_LATER_TWICE, must(RIGHT, "later", loses=True))
_LATER_OR_NEVER = (_LATER_TWICE, must(4, "rest", loses=True, plain=5))
sends("another_start", *_LATER, body=_wrong, Content_Range=_shifted)
sends("another_total", *_LATER_OR_NEVER, body=_wrong, Content_Range=_of_another_file)
sends("no_content_range", *_LATER_OR_NEVER, body=_wrong, Content_Range=None)
sends("content_range_is_nonsense", *_LATER, body=_wrong, Content_Range="lines 1-2/3")
sends("part_called_the_whole", *_LATER, status=200, Content_Range=None)
_WHOLE = {"Content_Range": None, "Content_Length": str(SIZE)}
sends("ranges_are_ignored", *_LATER, must(RIGHT), body=CONTENT, status=200, **_WHOLE)
sends("wrong_bytes_in_a_range", must(4, "later"), body=_wrong)


@must(RIGHT, "later", 2)
@must(RIGHT, "later", loses=True)
def several_parts_in_one(answer: Answer) -> None:
    """multipart/byteranges, though one range was asked for."""
    start, stop = _span(answer)
    head = f"--cut\r\nContent-Type: a/b\r\nContent-Range: bytes {start}-{stop - 1}/{SIZE}\r\n\r\n"
    body = head.encode() + answer.right()[2] + b"\r\n--cut--\r\n"
    answer.page("multipart/byteranges; boundary=cut", body, 206)


@must(RIGHT, "later")
def less_than_was_asked_for(answer: Answer) -> None:
    """The first half of the range, and it says so (RFC 9110, section 15.3.7)."""
    start, stop = _span(answer)
    stop = start + max(1, (stop - start) // 2)
    value = f"bytes {start}-{stop - 1}/{SIZE}"
    headers = {**answer.right()[1], "Content-Range": value, "Content-Length": str(stop - start)}
    answer.reply(206, headers, CONTENT[start:stop])


# it really has no bytes
_NO_BYTES = {"Content_Range": "bytes */0"}
enter(
    "file_is_empty",
    lambda answer: answer.nothing(416 if answer.span else 200, **_NO_BYTES),
    must(4),
)


@must(4, "later")
def bytes_are_shifted(answer: Answer) -> None:
    """By one: without a digest, the headers within the tar tell."""
    start, stop = _span(answer)
    status, headers, _ = answer.right()
    answer.reply(status, headers, (CONTENT + b"\0")[start + 1 : stop + 1])


# other answers ------------------------------------------------------------------------------------


def _nothing(status: int, *rows: Enter, called: str = "", **headers: str) -> None:
    """Rows of an answer that is a status and no body."""
    enter(called or f"status_{status}", lambda answer: answer.nothing(status, **headers), *rows)


_ONCE = must(RIGHT, "parts", 1)
_nothing(204, must(5), _ONCE)
_nothing(304, must(5), _ONCE)
_nothing(400, must(5))
_nothing(401, must(6))
_nothing(403, must(6), must(6, "parts"), _ONCE)
_nothing(404, must(5), must(5, "parts"), must(RIGHT, "probes", 1))
_nothing(429, must(5), must(RIGHT, "first", 1), _ONCE)
_nothing(500, _ONCE)
_nothing(501, must(5))
_nothing(503, must(5), must(RIGHT, "first", 1), _ONCE)
_nothing(520, must(RIGHT, "probes", 1), _ONCE)
_nothing(999, must(5))
# 416 for a range that is there, and 416 that says the file has no bytes
_nothing(416, _LATER_TWICE, called="not_satisfiable", Content_Range=f"bytes */{SIZE}")
_EMPTY = (must(RIGHT, "first", 1), must(RIGHT, "probes", 2), _LATER_TWICE, must(5))
_nothing(416, *_EMPTY, called="not_satisfiable_for_it_is_empty", Content_Range="bytes */0")
for _value in (
    "-5",
    "1e9",
    "nan",
    "9" * 400,
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Thu, 99 Jan 1970 99:00:00 GMT",
):
    _nothing(503, _ONCE, called=f"retry_after_{_value[:12]!a}", Retry_After=_value)
_nothing(302, must(5), called="redirects_to_nowhere", Location="//[/")
_nothing(302, must(5), called="redirects_to_a_file", Location="file:///etc/hosts")


def _before(name: str, data: bytes, *rows: Enter) -> None:
    """Rows of something before the right answer."""

    def act(answer: Answer) -> None:
        answer.raw(data)
        answer.reply(*answer.right())

    enter(name, act, *rows)


_before("continues_first", b"HTTP/1.1 100 Continue\r\n\r\n", must(RIGHT))
_HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n"
_before("hints_first", _HINT * 2, must(RIGHT))
enter("redirects_to_itself", lambda answer: answer.nothing(302, Location=answer.path), must(5))


@must(RIGHT)
def redirects_to_another_host(answer: Answer) -> None:
    """By another name of this machine, where the file is."""
    if answer.headers["Host"].startswith("localhost"):
        answer.reply(*answer.right())
    else:
        answer.nothing(307, Location=f"http://localhost:{answer.server.server_port}{answer.path}")


@must(RIGHT, times=40)
def redirects_to_what_expires(answer: Answer) -> None:
    """Each address there is good for one request: who asks home again is given another."""
    if not answer.headers["Host"].startswith("localhost"):
        number = answer.server.count("issued")
        answer.nothing(302, Location=f"http://localhost:{answer.server.server_port}/{number}")
    elif answer.server.count(answer.path):
        answer.nothing(403)
    else:
        answer.reply(*answer.right())


# pages in place of the file -----------------------------------------------------------------------


def _page(name: str, kind: str, page: bytes, *rows: Enter) -> None:
    """Rows of a page with status 200."""
    enter(name, lambda answer: answer.page(kind, page), *rows)


_page("page_to_sign_in", "text/html; charset=utf-8", HTML, must(6), must(6, "parts"))
_page("page_that_says_to_be_data", "application/octet-stream", b"\xef\xbb\xbf\n " + HTML, must(6))
_page(
    "error_in_xml",
    "application/xml",
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>',
    must(6),
)
_page("error_in_json", "application/json", JSON, must(4), _ONCE)
sends("data_that_says_to_be_a_page", must(RIGHT), Content_Type="text/html; charset=utf-8")


# nothing tells that it is not the file but what it looks like
_CLOSING = head("HTTP/1.1 200 OK", {"Connection": "close"})
_LOST = must(RIGHT, "parts", 1, loses=True)
enter("error_in_json_without_length", lambda answer: answer.hang_up(_CLOSING + JSON), _LOST)


# how the body is sent -----------------------------------------------------------------------------


def _chunks(body: bytes, size: int = 10_000) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;part=1\r\n%b\r\n" % (len(part), part) for part in parts)


_CHUNKED = {"Content_Length": None, "Transfer_Encoding": "chunked"}
_END = b"0\r\n\r\n"
sends(
    "in_chunks",
    must(RIGHT),
    body=lambda body: _chunks(body) + b"0\r\nX-Trailer: 1\r\n\r\n",
    **_CHUNKED,
)
sends(
    "in_chunks_and_cut",
    _PARTS_TWICE,
    body=lambda body: _half(_chunks(body)),
    closes=True,
    **_CHUNKED,
)
# all bytes came; the chunk that ends them did not
sends("in_chunks_without_the_last", _PARTS_TWICE, body=_chunks, closes=True, **_CHUNKED)
_NO_SIZE = {"body": lambda body: _chunks(body[:1000]) + b"xyz\r\n" + body[1000:], **_CHUNKED}
sends("in_chunks_of_no_size", _PARTS_TWICE, closes=True, **_NO_SIZE)
_ZIPPED = {"body": lambda body: _chunks(gzip.compress(body)) + _END, **_CHUNKED}
_GZIP = {**_ZIPPED, "Transfer_Encoding": "gzip, chunked"}
sends("in_another_way", must(5, "rest", loses=True), closes=True, **_GZIP)
# gzip, it says: of bytes that are not, which a digest tells; of bytes that are, though it was not
# asked for
sends("says_to_be_encoded", must(RIGHT, plain=4), Content_Encoding="gzip")
sends("is_encoded", must(4, "parts", loses=True), Content_Encoding="gzip", **_ZIPPED)


# versions -----------------------------------------------------------------------------------------

_NONE = {"ETag": None, "Last_Modified": None}
# of another server behind the same address: its bytes are never joined, though they are the same
_ANOTHER = {**_NONE, "ETag": '"another"'}
sends("another_etag", _LATER_TWICE, must(5, "rest", loses=True), **_ANOTHER)
# a cluster whose servers don't agree: nothing is joined, one answer brings it all
_EACH = {**_NONE, "ETag": lambda answer: f'"{answer.server.count("etag")}"'}
sends("an_etag_for_each_answer", must(RIGHT, loses=True, plain=5), **_EACH)
sends("only_weak_etags", must(RIGHT), ETag='W/"1"')
sends("no_validator", must(RIGHT), **_NONE)
sends("validators_go_away", must(RIGHT, "later", 2, loses=True), **_NONE)


def _replaced(name: str, content: bytes, version: int, row: Enter) -> None:
    """A row of a file that takes the place of the one on the server; all that it says fits that."""

    def act(answer: Answer) -> None:
        answer.server.content, answer.server.version = content, version
        answer.reply(*answer.right())

    enter(name, act, row)


_replaced("file_is_cut_on_the_server", CONTENT[: SIZE // 2 // 512 * 512], 1, must(4, loses=True))
_replaced("file_changes_midway", OTHER, 2, must(4, "later", plain=NEW, loses=True))
_replaced("file_shrinks_midway", CONTENT[:-512], 2, must(4, "later", plain=NEW, loses=True))


# connections --------------------------------------------------------------------------------------


def _one_at_a_time(name: str, refuse: Act) -> None:
    def act(answer: Answer) -> None:
        server = answer.server
        with server.lock:
            is_alone = not server.busy
            server.busy += is_alone
        if not is_alone:
            refuse(answer)
            return
        time.sleep(0.02)
        with server.lock:  # first, so that who has read the answer is not too early
            server.busy = 0
        answer.reply(*answer.right())

    enter(f"one_connection_then_{name}", act, must(RIGHT, "parts"))


_one_at_a_time("403", lambda answer: answer.nothing(403))
_one_at_a_time("503", lambda answer: answer.nothing(503))
_one_at_a_time("reset", lambda answer: answer.reset())
sends("drops_what_it_said_to_keep", must(RIGHT), closes=True, Connection="keep-alive")
