from __future__ import annotations

import base64
import hashlib
import re

from vega_image.serving.page import chat_page, page_of


def test_the_policy_allows_our_own_script_and_style_and_nothing_else() -> None:
    page = chat_page()
    policy = dict(page.headers)["Content-Security-Policy"]
    script = re.search(rb"<script>(.*?)</script>", page.body, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1]).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'; " in policy
    assert "unsafe" not in policy
    assert "connect-src 'self'" in policy


def test_the_page_names_no_other_place_and_writes_no_markup() -> None:
    body = chat_page().body.decode()
    assert not re.findall(r"https?:|//[a-z]+\.", body)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", body)
    assert not re.findall(r"\bstyle=|\bon[a-z]+=", body)
    assert "localStorage" not in body


def test_a_page_without_scripts_allows_none() -> None:
    assert "script-src 'none'" in dict(page_of(b"<p>x</p>").headers)["Content-Security-Policy"]
