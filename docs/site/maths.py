"""Formulas of pages as MathML, which browsers show without a script.

Pages write them as GitHub reads them: $`...`$ in a line, fences named math for those on their own.
"""

from __future__ import annotations

import re

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
INLINE = re.compile(r"\$`([^`\n]+)`\$")


def rendered(markdown: str) -> str:
    """Return a page with its formulas as MathML; other fences stay as they are."""
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts.append(INLINE.sub(_inline, markdown[end : fence.start()]))
        parts.append(_block(fence[2]) if fence[1] == "math" else fence[0])
        end = fence.end()
    return "".join([*parts, INLINE.sub(_inline, markdown[end:])])


def _inline(found: re.Match[str]) -> str:
    return f"<span>{_mathml(found[1], 'inline')}</span>"  # a line may begin with it


def _block(formula: str) -> str:
    return f'<div class="formula">{_mathml(formula.strip(), "block")}</div>'


def _mathml(formula: str, display: str) -> str:
    from latex2mathml.converter import convert  # of the extra docs, which tests do without

    return str(convert(formula, display=display))
