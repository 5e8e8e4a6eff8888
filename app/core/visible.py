"""Text from prompts and answers, so that everything in it can be seen.

Owns which characters are shown by a picture or by their number: controls, and those that turn the
direction of a text or take no room, with which a line can be made to read otherwise than it is.
Pure. Line feeds and tabs stay; so do the joiners that scripts and emoji need.
"""

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES = 0x2400
_DELETE = 0x7F
_LAST_CONTROL = 0x1F


def visible(text: str) -> str:
    r"""Return the text with a picture or a number for each character that cannot be seen.

    >>> visible("a\x00b\x1b[2J\x7f\r\n\tc")
    'a␀b␛[2J␡␍\n\tc'
    >>> visible("user\u202etxt.exe"), visible("\ud800")
    ('user⟨U+202E⟩txt.exe', '⟨U+D800⟩')
    """
    return _HIDDEN.sub(lambda found: _shown(ord(found[0])), text)


def visible_line(text: str) -> str:
    r"""Return the same on one line.

    >>> visible_line("a\nb\tc")
    'a␊b␉c'
    """
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def _shown(code: int) -> str:
    if code <= _LAST_CONTROL:
        return chr(_PICTURES + code)
    return "\u2421" if code == _DELETE else f"⟨U+{code:04X}⟩"
