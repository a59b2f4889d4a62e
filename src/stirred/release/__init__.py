"""From a plan to a release: what must be settled first, what is published, and what is said about it.

``checklist`` is the gate before a release, ``table`` the release table, ``registry`` the record for the
public registry of deployments, ``governance`` what no budget measures: people, projects, settings, law.
"""
