"""Registers the files of a table of an engine's Iceberg catalog in a SQL catalog of PyIceberg's own, where they are.

    register.py URL DATABASE.TABLE FOLDER

Prints where the table and its metadata are, as JSON. What the catalog says of the files is what PyIceberg reads in their
footers; only their paths and the schema come from the server.
"""

import json
import os
import sys

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import parquet_file_to_data_file

url, name, folder = sys.argv[1:]
warehouse = os.path.join(folder, "warehouse")
os.makedirs(warehouse)

theirs = RestCatalog("engine", uri=url + "/iceberg", token="any").load_table(name)
paths = [task.file.file_path for task in theirs.scan().plan_files()]

own = SqlCatalog("own", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{warehouse}")
own.create_namespace(name.split(".")[0])
location = f"file://{warehouse}/{name.replace('.', '/')}"
table = own.create_table(name, schema=theirs.schema(), location=location, properties={"format-version": "2"})
if [field.field_id for field in table.schema().fields] != [field.field_id for field in theirs.schema().fields]:
    raise SystemExit("PyIceberg gives the columns other ids than the files have")
# `add_files` takes none that have field ids, although these are the right ones.
with table.transaction() as transaction:
    with transaction.update_snapshot().fast_append() as append:
        for path in paths:
            append.append_data_file(parquet_file_to_data_file(table.io, transaction.table_metadata, path))

# Spark's catalog of folders looks for a file of that name.
metadata = own.load_table(name).metadata_location.removeprefix("file://")
with open(metadata) as given, open(os.path.join(os.path.dirname(metadata), "v1.metadata.json"), "w") as taken:
    taken.write(given.read())
with open(os.path.join(os.path.dirname(metadata), "version-hint.text"), "w") as hint:
    hint.write("1")
print(json.dumps({"warehouse": warehouse, "location": location, "metadata": metadata, "files": len(paths)}))
