"""Clients of the Iceberg catalog, as tests ask them: one JSON document a line in, one out.

    {"client": "pyiceberg" | "duckdb", "table": "db.name", "sql": "... FROM t ...", "snapshot": 12, "where": "..."}

Both answer the same SQL, in DuckDB's dialect, over a table `t`: PyIceberg plans and reads the rows (`where` is a filter of
its own, by which it leaves out files), DuckDB's extension does all by itself. Further asks: `list`, `files`, `write`; and
`metadata`, a metadata file whose table DuckDB reads instead.
"""

import json
import os
import sys
import sysconfig

import duckdb
from pyiceberg.catalog.rest import RestCatalog

uri, token = sys.argv[1], sys.argv[2]
settings = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}

pyiceberg = None
lake = None


def catalog():
    global pyiceberg
    if pyiceberg is None:
        pyiceberg = RestCatalog("engine", uri=uri + "/iceberg", token=token, **settings.get("pyiceberg", {}))
    return pyiceberg


def duck():
    """A DuckDB with the catalog attached as `lake`."""
    global lake
    if lake is not None:
        return lake
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    folder = os.path.join(sysconfig.get_paths()["purelib"])
    for name in ["httpfs", "avro", "iceberg"]:
        file = f"{folder}/duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        connection.execute(f"LOAD '{file}'")
    for statement in settings.get("duckdb", []):
        connection.execute(statement)
    connection.execute("CREATE SECRET engine (TYPE iceberg, TOKEN '%s')" % token)
    mode = settings.get("delegation", "none")
    connection.execute(
        f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{uri}/iceberg', SECRET engine, ACCESS_DELEGATION_MODE '{mode}')"
    )
    lake = connection
    return lake


def rows_of(relation):
    return [[value if isinstance(value, (int, float, str, bool, type(None))) else str(value) for value in row]
            for row in relation.fetchall()]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def answer(ask):
    client = ask["client"]
    if ask.get("list"):
        if client == "pyiceberg":
            return [[".".join(name) for name in catalog().list_tables(ns)] for ns in catalog().list_namespaces()]
        return rows_of(duck().execute("SELECT database, schema, name FROM (SHOW ALL TABLES) ORDER BY ALL"))
    database, name = ask["table"].split(".", 1)
    if client == "pyiceberg":
        table = catalog().load_table((database, name))
        if ask.get("write"):
            table.append(table.scan(limit=1).to_arrow())
            return []
        scan = table.scan(row_filter=ask.get("where", "true"), snapshot_id=ask.get("snapshot"))
        if ask.get("files"):
            return [task.file.file_path for task in scan.plan_files()]
        if ask.get("snapshots"):
            return [[s.snapshot_id, s.summary.operation.value, s.summary.additional_properties] for s in table.snapshots()]
        t = scan.to_arrow()
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", t)
        return rows_of(connection.execute(ask["sql"]))
    source = f"lake.{quoted(database)}.{quoted(name)}"
    if ask.get("metadata"):
        source = "iceberg_scan('%s')" % ask["metadata"].replace("'", "''")
    if ask.get("write"):
        duck().execute(f"INSERT INTO {source} SELECT * FROM {source} LIMIT 1")
        return []
    at = f" AT (VERSION => {ask['snapshot']})" if ask.get("snapshot") is not None else ""
    duck().execute("SET TimeZone = 'UTC'")
    return rows_of(duck().execute(f"WITH t AS (SELECT * FROM {source}{at}) {ask['sql']}"))


for line in sys.stdin:
    try:
        said = {"rows": answer(json.loads(line))}
    except Exception as error:  # What a client raises is what the test wants to see.
        said = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(said), flush=True)
