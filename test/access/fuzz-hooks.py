"""What schemathesis must know of the media types of this API: they are texts, which it sends as they are."""

import schemathesis


@schemathesis.serializer("application/x-ndjson", "application/ndjson", "application/jsonl", "application/sql")
def as_text(ctx, value):
    return str(value).encode("utf-8", "replace")


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """What is followed has no end."""
    if case.query and "follow" in case.query:
        case.query["follow"] = "false"
