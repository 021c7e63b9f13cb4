"""A small DB-API 2.0 module (PEP 249) over `POST /v1/query`: what SQLAlchemy, pandas and BI tools need to send queries.

Values travel as parameters, never in the text. There are no transactions: each query reads the newest snapshot.
"""

import csv
import datetime
import decimal
import json
import urllib.error
import urllib.request

apilevel = "2.0"
threadsafety = 1  # Threads share the module, and have connections of their own.
paramstyle = "qmark"


class Warning(Exception): ...
class Error(Exception): ...
class InterfaceError(Error): ...
class DatabaseError(Error): ...
class DataError(DatabaseError): ...
class OperationalError(DatabaseError): ...
class IntegrityError(DatabaseError): ...
class InternalError(DatabaseError): ...
class ProgrammingError(DatabaseError): ...
class NotSupportedError(DatabaseError): ...


def connect(url, token, database="default"):
    return Connection(url, token, database)


class Connection:
    # Trino's dialect reads these. Without a catalog it does not ask for comments on tables, which `system.metadata` of
    # Trino would have.
    catalog = None
    transaction = None

    def __init__(self, url, token, database):
        self._address = f"{url}/v1/query"
        self._headers = {"Authorization": f"Bearer {token}", "X-Database": database}
        self.schema = database

    def cursor(self):
        return Cursor(self)

    def commit(self): ...
    def rollback(self): ...
    def close(self): ...

    def post(self, query, parameters, accept):
        body = json.dumps({"query": query, "params": [sent(value) for value in parameters]}).encode()
        headers = {**self._headers, "Content-Type": "application/json", "Accept": accept}
        try:
            with urllib.request.urlopen(urllib.request.Request(self._address, body, headers)) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as failure:
            error = json.load(failure)["error"]
            kind = ProgrammingError if failure.code < 500 else OperationalError
            raise kind(f"{error['code']}: {error['message']}") from None
        except urllib.error.URLError as failure:
            raise OperationalError(str(failure.reason)) from failure


class Cursor:
    arraysize = 1
    description = None
    rowcount = -1

    def __init__(self, connection):
        self.connection = connection
        self._rows = []

    def execute(self, query, parameters=()):
        rows = json.loads(self.connection.post(query, parameters, "application/json"), parse_float=decimal.Decimal)
        # An answer without rows does not name its columns; as CSV it has a header.
        names = list(rows[0]) if rows else header(self.connection.post(query, parameters, "text/csv"))
        self.description = [(name, None, None, None, None, None, None) for name in names]
        self.rowcount = len(rows)
        self._rows = [tuple(row.values()) for row in rows]
        return self

    def fetchone(self):
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size=None):
        taken = self._rows[: size or self.arraysize]
        del self._rows[: len(taken)]
        return taken

    def fetchall(self):
        return self.fetchmany(len(self._rows) or 1)

    def executemany(self, query, parameter_rows):
        raise NotSupportedError("queries only read")

    def close(self): ...
    def setinputsizes(self, sizes): ...
    def setoutputsize(self, size, column=None): ...


def sent(value):
    """A time is sent as text, which takes the type of what it is compared with."""
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return float(value) if isinstance(value, decimal.Decimal) else value


def header(csv_text):
    return next(csv.reader([csv_text]), [])
