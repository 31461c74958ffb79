"""Session: HTTP requests that send secrets only to their home,
the one origin that the user named.
"""

from __future__ import annotations

import base64
import http.client
import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from http.cookiejar import Cookie, DefaultCookiePolicy
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth

from imagenet_prep.errors import AccessError
from imagenet_prep.fetch.addresses import (
    home_of,
    host_of,
    origin,
    redirect_target,
    refused_redirect,
)
from imagenet_prep.fetch.failures import AUTHORITIES, Proxy, proxy_of, raise_for
from imagenet_prep.fetch.patience import CutError

http.client._MAXHEADERS = 1000  # type: ignore[attr-defined]  # 100 by default: servers behind others send more
_MOST_HINTS = 100
_OFFERS = re.compile(rb"^proxy-authenticate: *([\w-]+)", re.IGNORECASE | re.MULTILINE)


class _FinalResponse(http.client.HTTPResponse):
    """An answer without those before it that only inform (RFC 9110, section 15.2), all of which
    http.client lacks.

    The reason of status 407 holds the schemes that a proxy offers: the exception for CONNECT has no
    other place.
    """

    _hints = 0

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        if status == 407:
            schemes = _OFFERS.findall(self.fp.peek())
            if schemes:
                offers = b", ".join(schemes).decode()
                reason = f"offers {offers}"
        elif 101 < status < 200:
            self._hints += 1
            if self._hints > _MOST_HINTS:
                raise http.client.HTTPException("too many informational answers")
            status = http.client.CONTINUE
        return version, status, reason


urllib3.connection.HTTPConnection.response_class = _FinalResponse

Enter = Callable[[requests.Response, str, bool], None]

_CONNECT = 20  # seconds to establish a connection
_MAX_REDIRECTS = 10
_MAX_CONNECTIONS = 64
_MAX_SIGN_INS = 3  # per request: other threads may use up a sign-in first
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_HEADERS = {"User-Agent": "imagenet-prep", "Accept": "*/*", "Accept-Encoding": "identity"}


