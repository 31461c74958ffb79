"""The table of behaviours: each way in which servers and cables misbehave, one function each, and what comes of it.

A row says which requests are struck, how often, and what the download must then end with: the right file, or an exit
status. Whatever is not struck is answered as it should be.
"""

from __future__ import annotations

import contextlib
import gzip
import time
from collections.abc import Callable

from scripted_server import ALWAYS, CONTENT, NEW, OTHER, RIGHT, SIZE, Answer, Behaviour, Outcome, Struck, head

HTML = b"<!DOCTYPE html><html><body>Please sign in.</body></html>"
JSON = b'{"code": 429, "message": "Too many requests"}'


TABLE: list[Behaviour] = []
_SAME: Outcome = -1


def must(
    outcome: Outcome,
    *,
    at: Struck = "all",
    times: int = ALWAYS,
    plain: Outcome = _SAME,
    loses: bool = False,
    stall: float = 10,
) -> Callable[[Callable[[Answer], None]], Callable[[Answer], None]]:
    """Put a function into the table, with what must come of it; ``plain`` where that is another without a digest."""

    def enter(act: Callable[[Answer], None]) -> Callable[[Answer], None]:
        TABLE.append(Behaviour(act, at, times, outcome, outcome if plain == _SAME else plain, loses, stall))
        return act

    return enter


