import protobuf from "protobufjs";

/**
 * Logs as a collector sends them: an `ExportLogsServiceRequest` of one resource and one scope, made and read by protobufjs
 * from the messages that have a part in it (opentelemetry/proto/…/v1, version 1.9).
 */
const PROTO = `
syntax = "proto3";
message ExportLogsServiceRequest { repeated ResourceLogs resource_logs = 1; }
message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; string schema_url = 3; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message ScopeLogs { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3; }
message InstrumentationScope {
  string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4;
}
message LogRecord {
  fixed64 time_unix_nano = 1; int32 severity_number = 2; string severity_text = 3; AnyValue body = 5;
  repeated KeyValue attributes = 6; uint32 dropped_attributes_count = 7; fixed32 flags = 8; bytes trace_id = 9;
  bytes span_id = 10; fixed64 observed_time_unix_nano = 11; string event_name = 12;
}
message AnyValue {
  oneof value {
    string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
    ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7;
  }
}
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
`;

const REQUEST = protobuf.parse(PROTO).root.lookupType("ExportLogsServiceRequest");

const FIRST_NS = 1_767_323_045_000_000_000n;

const text = (key: string, value: string) => ({ key, value: { stringValue: value } });

/** A request of so many records. */
export function logsRequest(records: number): Uint8Array<ArrayBuffer> {
  const logRecords = Array.from({ length: records }, (_, n) => {
    const time = String(FIRST_NS + BigInt(n) * 1_000_000n);
    return {
      timeUnixNano: time,
      observedTimeUnixNano: time,
      severityNumber: 9 + (n % 3) * 4,
      severityText: ["INFO", "WARN", "ERROR"][n % 3],
      body: { stringValue: `GET /api/items/${n} took ${n % 97} ms` },
      traceId: Buffer.from((BigInt(n) * 0x9e37_79b9_7f4a_7c15n).toString(16).padStart(32, "0").slice(-32), "hex"),
      spanId: Buffer.from((BigInt(n) * 0x9e37_79b9n).toString(16).padStart(16, "0").slice(-16), "hex"),
      flags: 1,
      attributes: [
        text("http.method", "GET"),
        { key: "http.status", value: { intValue: 200 + (n % 5) } },
        { key: "latency", value: { doubleValue: (n % 1_000) / 8 } },
      ],
    };
  });
  const resource = { attributes: [text("service.name", "shop"), text("host.name", "node-1"), text("os", "linux")] };
  const message = { resourceLogs: [{ resource, scopeLogs: [{ scope: { name: "shop.http" }, logRecords }] }] };
  return Uint8Array.from(REQUEST.encode(REQUEST.fromObject(message)).finish());
}

/** Decodes a request into objects; returns how many records it has. */
export function decodeByProtobufjs(request: Uint8Array): number {
  const { resourceLogs } = REQUEST.decode(request) as unknown as {
    resourceLogs: { scopeLogs: { logRecords: unknown[] }[] }[];
  };
  return resourceLogs.flatMap(({ scopeLogs }) => scopeLogs).reduce((sum, { logRecords }) => sum + logRecords.length, 0);
}
