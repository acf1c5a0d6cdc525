"""Whatever a page says about its encoding, what comes out can be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgsynth.web.charset import decode

FRENCH = "Une pile est une structure de données : le dernier élément ajouté est le premier à être retiré. Où ça ? " * 4
JAPANESE = "スタックは後入れ先出しのデータ構造である。要素の追加と削除は一方の端だけで行われる。" * 4
RUSSIAN = "Стек - это список элементов, организованных по принципу последним пришёл, первым вышел. " * 4


@pytest.mark.parametrize(
    ("text", "encoding", "declared"),
    [
        (FRENCH, "latin-1", "utf-8"),
        (FRENCH, "utf-8", "iso-8859-1"),
        (FRENCH, "cp1252", "no-such-charset"),
        (FRENCH, "utf-16-le", "utf-8"),
        (FRENCH, "utf-16-be", ""),
        (FRENCH, "utf-16", ""),
        (FRENCH, "utf-32", "latin-1"),
        (FRENCH, "utf-8-sig", "ascii"),
        (JAPANESE, "shift_jis", "shift_jis"),
        (JAPANESE, "shift_jis", "utf-8"),
        (JAPANESE, "euc_jp", ""),
        (JAPANESE, "iso2022_jp", "iso-2022-jp"),
        (RUSSIAN, "cp1251", "utf-8"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        *(
            (FRENCH, "latin-1", name)
            for name in ("zlib", "unicode_escape", "utf-7", "punycode", "idna", "hex", "x" * 60)
        ),
    ],
)
def test_wrong_declarations_still_give_readable_text(text: str, encoding: str, declared: str) -> None:
    kind = f"text/html; charset={declared}" if declared else "text/html"
    assert decode(text.encode(encoding), kind) == text


def test_a_meta_tag_counts_where_the_header_says_nothing() -> None:
    page = f'<html><head><meta http-equiv="content-type" content="text/html; charset=windows-1251"><p>{RUSSIAN}'
    assert RUSSIAN in decode(page.encode("cp1251"), "text/html")
    assert RUSSIAN in decode(page.encode("utf-8"), "text/html")


def test_one_broken_character_does_not_turn_the_page_into_another_encoding() -> None:
    body = FRENCH.encode() + b" caf\xc3"  # cut in the middle of a character
    assert decode(body, "text/html; charset=utf-8") == FRENCH + " caf\ufffd"


@given(
    st.binary(max_size=400),
    st.sampled_from(["", "utf-16", "shift_jis", "iso-2022-jp", "hz", "gb2312", "utf-32", "cp037"]),
)
def test_any_bytes_decode(body: bytes, declared: str) -> None:
    assert isinstance(decode(body, f"text/plain; charset={declared}"), str)
