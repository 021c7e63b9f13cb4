"""An engine that reads the tables of an Iceberg catalog, as tests ask it: one JSON document a line in, one out.

    engines.py spark | trino | clickhouse SETTINGS
    {"table": "db.name", "sql": "... FROM t ...", "snapshot": 12, "catalog": "lake", "write": true}

`sql` is in the engine's own dialect, over a table `t`: the one that is named, as of the snapshot where there is one. Further
asks: `run`, a statement as it is; `write`, which inserts a row of the table into it.
"""

import json
import os
import sys

engine, settings = sys.argv[1], json.loads(sys.argv[2])


def backquoted(name):
    return "`" + name.replace("`", "``") + "`"


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Spark:
    """`settings`: Spark's own."""

    def __init__(self):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").appName("test")
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def run(self, sql):
        return [list(row) for row in self.session.sql(sql).collect()]

    def table(self, ask):
        database, name = ask["table"].split(".", 1)
        return f"{ask['catalog']}.{backquoted(database)}.{backquoted(name)}"

    def version(self, snapshot):
        return f" FOR VERSION AS OF {snapshot}"


class Trino:
    """`settings`: the port."""

    def __init__(self):
        import trino

        self.connection = trino.dbapi.connect(host="127.0.0.1", port=settings["port"], user="test", timezone="UTC")

    def run(self, sql):
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return [list(row) for row in cursor.fetchall()]

    def table(self, ask):
        database, name = ask["table"].split(".", 1)
        return f"{ask['catalog']}.{quoted(database)}.{quoted(name)}"

    def version(self, snapshot):
        return f" FOR VERSION AS OF BIGINT '{snapshot}'"


class ClickHouse:
    """`settings`: statements to begin with, and a folder for what it keeps."""

    def __init__(self):
        from chdb import session

        self.session = session.Session(settings["folder"])
        for statement in settings["statements"]:
            self.session.query(statement)

    def run(self, sql):
        # Rows come as text, one a line.
        said = str(self.session.query(sql, "JSONCompactEachRow"))
        return [json.loads(line) for line in said.splitlines()]

    def table(self, ask):
        return f"{ask['catalog']}.{backquoted(ask['table'])}"

    def version(self, snapshot):
        return f" SETTINGS iceberg_snapshot_id = {snapshot}"


def answer(client, ask):
    if "run" in ask:
        return client.run(ask["run"])
    source = client.table(ask)
    if ask.get("write"):
        return client.run(f"INSERT INTO {source} SELECT * FROM {source} LIMIT 1")
    version = client.version(ask["snapshot"]) if ask.get("snapshot") is not None else ""
    return client.run(f"WITH t AS (SELECT * FROM {source}{version}) {ask['sql']}")


# What an engine prints of itself is not an answer.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

client = {"spark": Spark, "trino": Trino, "clickhouse": ClickHouse}[engine]()
for line in sys.stdin:
    try:
        said = {"rows": answer(client, json.loads(line))}
    except Exception as error:  # What an engine raises is what the test wants to see.
        said = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(said, default=str), file=answers, flush=True)
