"""The museum: known bugs as broken mechanisms, their correct twins, and the audits that tell them apart.

``collected`` lists the exhibits; ``self_test`` audits them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.museum.collection import collected
    from stirred.museum.examination import self_test
    from stirred.museum.exhibit import Exhibit
else:
    __getattr__, __dir__, __all__ = door(__name__)
