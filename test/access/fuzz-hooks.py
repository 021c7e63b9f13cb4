"""What schemathesis must know of the media types of this API: they are texts, which it sends as they are."""

import schemathesis


@schemathesis.serializer("application/x-ndjson", "application/ndjson", "application/jsonl", "application/sql")
class TextSerializer:
    def serialize(self, ctx, value):
        return value.encode("utf-8", "replace") if isinstance(value, str) else str(value).encode()
