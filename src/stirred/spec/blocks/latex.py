"""LaTeX of a symbol: blocks are named in Unicode once, and typeset from that name."""

from __future__ import annotations

import re

_SIGNS = {
    "α": r"\alpha",
    "δ": r"\delta",
    "ε": r"\varepsilon",
    "λ": r"\lambda",
    "μ": r"\mu",
    "ρ": r"\rho",
    "χ": r"\chi",
    "²": "^2",
    "·": r"\cdot",
    "∞": r"\infty",
    "≥": r"\ge ",
    "∘": r" \circ ",
    "⊓": r"\sqcap",
    "𝐜": r"\mathbf{c}",
    "𝒟": r"\mathscr{D}",
}
_OPERAND = r"\{[^{}]*\}|\([^()]*\)|[^\s_^|∘⊓{}(),]+(?:\([^()]*\))?"
_PIECE = re.compile(rf"([_^|])({_OPERAND})((?:_(?:{_OPERAND}))*)|([A-Za-z]{{2,}})")
_WORD = re.compile(r"(?<![\w.])[A-Za-z]+(?:-[A-Za-z]+)*")


def latex(symbol: str) -> str:
    r"""The symbol in LaTeX: ``_`` and ``^`` take what follows, ``|`` restricts, words are upright.

    Examples
    --------
    >>> print(latex("D_Mult^(δ=1e-10)"), latex("d_HamS^hh"), latex("𝒟_c_Swap"))
    D_{\mathrm{Mult}}^{\delta=1e-10} d_{\mathrm{HamS}}^{\mathrm{hh}} \mathscr{D}_{\mathbf{c}_{\mathrm{Swap}}}
    """
    text = _PIECE.sub(_typeset, symbol.replace("𝒟_c", "𝒟_𝐜"))
    return "".join(_SIGNS.get(sign, sign) for sign in text)


def _typeset(piece: re.Match[str]) -> str:
    mark, operand, nested, name = piece.groups()
    if name:
        return rf"\mathrm{{{name}}}"
    inner = operand[1:-1] if operand[0] in "{(" else operand
    upright = _WORD.sub(lambda word: rf"\mathrm{{{word[0]}}}", inner)
    return f"{mark.replace('|', '|_')}{{{upright}{_PIECE.sub(_typeset, nested)}}}"
