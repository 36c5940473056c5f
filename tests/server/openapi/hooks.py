"""Hooks of schemathesis for `check_with_schemathesis.py`."""

import schemathesis


@schemathesis.hook
def map_query(context, query):
    """Follows no session: such an answer has no end."""
    if isinstance(query, dict):
        query.pop("follow", None)
    return query
