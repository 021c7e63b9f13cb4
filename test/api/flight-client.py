"""Calls of Arrow Flight as pyarrow makes them: each line of standard input is a JSON object, each line out its answer."""

import json
import sys
import time

import pyarrow.flight as flight

CALLS = {
    "list_flights": lambda client: list(client.list_flights()),
    "get_flight_info": lambda client: client.get_flight_info(flight.FlightDescriptor.for_command(b"x")),
    "get_schema": lambda client: client.get_schema(flight.FlightDescriptor.for_path("t")),
    "do_action": lambda client: list(client.do_action(flight.Action("x", b""))),
    "list_actions": lambda client: list(client.list_actions()),
    "do_put": lambda client: put(client),
    "do_exchange": lambda client: exchange(client),
    "handshake": lambda client: client.authenticate(Handshake()),
}


class Handshake(flight.ClientAuthHandler):
    def authenticate(self, outgoing, incoming):
        outgoing.write(b"me")
        incoming.read()

    def get_token(self):
        return b""


def put(client):
    import pyarrow

    schema = pyarrow.schema([("a", pyarrow.int32())])
    writer, _ = client.do_put(flight.FlightDescriptor.for_path("t"), schema)
    writer.write_batch(pyarrow.record_batch([pyarrow.array([1], pyarrow.int32())], schema=schema))
    writer.close()


def exchange(client):
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_path("t"))
    writer.done_writing()
    reader.read_all()


class Headers(flight.ClientMiddlewareFactory):
    """Keeps the metadata that answers begin with."""

    def __init__(self):
        self.seen = {}

    def start_call(self, info):
        factory = self

        class Middleware(flight.ClientMiddleware):
            def received_headers(self, headers):
                factory.seen.update({name: values[0] for name, values in headers.items()})

        return Middleware()


def options_of(ask):
    headers = [(name.encode(), value.encode()) for name, value in ask.get("headers", {}).items()]
    return flight.FlightCallOptions(timeout=ask.get("timeout"), headers=headers)


def ticket_of(ask):
    ticket = ask["ticket"]
    return flight.Ticket(ticket if isinstance(ticket, str) else json.dumps(ticket))


def shown(value):
    return value if isinstance(value, (int, float, str, bool, type(None), list, dict)) else str(value)


def get(client, ask):
    reader = client.do_get(ticket_of(ask), options_of(ask))
    table = reader.read_all()
    rows = [{name: shown(value) for name, value in row.items()} for row in table.slice(0, 100).to_pylist()]
    schema = {field.name: str(field.type) for field in table.schema}
    sizes = [batch.nbytes for batch in table.to_batches()]
    return {"rows": table.num_rows, "schema": schema, "first": rows, "largest": max(sizes, default=0)}


def batches(client, ask):
    """Reads so many batches, and cancels."""
    reader = client.do_get(ticket_of(ask), options_of(ask))
    rows = 0
    for _ in range(ask["batches"]):
        rows += reader.read_chunk().data.num_rows
        time.sleep(ask.get("pause", 0))
    reader.cancel()
    return {"rows": rows}


def answer(client, headers, ask):
    headers.seen.clear()
    try:
        if "call" in ask:
            CALLS[ask["call"]](client)
            return {}
        found = batches(client, ask) if "batches" in ask else get(client, ask)
        return {**found, "metadata": headers.seen}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def main():
    headers = Headers()
    client = flight.connect(sys.argv[1], middleware=[headers])
    for line in sys.stdin:
        print(json.dumps(answer(client, headers, json.loads(line))), flush=True)


main()
