"""Prints the rows of extents as NDJSON, a line each, by `pyarrow` or `polars`: `read-extents.py LIBRARY FILE...`.

Times are nanoseconds since 1970, 64-bit numbers are text. The last line is what the files say of themselves. Where a
Parquet file has nanoseconds apart, they are what is printed.
"""

import json
import sys

import polars
import pyarrow
import pyarrow.ipc
import pyarrow.parquet


NANOSECONDS = "\x1fns"


def by_pyarrow(path):
    if path.endswith(".parquet"):
        table = pyarrow.parquet.read_table(path)
    else:
        table = pyarrow.ipc.open_file(path).read_all()
    for index, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            nanoseconds = table.column(index).cast(pyarrow.timestamp("ns", field.type.tz))
            table = table.set_column(index, field.name, nanoseconds.cast("int64"))
    return [exact(row) for row in table.to_pylist()]


def exact(row):
    """The row with nanoseconds in the place of microseconds."""
    finer = {name.removesuffix(NANOSECONDS): value for name, value in row.items() if name.endswith(NANOSECONDS)}
    return {name: finer.get(name, value) for name, value in row.items() if not name.endswith(NANOSECONDS)}


def by_polars(path):
    frame = polars.read_parquet(path) if path.endswith(".parquet") else polars.read_ipc(path)
    times = [name for name, kind in frame.schema.items() if isinstance(kind, polars.Datetime)]
    frame = frame.with_columns(polars.col(times).dt.cast_time_unit("ns"))
    # `dynamic` is marked as JSON in Parquet, which Polars takes for bytes.
    texts = [name for name, kind in frame.schema.items() if kind == polars.Binary]
    frame = frame.with_columns(polars.col(times).to_physical(), polars.col(texts).cast(polars.String))
    return [exact(row) for row in frame.to_dicts()]


def described(path):
    if not path.endswith(".parquet"):
        schema = pyarrow.ipc.open_file(path).schema
        types = {field.name: field.metadata[b"engine.type"].decode() for field in schema}
        return {
            "format_version": schema.metadata[b"engine.format_version"].decode(),
            "types": types,
            "nullable": all(field.nullable for field in schema),
            "dictionaries": any(pyarrow.types.is_dictionary(field.type) for field in schema),
        }
    file = pyarrow.parquet.ParquetFile(path)
    ids = [int((field.metadata or {}).get(b"PARQUET:field_id", -1)) for field in file.schema_arrow]
    group = file.metadata.row_group(0)
    codecs = {group.column(n).compression for n in range(group.num_columns)}
    return {
        "ids": ids,
        "codecs": sorted(codecs),
        "names": file.schema_arrow.names,
        "times": {field.name: str(field.type) for field in file.schema_arrow if pyarrow.types.is_timestamp(field.type)},
        "nullable": all(field.nullable for field in file.schema_arrow),
    }


library, *paths = sys.argv[1:]
read = {"pyarrow": by_pyarrow, "polars": by_polars}[library]
for path in paths:
    for row in read(path):
        print(json.dumps({name: str(value) if name in ("at", "t", "l") and value is not None else value
                          for name, value in row.items()}))
print(json.dumps([described(path) for path in paths]))