class Session:
    """Requests to one server, its home, and to the servers it redirects to.

    Authorization and cookies go to the home origin (scheme, host and port) only. Requests are tried
    once: the caller retries after a CutError.

    Args:
        base_url: the home address.
        stall: seconds of silence after which a connection is cut.
        note: called with the text of each wait, by any thread.

    Raises:
        UsageError: ``base_url`` isn't an http(s) URL, or has a password in it.
    """

    def __init__(
        self, base_url: str, stall: float, note: Callable[[str], object] = lambda text: None
    ) -> None:
        self.note = note
        self.noted: set[tuple[str, bool]] = set()  # kinds of interruptions
        self.home = home_of(base_url)
        self._timeout = (min(stall, _CONNECT), stall)
        self._at_home = _plain_session()
        self._abroad = _plain_session()
        self._abroad.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self.authorization = ""  # the header, sent home only
        self._digest: HTTPDigestAuth | None = None  # signs requests to home
        self.sends_data_as_pages = False  # with a wrong type
        self._enter: Enter | None = None
        self._sign_ins = 0  # how many there were
        self._last_useful_sign_in = 0  # the number of the last one that got a file
        self.has_worked = False  # whether any did
        self._was_answered = False  # whether any request was
        self._moved: dict[str, str] = {}  # redirect targets of home addresses, while they work
        self._sign_in_lock = threading.Lock()
        logging.getLogger("urllib3.connectionpool").addFilter(_hide_queries)

    @property
    def has_signed_in(self) -> bool:
        """Whether it has sent credentials."""
        return self._sign_ins > 0

    def use_cookies(self, cookies: Iterable[Cookie]) -> None:
        """Send these cookies home, if they belong to that host."""
        for cookie in cookies:
            self._at_home.cookies.set_cookie(cookie)

    def sign_with(self, username: str, password: str, schemes: Collection[str]) -> None:
        """Sign requests to home by one of these schemes, basic or digest (RFC 7617, RFC 7616)."""
        if "basic" in schemes:
            self.authorization = basic(username, password)
        else:
            self._digest = _Digest(username, password)

    def enter_with(self, enter: Enter) -> None:
        """Call ``enter`` with an answer of home in place of a file, its URL, and whether the last
        sign-in is in vain.

        It signs in, or raises AccessError, or CutError for an answer that may come from too many
        connections.
        """
        self._enter = enter

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> requests.Response:
        """The answer to a GET with redirects followed, its body unread.

        If home refuses a file, or sends a page, sign in. However many threads notice, that happens
        once, and again only after a file arrived.

        Raises:
            AccessError: signing in failed.
            CutError: the server could not be reached; a later attempt may succeed.
            NetworkError: an unsafe redirect, or a certificate that can't be trusted.
        """
        for _ in range(_MAX_SIGN_INS):
            sign_in = self._sign_ins  # the one that this request relies on
            response = self._ask(url, headers)
            if not self._is_closed(response):
                self._last_useful_sign_in = max(self._last_useful_sign_in, sign_in)
                self.has_worked = True
                return response
            if self._enter is None or origin(response.url) != self.home:
                return response
            with response, self._sign_in_lock:
                # no other thread signed in since, or found that pages are data
                if sign_in == self._sign_ins and self._is_closed(response):
                    was_in_vain = self._last_useful_sign_in < sign_in
                    knew_of_pages = self.sends_data_as_pages
                    self._sign_in(self._enter, response, url, was_in_vain)
                    if self.sends_data_as_pages == knew_of_pages:  # otherwise it sent nothing
                        self._sign_ins += 1
        return self._ask(url, headers)

    def _sign_in(self, enter: Enter, response: requests.Response, url: str, in_vain: bool) -> None:
        """Call ``enter``; its refusal may pass if files arrived before."""
        try:
            enter(response, url, in_vain)
        except AccessError as error:
            if not self.has_worked or response.status_code == 401:
                raise
            raise CutError(error.what, lasting=error) from None

    def _is_closed(self, response: requests.Response) -> bool:
        """Whether an answer asks to sign in: a refusal, or a page in place of a file."""
        if response.status_code in (401, 403):
            return True
        if response.status_code not in (200, 206) or self.sends_data_as_pages:
            return False
        return is_page_type(response)

    def _ask(self, url: str, headers: Mapping[str, str] | None) -> requests.Response:
        """The answer to a GET, even if the server refuses this session.

        A host that home redirected to is asked directly until it stops serving the file: some sites
        sign an address per request, and count them.
        """
        address = self._moved.get(url)
        if address:
            response = self._ask_directly(url, address, headers)
            is_past_end_or_failing = response.status_code >= 416 and not is_page_type(response)
            if _is_file(response) or is_past_end_or_failing:
                return response
            response.close()
        return self._send("GET", url, headers)

    def _ask_directly(
        self, url: str, address: str, headers: Mapping[str, str] | None
    ) -> requests.Response:
        """The answer of the address that home redirected to; unless it is a file, it is forgotten.

        ``url`` is the one at home.
        """
        is_file = False
        try:
            response = self._request("GET", address, headers, None)
            is_file = _is_file(response)
        finally:
            if not is_file:
                self._moved.pop(url, None)
        return response

    def post(self, url: str, fields: Mapping[str, str]) -> requests.Response:
        """The answer to a form; redirects are followed with GET, so no field leaves home.
        Raises as get.
        """
        return self._send("POST", url, None, fields)

    def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        fields: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """The answer to a request, redirects followed."""
        current = source = url
        for _ in range(_MAX_REDIRECTS):
            response = self._request(method, current, headers, fields)
            if not _is_redirect(response):
                is_abroad = origin(current) != origin(url)
                if method == "GET" and is_abroad and _is_file(response):
                    self._moved[url] = current
                return response
            response.close()
            if fields is not None and response.status_code in (307, 308):
                raise refused_redirect(current, "it would send the sign-in form to another address")
            method, fields = "GET", None
            source, current = current, redirect_target(url, current, response.headers["Location"])
        raise refused_redirect(source, f"it is redirect number {_MAX_REDIRECTS} in a row")

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        fields: Mapping[str, str] | None,
    ) -> requests.Response:
        """The answer to one request, which carries the secrets if it goes home."""
        no_proxy = _no_proxy(url)
        find_proxy = partial(proxy_of, url, no_proxy.get("no_proxy"))
        all_headers = dict(headers or {})
        client = self._abroad
        auth: Callable[[requests.PreparedRequest], requests.PreparedRequest] = _no_auth
        if origin(url) == self.home:
            client = self._at_home
            auth = self._digest or _no_auth
            if self.authorization:
                all_headers["Authorization"] = self.authorization
        ask = partial(
            client.request,
            method,
            url,
            headers=all_headers,
            data=fields,
            auth=auth,
            allow_redirects=False,
            stream=True,
            timeout=self._timeout,
            proxies=no_proxy,
        )
        try:
            response = _within(sum(self._timeout), ask)
        except (
            requests.RequestException,
            urllib3.exceptions.HTTPError,
            OSError,
            ValueError,
        ) as error:
            raise_for(error, host_of(url), find_proxy(), was_answered=self._was_answered)
        self._was_answered = True
        if response.status_code == 407:
            proxy = find_proxy()
            if proxy:
                response.close()
                _, _, schemes = (response.reason or "").partition("offers ")
                proxy.refuse_password(schemes, host_of(url))
        return response


