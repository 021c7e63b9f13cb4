"""What OpenTelemetry's own Python packages do with a server: `session` is a program that logs, `batch` a large request
of the official protobuf classes, `rows` the rows that such classes read from requests."""

import base64
import gzip
import json
import math
import struct
import sys
import threading
import time
import urllib.error
import urllib.request

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc


def session(protocol, endpoint, token):
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource

    headers = {"authorization": f"Bearer {token}"} if token else {}
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter

        exporter = OTLPLogExporter(endpoint=endpoint, insecure=True, headers=tuple(headers.items()))
    else:
        from opentelemetry.exporter.otlp.proto.http import Compression
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

        exporter = OTLPLogExporter(endpoint=f"{endpoint}/v1/logs", headers=headers, compression=Compression.Gzip)
    provider = LoggerProvider(resource=Resource.create({"service.name": "checkout", "host.cpus": 4}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("shop.cart", "2.1", schema_url="https://example.com/schema", attributes={"beta": True})
    for n in range(25):
        logger.emit(
            LogRecord(
                timestamp=1767323045000000000 + n,
                severity_number=SeverityNumber.WARN,
                severity_text="WARN",
                body=f"cart {n}" if n % 5 else {"cart": n, "items": [1, 2.5, None, "x", b"\x00\xff"]},
                attributes={"n": n, "ratio": 0.1, "ok": n % 2 == 0, "tags": ["a", "b"], "big": 2**62 + n},
                event_name="cart.changed" if n % 2 else None,
            )
        )
    provider.force_flush()
    provider.shutdown()


def request_of(count):
    request = logs_service_pb2.ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    for key, value in (("service.name", "bench"), ("host.name", "node-1"), ("service.version", "1.2.3")):
        resource.resource.attributes.add(key=key).value.string_value = value
    scope = resource.scope_logs.add()
    scope.scope.name = "bench.batch"
    for n in range(count):
        record = scope.log_records.add()
        record.time_unix_nano = 1767323045000000000 + n
        record.observed_time_unix_nano = record.time_unix_nano + 1000
        record.severity_number = 9
        record.severity_text = "INFO"
        record.body.string_value = f"GET /api/items/{n} took {n % 97} ms"
        record.trace_id = struct.pack(">QQ", 1, n)
        record.span_id = struct.pack(">Q", n)
        record.flags = 1
        record.attributes.add(key="http.method").value.string_value = "GET"
        record.attributes.add(key="http.status").value.int_value = 200 + n % 5
        record.attributes.add(key="latency").value.double_value = n / 8
    return request


def batch(protocol, endpoint, count, key):
    request = request_of(int(count))
    metadata = (("x-idempotency-key", key),) if key else ()
    if protocol == "grpc":
        with grpc.insecure_channel(endpoint) as channel:
            stub = logs_service_pb2_grpc.LogsServiceStub(channel)
            answer = stub.Export(request, metadata=metadata, compression=grpc.Compression.Gzip, timeout=60)
    else:
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", **dict(metadata)}
        body = gzip.compress(request.SerializeToString())
        sent = urllib.request.Request(f"{endpoint}/v1/logs", data=body, headers=headers)
        with urllib.request.urlopen(sent, timeout=60) as response:
            answer = logs_service_pb2.ExportLogsServiceResponse.FromString(response.read())
    partial = answer.partial_success
    print(json.dumps({"rejected": partial.rejected_log_records, "message": partial.error_message}))


def failure(protocol, endpoint, token):
    """Sends what is no request, and prints the status with its details as the official classes read it."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    if protocol == "grpc":
        with grpc.insecure_channel(endpoint) as channel:
            call = channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export")
            try:
                call(b"\xff\xff", metadata=metadata, timeout=60)
            except grpc.RpcError as error:
                details = dict(error.trailing_metadata())["grpc-status-details-bin"]
                name = error.code().name
    else:
        sent = urllib.request.Request(f"{endpoint}/v1/logs", data=b"\xff\xff", headers=dict(metadata))
        sent.add_header("Content-Type", "application/x-protobuf")
        try:
            urllib.request.urlopen(sent, timeout=60)
        except urllib.error.HTTPError as error:
            details = error.read()
            name = str(error.code)
    status = status_pb2.Status.FromString(details)
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        detail.Unpack(info)
    print(json.dumps({"name": name, "code": status.code, "message": status.message, "reason": info.reason}))


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return members_of(value.kvlist_value.values)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "double_value":
        number = value.double_value
        if math.isfinite(number):
            return ["double", struct.pack(">d", number).hex()]
        return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")
    if kind == "int_value":
        return ["int", str(value.int_value)]
    return getattr(value, kind) if kind in ("string_value", "bool_value") else None


def members_of(attributes):
    members = {}
    for attribute in attributes:
        members[attribute.key] = value_of(attribute.value)
    return ["object", list(members.items())]


def rows_of(request):
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield {
                    "time": str(record.time_unix_nano),
                    "observed": str(record.observed_time_unix_nano),
                    "event": record.event_name,
                    "body": value_of(record.body),
                    "severity_number": record.severity_number,
                    "severity_text": record.severity_text,
                    "trace_id": record.trace_id.hex(),
                    "span_id": record.span_id.hex(),
                    "flags": record.flags,
                    "dropped": record.dropped_attributes_count,
                    "attributes": members_of(record.attributes),
                    "resource": members_of(resource.resource.attributes),
                    "resource_dropped": resource.resource.dropped_attributes_count,
                    "resource_url": resource.schema_url,
                    "scope": members_of(scope.scope.attributes),
                    "scope_dropped": scope.scope.dropped_attributes_count,
                    "scope_name": scope.scope.name,
                    "scope_version": scope.scope.version,
                    "scope_url": scope.schema_url,
                }


def rows():
    """Requests on standard input, each behind its length in four bytes; a line of JSON for each."""
    source = sys.stdin.buffer.read()
    at = 0
    while at < len(source):
        (length,) = struct.unpack_from("<I", source, at)
        body = source[at + 4 : at + 4 + length]
        at += 4 + length
        try:
            request = logs_service_pb2.ExportLogsServiceRequest.FromString(body)
            print(json.dumps(list(rows_of(request))))
        except DecodeError:
            print("null")


def write(count):
    sys.stdout.buffer.write(request_of(int(count)).SerializeToString())


def until_closed(endpoint):
    """Sends a record after the other, each again until it is acknowledged, until standard input ends; prints how many."""
    closed = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), closed.set()), daemon=True).start()
    count = 0
    with grpc.insecure_channel(endpoint, options=(("grpc.max_reconnect_backoff_ms", 200),)) as channel:
        stub = logs_service_pb2_grpc.LogsServiceStub(channel)
        while not closed.is_set():
            request = logs_service_pb2.ExportLogsServiceRequest()
            scope = request.resource_logs.add().scope_logs.add()
            scope.scope.name = "until-closed"
            scope.log_records.add().body.string_value = f"exported {count}"
            try:
                stub.Export(request, timeout=20)
                count += 1
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                    raise
                time.sleep(0.01)
    print(count)


{"session": session, "until-closed": until_closed, "batch": batch, "failure": failure, "rows": rows, "write": write}[sys.argv[1]](*sys.argv[2:])
