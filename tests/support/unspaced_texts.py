"""Random texts of scripts without blanks between words, and runs of their letters."""

from __future__ import annotations

from hypothesis import strategies as st

SCRIPTS = {
    "Han": "投标书密码本々〇\U00020bb7\U0002f800\U00030000",
    "kana": "スキーすきか\u3099ｽｷｰﾊﾟ",
    "Hangul": "한국어를ㄱㄴ\u1112\u1161\u11abﾡ",
    "Thai": "ชื่อที่๑๒กำ",
    "Khmer": "ខ្មែរភាសា១២",
    "Lao": "ພາສາລາວໜໝ໑",
    "Myanmar": "မြန်မာစာ၁၂ꩮ",
}
_MARKS = "\u0301\u3099\ufe00\U000e0100"
_BETWEEN = "abWİK19é _-・。฿\u200b\u00ad\U0001f600"


def _runs_of(letters: str) -> st.SearchStrategy[str]:
    return st.builds(str.__add__, st.sampled_from(letters), st.text(letters + _MARKS, max_size=4))


RUNS = st.one_of(*map(_runs_of, SCRIPTS.values()), _runs_of("".join(SCRIPTS.values())))
TEXTS = st.one_of(
    *(st.text(letters + _MARKS[:2] + "a ", max_size=12) for letters in SCRIPTS.values()),
    st.text("".join(SCRIPTS.values()) + _MARKS + _BETWEEN, max_size=16),
)