def _within(seconds: float, ask: Callable[[], requests.Response]) -> requests.Response:
    """Call ``ask`` in its own thread: slowly arriving headers defeat every socket timeout.

    Raises:
        TimeoutError: it runs longer than ``seconds``.
    """
    answer: Future[requests.Response] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:  # noqa: BLE001 -- it crosses to the thread that asked
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return answer.result(seconds)
    except FutureTimeout:
        raise TimeoutError("the headers took too long") from None


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add nothing; without an auth object, requests would look up each new host in netrc."""
    return request


class _OneRequest(requests.Session):
    """Ignores redirects: requests would read the whole body first, and fail on a bad address."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Nowhere."""


class _Adapter(HTTPAdapter):
    """Sends a proxy's user name and password as UTF-8, like curl and browsers;
    requests can send Latin-1 only.
    """

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """The headers for a proxy."""
        username, password = requests.utils.get_auth_from_url(proxy)
        if not username:
            return {}
        return {"Proxy-Authorization": basic(username, password)}


class _Digest(HTTPDigestAuth):
    """Sends a user name as UTF-8; requests can send Latin-1 only."""

    def build_digest_header(self, method: str, url: str) -> str | None:
        """The Authorization header, as http.client encodes it."""
        header: str | None = super().build_digest_header(method, url)  # type: ignore[no-untyped-call]
        return header.encode().decode("latin-1") if header else None


def basic(username: str, password: str) -> str:
    """The header's value for these credentials (RFC 7617)."""
    credentials = f"{username}:{password}".encode()
    return "Basic " + base64.b64encode(credentials).decode()


def _plain_session() -> requests.Session:
    session = _OneRequest()
    authorities = os.environ.get(AUTHORITIES[-1])
    if authorities:
        session.verify = authorities  # requests itself looks at the others, which count first
    session.headers.clear()
    session.headers.update(_HEADERS)
    for prefix in ("http://", "https://"):
        session.mount(prefix, _Adapter(pool_maxsize=_MAX_CONNECTIONS, max_retries=0))
    return session


def _no_proxy(url: str) -> dict[str, str]:
    """The proxies argument that keeps requests for this machine's loopback away from a proxy."""
    _, host, _ = origin(url)
    if host in ("localhost", "::1") or host.startswith("127."):
        return {"no_proxy": host}
    return {}


def proxy_between(url: str) -> Proxy | None:
    """The proxy that could answer in place of the server: one without a tunnel."""
    if urlsplit(url).scheme != "http":
        return None
    return proxy_of(url, _no_proxy(url).get("no_proxy"))


def _is_redirect(response: requests.Response) -> bool:
    """Whether an answer names another address, by status 300 too."""
    if response.status_code == 300:
        return "Location" in response.headers
    return response.is_redirect


def _is_file(response: requests.Response) -> bool:
    return response.status_code in (200, 206) and not is_page_type(response)


def is_page_type(response: requests.Response) -> bool:
    """Whether the content type of a response is a web page."""
    content_type = response.headers.get("Content-Type", "")
    media_type, _, _ = content_type.partition(";")
    return media_type.strip().lower() in _PAGE_TYPES


def _hide_queries(record: logging.LogRecord) -> bool:
    """Hide queries in log records: urllib3 logs each request, and its query may hold a secret."""
    if isinstance(record.args, tuple):
        record.args = tuple(map(_without_query, record.args))
    return True


def _without_query(argument: object) -> object:
    if not isinstance(argument, str):
        return argument
    return re.sub(r"\?[^\s\"]*", "?...", argument)
