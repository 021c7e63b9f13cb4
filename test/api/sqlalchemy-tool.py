"""Looks around an engine with SQLAlchemy, through Trino's dialect as it is, and prints what it was told as JSON.

The argument is the database whose tables need no other name.
"""

import datetime
import json
import os
import sys
import warnings

import engine_dbapi
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select
from sqlalchemy.exc import NoSuchTableError

# The dialect knows no TIMESTAMP_NS and no FLOAT[2]: it says so, and reflects them without a type.
warnings.filterwarnings("ignore", message="Did not recognize type")


def connect():
    return engine_dbapi.connect(os.environ["ENGINE_TEST_URL"], os.environ["ENGINE_TEST_TOKEN"], database=sys.argv[1])


def introspection(engine):
    seen = inspect(engine)
    schemas = seen.get_schema_names()
    tables = {schema: seen.get_table_names(schema=schema) for schema in schemas}
    return {
        "tables": tables,
        "own": [seen.get_table_names(), seen.get_view_names()],
        "columns": {
            f"{schema}.{table}": [[c["name"], str(c["type"]), c["nullable"]] for c in seen.get_columns(table, schema)]
            for schema, names in tables.items()
            for table in names
        },
        "has": {name: seen.has_table("orders", schema=name) for name in ("default", "sales", "secret", "absent")},
    }


def reflected(connection, schema, name, **options):
    return Table(name, MetaData(), schema=schema, autoload_with=connection, **options)


def rows(connection, query):
    return [list(row) for row in connection.execute(query)]


def answers(connection):
    """Of queries over two databases that are built from what was reflected."""
    events = reflected(connection, "default", "events")
    orders = reflected(connection, "sales", "orders")
    odd = reflected(connection, "sales", "Odd-Names")
    catalogued = reflected(connection, "sales", "orders", trino_catalog="engine")
    joined = (
        select(events.c.label, events.c.ms, orders.c.body, orders.c.at)
        .join(orders, orders.c.label == events.c.label)
        .where(events.c.ms >= 10, events.c.at < datetime.datetime(2026, 2, 1), orders.c.body.in_(["first", "it's"]))
        .order_by(events.c.ms.desc())
        .limit(5)
        .offset(1)
    )
    grouped = select(events.c.label, func.count(), func.max(events.c.ms)).group_by(events.c.label).order_by("label")
    return {
        "joined": rows(connection, joined),
        # As text: JSON does not keep all digits for everybody.
        "grouped": [[label, count, str(most)] for label, count, most in connection.execute(grouped)],
        "odd": rows(connection, select(odd.c["Some Field"], odd.c.select)),
        "catalogued": rows(connection, select(func.count()).select_from(catalogued)),
        "none": rows(connection, select(events).where(events.c.label == "'; DROP TABLE events; --")),
    }


def reflects(connection, schema, name):
    try:
        return reflected(connection, schema, name).columns.keys()
    except NoSuchTableError:
        return None


sql = create_engine("trino://", module=engine_dbapi, creator=connect)
told = introspection(sql)
with sql.connect() as session:
    if "default" in told["tables"]:
        told["answers"] = answers(session)
    told["reflects"] = {schema: reflects(session, schema, "orders") for schema in ("sales", "secret", "absent")}
print(json.dumps(told))
