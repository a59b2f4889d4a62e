"""What a release says of itself: record, meaning, editions, table, checklist, registry, governance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.report.checklist import Checklist, Override, Passage, gate, starter_yaml
    from stirred.report.editions import report_html, report_json, report_markdown
    from stirred.report.governance import Governance
    from stirred.report.markdown import audit_page
    from stirred.report.record import (
        Account,
        Column,
        ExactStatistic,
        Expected,
        Facts,
        Figure,
        Grid,
        Identity,
        InternalRecord,
        Published,
        PublishedFile,
        PublishedTable,
        ReleaseRecord,
        Section,
    )
    from stirred.report.registry import About, lint, record_of
    from stirred.report.table import ReleaseRow, ReleaseTable
else:
    __getattr__, __dir__, __all__ = door(__name__)
