"""Fetches the answer of a query in one of several ways: a JSON object on each line of standard input, figures on each out."""

import http.client
import json
import sys
import time
import urllib.parse

import pyarrow
import pyarrow.flight as flight


def over_flight(client, sql):
    return client.do_get(flight.Ticket(json.dumps({"query": sql}))).read_all()


def over_http(connection, sql, accept):
    connection.request("POST", "/v1/query", sql, {"Accept": accept})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(answer.read().decode())
    return answer


def ndjson(connection, sql):
    """Counts lines; what a client makes of them is its own affair."""
    answer = over_http(connection, sql, "application/x-ndjson")
    rows = size = 0
    while piece := answer.read(1024 * 1024):
        rows += piece.count(b"\n")
        size += len(piece)
    return rows, size


def arrow(connection, sql):
    answer = over_http(connection, sql, "application/vnd.apache.arrow.stream")
    table = pyarrow.ipc.open_stream(answer).read_all()
    answer.read()
    return table


class Memory(flight.FlightServerBase):
    """pyarrow's own server of a table that it has in memory."""

    def __init__(self, table):
        super().__init__("grpc://127.0.0.1:0")
        self.table = table

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self.table)


def serve(address, sql):
    server = Memory(over_flight(flight.connect(address), sql))
    print(json.dumps({"port": server.port}), flush=True)
    server.serve()


def measure(url, address, other):
    host = urllib.parse.urlparse(url)
    connection = http.client.HTTPConnection(host.hostname, host.port)
    clients = {"flight": flight.connect(address), "pyarrow": flight.connect(other)}
    for line in sys.stdin:
        ask = json.loads(line)
        side, sql = ask["side"], ask["sql"]
        started = time.perf_counter()
        if side == "ndjson":
            rows, size = ndjson(connection, sql)
        else:
            table = arrow(connection, sql) if side == "arrow" else over_flight(clients[side], sql)
            rows, size = table.num_rows, table.nbytes
        print(json.dumps({"ms": (time.perf_counter() - started) * 1000, "rows": rows, "bytes": size}), flush=True)


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    measure(*sys.argv[2:])
