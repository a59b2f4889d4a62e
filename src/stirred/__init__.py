"""stirred: disclosure avoidance for censuses and surveys.

A guarantee is never a bare epsilon. It is a specification of five building blocks: domain,
multiverse (invariants), input premetric (protection unit), output premetric, budget.
The rooms: ``spec`` (those five blocks and their arithmetic), ``swap`` (permutation swapping), ``noise`` and
``data`` (what swapping needs), ``show`` (figures and pages) and ``cli``.
"""

__version__ = "0.1.0"
