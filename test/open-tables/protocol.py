"""Answers of a catalog as Iceberg's protocol has them: one JSON document a line in, one out.

    {"model": "LoadTableResult", "body": {...}}

The models are generated from the protocol's OpenAPI document. A body that is none of its model gives an error.
"""

import importlib
import json
import re
import sys

for line in sys.stdin:
    ask = json.loads(line)
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", ask["model"]).lower()
    try:
        model = getattr(importlib.import_module(f"apache_polaris.sdk.catalog.models.{module}"), ask["model"])
        model.from_dict(ask["body"])
        answer = {}
    except Exception as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer), flush=True)