def _half(body: bytes) -> bytes:
    return body[: len(body) // 2]


# it ends early -------------------------------------------------------------------------------------------------------


@must(RIGHT, at="first", times=1)
@must(RIGHT, at="parts", times=2)
@must(5)
def closes_at_once(answer: Answer) -> None:
    """Not one byte comes."""
    answer.hang_up()


@must(RIGHT, at="parts")
def closes_midway(answer: Answer) -> None:
    """Half of each body comes: that is progress, however often it happens."""
    answer.cut(max(1, len(answer.right()[2]) // 2))


@must(RIGHT, at="parts", times=3)
def closes_before_the_last_byte(answer: Answer) -> None:
    """One byte is missing of each."""
    answer.cut(len(answer.right()[2]) - 1)


@must(RIGHT, at="parts", times=2)
def resets_midway(answer: Answer) -> None:
    """A reset in the body; the system may drop what had come."""
    status, headers, body = answer.right()
    answer.reply(status, headers, _half(body))
    answer.reset()


# it falls silent, or crawls ------------------------------------------------------------------------------------------


@must(RIGHT, at="first", times=1, stall=0.5)
@must(RIGHT, at="parts", times=1, stall=0.5)
@must(5, at="parts", stall=0.3)
def silent_at_once(answer: Answer) -> None:
    """The connection stands, and nothing comes."""
    answer.fall_silent()


@must(RIGHT, at="parts", times=1, stall=0.5)
def silent_midway(answer: Answer) -> None:
    """Half of the body comes."""
    answer.cut(len(answer.right()[2]) // 2)
    answer.fall_silent()


@must(RIGHT, at="first", times=1, stall=0.5)
@must(RIGHT, at="parts", times=1, stall=0.5)
def headers_trickle(answer: Answer) -> None:
    """A byte now and then: it is never silent for long."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"." * 10_000:
        answer.raw(bytes([byte]))
        if answer.server.over.wait(0.02):
            break
    answer.close_connection = True


@must(RIGHT, at="parts", times=1)
def body_trickles(answer: Answer) -> None:
    """Far below the minimum speed, and never silent for long."""
    status, headers, body = answer.right()
    answer.reply(status, headers)
    for byte in body:
        answer.raw(bytes([byte]))
        if answer.server.over.wait(0.02):
            break
    answer.close_connection = True


# no HTTP, or hardly --------------------------------------------------------------------------------------------------


@must(RIGHT, at="first", times=1)
@must(RIGHT, at="parts", times=2)
@must(5)
def speaks_something_else(answer: Answer) -> None:
    """The greeting of another protocol."""
    answer.hang_up(b"SSH-2.0-OpenSSH_9.6\r\n")


@must(5)
def status_out_of_range(answer: Answer) -> None:
    """There is no status 999."""
    answer.nothing(999)


@must(RIGHT)
def speaks_http_1_0(answer: Answer) -> None:
    """A connection for each answer."""
    status, headers, body = answer.right()
    answer.reply(f"HTTP/1.0 {status} OK", headers, body)
    answer.close_connection = True


@must(RIGHT)
def many_headers(answer: Answer) -> None:
    """500 of them: more than http.client takes by itself."""
    answer.reply_with(**{f"X_{number}": "." for number in range(500)})


@must(RIGHT, at="parts", times=2)
@must(5)
def very_many_headers(answer: Answer) -> None:
    """5,000 of them."""
    answer.reply_with(**{f"X_{number}": "." for number in range(5000)})
    answer.close_connection = True


@must(5, at="parts", stall=0.3)
def headers_without_end(answer: Answer) -> None:
    """Hints and hints, as fast as they go."""
    with contextlib.suppress(OSError):
        while not answer.server.over.wait(0.002):
            answer.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 10)
    answer.close_connection = True


@must(RIGHT)
def headers_in_odd_case(answer: Answer) -> None:
    """Names of headers have no case; spaces around values count for nothing."""
    status, headers, body = answer.right()
    odd = {name.swapcase(): f"  {value} " for name, value in headers.items()}
    answer.reply(status, odd, body)


@must(RIGHT, at="parts", times=2, loses=True)
def a_line_that_is_no_header(answer: Answer) -> None:
    """What comes behind it is no header either."""
    status, headers, body = answer.right()
    answer.reply(f"HTTP/1.1 {status} OK\r\nthis is no header", headers, body)
    answer.close_connection = True


# lengths -------------------------------------------------------------------------------------------------------------


@must(RIGHT)
def no_length(answer: Answer) -> None:
    """The end of the connection is the end of the body; the probe tells the length."""
    answer.reply_with(Content_Length=None, Connection="close")
    answer.close_connection = True


@must(RIGHT, at="parts", times=2)
def no_length_and_cut(answer: Answer) -> None:
    """The end of the connection is not the end of the body."""
    status, headers, body = answer.right()
    answer.reply(status, {**headers, "Content-Length": None, "Connection": "close"}, _half(body))
    answer.close_connection = True


@must(RIGHT, plain=5)
def no_length_at_all(answer: Answer) -> None:
    """Neither for a part nor for the whole: with a digest, the end of the connection is the end of the file."""
    answer.reply("HTTP/1.1 200 OK", {"Content-Type": "application/octet-stream"}, CONTENT)
    answer.close_connection = True


@must(4, plain=5)
def no_length_at_all_and_cut(answer: Answer) -> None:
    """Nothing tells the end of the file but its digest."""
    answer.reply("HTTP/1.1 200 OK", {"Content-Type": "application/octet-stream"}, _half(CONTENT))
    answer.close_connection = True


@must(RIGHT, at="later", times=2)
def length_too_long(answer: Answer) -> None:
    """More is announced than comes."""
    answer.reply_with(Content_Length=str(len(answer.right()[2]) + 1000))
    answer.close_connection = True


@must(RIGHT, at="later", times=2)
def length_too_short(answer: Answer) -> None:
    """Less is announced than comes: the rest stands in the way of the next answer."""
    answer.reply_with(Content_Length=str(len(answer.right()[2]) // 2))


@must(RIGHT, at="parts", times=2)
@must(RIGHT, at="later")
def length_is_no_number(answer: Answer) -> None:
    """Python would take it for one."""
    answer.reply_with(Content_Length=f"{len(answer.right()[2]):_}")
    answer.close_connection = True


@must(RIGHT, at="parts", times=2)
@must(5)
def two_lengths(answer: Answer) -> None:
    """Two headers that do not agree."""
    answer.reply_with(content_length="7")
    answer.close_connection = True


@must(5, at="parts")
def empty_body(answer: Answer) -> None:
    """Nothing, and it says so."""
    status, headers, _ = answer.right()
    answer.reply(status, {**headers, "Content-Length": "0"})


@must(RIGHT)
def more_than_was_asked_for(answer: Answer) -> None:
    """Bytes behind the body, on a connection that is kept."""
    status, headers, body = answer.right()
    answer.reply(status, headers, body + b"\0" * 999)


@must(RIGHT)
def another_answer_behind(answer: Answer) -> None:
    """A whole answer that nobody asked for: the next request would take it for its own."""
    status, headers, body = answer.right()
    behind = head(f"HTTP/1.1 {status} OK", headers) + b"\xff" * len(body)
    answer.reply(status, headers, body + behind)


# ranges --------------------------------------------------------------------------------------------------------------


def _with_range(answer: Answer, value: str | None) -> None:
    """An answer with another Content-Range, and with other bytes: whoever keeps one of them ends with another file."""
    status, headers, body = answer.right()
    answer.reply(status, {**headers, "Content-Range": value}, b"\xff" * len(body))


def _span(answer: Answer) -> tuple[int, int]:
    return answer.span or (0, SIZE)


@must(RIGHT, at="later", times=2)
@must(RIGHT, at="later", loses=True)
def another_start(answer: Answer) -> None:
    """One byte later."""
    start, stop = _span(answer)
    _with_range(answer, f"bytes {start + 1}-{stop - 1}/{SIZE}")


@must(RIGHT, at="later", times=2)
@must(4, at="rest", loses=True, plain=5)
def another_total(answer: Answer) -> None:
    """That of another file."""
    start, stop = _span(answer)
    _with_range(answer, f"bytes {start}-{stop - 1}/{SIZE + 512}")


@must(RIGHT, at="later", times=2)
@must(4, at="rest", loses=True, plain=5)
@must(RIGHT, at="all")
def no_content_range(answer: Answer) -> None:
    """206, and no word about of what."""
    if answer.span is None:
        answer.reply(*answer.right())
    else:
        _with_range(answer, None)


@must(RIGHT, at="later", times=2)
@must(RIGHT, at="later", loses=True)
def content_range_is_nonsense(answer: Answer) -> None:
    """Another unit."""
    _with_range(answer, "lines 1-2/3")


@must(RIGHT, at="later", times=2)
@must(RIGHT, at="later", loses=True)
def several_parts_in_one(answer: Answer) -> None:
    """multipart/byteranges, though one range was asked for."""
    start, stop = _span(answer)
    head = f"--cut\r\nContent-Type: a/b\r\nContent-Range: bytes {start}-{stop - 1}/{SIZE}\r\n\r\n"
    body = head.encode() + answer.right()[2] + b"\r\n--cut--\r\n"
    answer.page("multipart/byteranges; boundary=cut", body, 206)


@must(RIGHT, at="later")
def less_than_was_asked_for(answer: Answer) -> None:
    """The first half of the range, and it says so (RFC 9110, section 15.3.7)."""
    start, stop = _span(answer)
    stop = start + max(1, (stop - start) // 2)
    value = f"bytes {start}-{stop - 1}/{SIZE}"
    headers = {**answer.right()[1], "Content-Range": value, "Content-Length": str(stop - start)}
    answer.reply(206, headers, CONTENT[start:stop])


@must(RIGHT, at="later", times=2)
@must(RIGHT, at="later", loses=True)
@must(RIGHT)
def ranges_are_ignored(answer: Answer) -> None:
    """200 and the whole file."""
    _, headers, _ = answer.right()
    answer.reply(200, {**headers, "Content-Range": None, "Content-Length": str(SIZE)}, CONTENT)


@must(RIGHT, at="later", times=2)
@must(RIGHT, at="later", loses=True)
def part_called_the_whole(answer: Answer) -> None:
    """200 with the bytes of the range."""
    _, headers, body = answer.right()
    answer.reply(200, {**headers, "Content-Range": None}, body)


@must(RIGHT, at="later", times=2)
def not_satisfiable(answer: Answer) -> None:
    """416 for a range that is there."""
    answer.nothing(416, Content_Range=f"bytes */{SIZE}")


@must(RIGHT, at="first", times=1)
@must(RIGHT, at="probes", times=2)
@must(RIGHT, at="later", times=2)
@must(5)
def not_satisfiable_for_it_is_empty(answer: Answer) -> None:
    """416 that says the file has no bytes."""
    answer.nothing(416, Content_Range="bytes */0")


@must(4)
def file_is_empty(answer: Answer) -> None:
    """It really has no bytes."""
    answer.nothing(*((416,) if answer.span else (200,)), Content_Range="bytes */0")


@must(4, at="later")
def bytes_are_shifted(answer: Answer) -> None:
    """By one: without a digest, the headers within the tar tell."""
    start, stop = _span(answer)
    status, headers, _ = answer.right()
    answer.reply(status, headers, (CONTENT + b"\0")[start + 1 : stop + 1])


@must(4, at="later")
def wrong_bytes_in_a_range(answer: Answer) -> None:
    """All that is said of them is right."""
    status, headers, body = answer.right()
    answer.reply(status, headers, b"\xff" * len(body))


# other answers -------------------------------------------------------------------------------------------------------


def _status(status: int, **headers: str) -> Callable[[Answer], None]:
    def act(answer: Answer) -> None:
        answer.nothing(status, **headers)

    words = "_".join(value for value in headers.values())
    act.__name__ = f"status_{status}" + (f"_{words}" if words else "")
    return act


for _number in (204, 304, 400, 404, 501):
    must(5)(_status(_number))
for _number in (401, 403):
    must(6)(_status(_number))
for _number in (403, 429, 500, 503, 520):
    must(RIGHT, at="parts", times=1)(_status(_number))
for _number in (404, 520):
    must(RIGHT, at="probes", times=1)(_status(_number))
for _number in (429, 503):
    must(RIGHT, at="first", times=1)(_status(_number))
    must(5)(_status(_number))
must(6, at="parts")(_status(403))
must(5, at="parts")(_status(404))
must(RIGHT, at="parts", times=1)(_status(204))
must(RIGHT, at="parts", times=1)(_status(304))

for _value in ("-5", "1e9", "nan", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 99 Jan 1970 99:00:00 GMT"):
    _act = _status(503, Retry_After=_value)
    _act.__name__ = f"retry_after_{_value[:12]!a}"
    must(RIGHT, at="parts", times=1)(_act)


@must(RIGHT)
def continues_first(answer: Answer) -> None:
    """100 before the answer."""
    answer.raw(b"HTTP/1.1 100 Continue\r\n\r\n")
    answer.reply(*answer.right())


@must(RIGHT, at="parts", times=2)
@must(5)
def hints_first(answer: Answer) -> None:
    """103 before the answer, twice."""
    answer.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n" * 2)
    answer.reply(*answer.right())


@must(5)
def redirects_to_itself(answer: Answer) -> None:
    """Round and round."""
    answer.nothing(302, Location=answer.path)


@must(5)
def redirects_to_nowhere(answer: Answer) -> None:
    """To no address."""
    answer.nothing(302, Location="//[/")


@must(5)
def redirects_to_a_file(answer: Answer) -> None:
    """Of this machine."""
    answer.nothing(302, Location="file:///etc/hosts")


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


# pages in place of the file ------------------------------------------------------------------------------------------


@must(6)
@must(6, at="parts")
def page_to_sign_in(answer: Answer) -> None:
    """With status 200."""
    answer.page("text/html; charset=utf-8", HTML)


@must(RIGHT)
def data_that_says_to_be_a_page(answer: Answer) -> None:
    """The type is html, the bytes are those of the file."""
    answer.reply_with(Content_Type="text/html; charset=utf-8")


@must(6)
def page_that_says_to_be_data(answer: Answer) -> None:
    """The type is that of the file."""
    answer.page("application/octet-stream", b"\xef\xbb\xbf\n " + HTML)


@must(6)
def error_in_xml(answer: Answer) -> None:
    """As object stores say it, with status 200."""
    answer.page("application/xml", b'<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>')


@must(4)
@must(RIGHT, at="parts", times=1)
def error_in_json(answer: Answer) -> None:
    """With status 200."""
    answer.page("application/json", JSON)


@must(RIGHT, at="parts", times=1, loses=True)
def error_in_json_without_length(answer: Answer) -> None:
    """Nothing tells that it is not the file but what it looks like."""
    answer.reply("HTTP/1.1 200 OK", {"Connection": "close"}, JSON)
    answer.close_connection = True


# how the body is sent ------------------------------------------------------------------------------------------------


def _chunks(body: bytes, size: int = 10_000) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;part=1\r\n%b\r\n" % (len(part), part) for part in parts)


def _chunked(answer: Answer, body: bytes, **headers: str | None) -> None:
    status, right, _ = answer.right()
    changed = {name.replace("_", "-"): value for name, value in headers.items()}
    answer.reply(status, {**right, "Content-Length": None, "Transfer-Encoding": "chunked", **changed}, body)


@must(RIGHT)
def in_chunks(answer: Answer) -> None:
    """As it should be."""
    _chunked(answer, _chunks(answer.right()[2]) + b"0\r\nX-Trailer: 1\r\n\r\n")


@must(RIGHT, at="parts", times=2)
def in_chunks_and_cut(answer: Answer) -> None:
    """The end is missing."""
    _chunked(answer, _half(_chunks(answer.right()[2])))
    answer.close_connection = True


@must(RIGHT, at="parts", times=2)
def in_chunks_without_the_last(answer: Answer) -> None:
    """All bytes came; the chunk that ends them did not."""
    _chunked(answer, _chunks(answer.right()[2]))
    answer.close_connection = True


@must(RIGHT, at="parts", times=2)
def in_chunks_of_no_size(answer: Answer) -> None:
    """The size of the second is no number."""
    body = answer.right()[2]
    _chunked(answer, _chunks(body[:1000]) + b"xyz\r\n" + body[1000:])
    answer.close_connection = True


@must(5, at="rest", loses=True)
def in_another_way(answer: Answer) -> None:
    """Chunks of something else: Transfer-Encoding: gzip, chunked."""
    _chunked(answer, _chunks(gzip.compress(answer.right()[2])) + b"0\r\n\r\n", Transfer_Encoding="gzip, chunked")
    answer.close_connection = True


@must(RIGHT, plain=4)
def says_to_be_encoded(answer: Answer) -> None:
    """Content-Encoding: gzip for bytes that are not: a digest tells."""
    answer.reply_with(Content_Encoding="gzip")


@must(4, at="parts", loses=True)
def is_encoded(answer: Answer) -> None:
    """Compressed on the way, though identity was asked for."""
    packed = gzip.compress(answer.right()[2])
    _chunked(answer, _chunks(packed) + b"0\r\n\r\n", Content_Encoding="gzip")


# versions ------------------------------------------------------------------------------------------------------------


@must(RIGHT, at="later", times=2)
@must(5, at="rest", loses=True)
def another_etag(answer: Answer) -> None:
    """Of another server behind the same address: its bytes are never joined, though they are the same."""
    answer.reply_with(ETag='"another"', Last_Modified=None)


@must(RIGHT, loses=True, plain=5)
def an_etag_for_each_answer(answer: Answer) -> None:
    """A cluster whose servers don't agree: nothing is joined, one answer brings it all."""
    answer.reply_with(ETag=f'"{answer.server.count("etag")}"', Last_Modified=None)


@must(4, loses=True)
def file_is_cut_on_the_server(answer: Answer) -> None:
    """All that it says fits the half that it has."""
    answer.server.content = CONTENT[: SIZE // 2 // 512 * 512]
    answer.reply(*answer.right())


@must(RIGHT)
def only_weak_etags(answer: Answer) -> None:
    """And a date."""
    answer.reply_with(ETag='W/"1"')


@must(RIGHT)
def no_validator(answer: Answer) -> None:
    """Neither ETag nor date."""
    answer.reply_with(ETag=None, Last_Modified=None)


@must(RIGHT, at="later", times=2, loses=True)
def validators_go_away(answer: Answer) -> None:
    """Some answers have neither ETag nor date."""
    answer.reply_with(ETag=None, Last_Modified=None)


def _replaced(content: bytes) -> Callable[[Answer], None]:
    def act(answer: Answer) -> None:
        answer.server.content, answer.server.version = content, 2
        answer.reply(*answer.right())

    return act


for _name, _content in (("changes", OTHER), ("shrinks", CONTENT[:-512])):
    _act = _replaced(_content)
    _act.__name__ = f"file_{_name}_midway"
    must(4, at="later", plain=NEW, loses=True)(_act)


# connections ---------------------------------------------------------------------------------------------------------


def _one_at_a_time(refuse: Callable[[Answer], None]) -> Callable[[Answer], None]:
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

    return act


for _name, _refuse in (
    ("403", _status(403)),
    ("503", _status(503)),
    ("reset", lambda answer: answer.reset()),
):
    _act = _one_at_a_time(_refuse)
    _act.__name__ = f"one_connection_then_{_name}"
    must(RIGHT, at="parts")(_act)


@must(RIGHT)
def drops_what_it_said_to_keep(answer: Answer) -> None:
    """keep-alive, and the connection ends with the answer."""
    answer.reply_with(Connection="keep-alive")
    answer.close_connection = True
