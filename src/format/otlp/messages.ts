/**
 * The messages of OTLP logs as far as they are kept (opentelemetry/proto/{collector/logs,logs,resource,common}/v1, version
 * 1.9): what the JSON form is read by, and what says which fields are merged. Fields that are not here are skipped.
 */
export type Scalar =
  | "string"
  | "bytes"
  | "hex"
  | "bool"
  | "int64"
  | "uint32"
  | "enum"
  | "double"
  | "fixed64"
  | "fixed32";

export type Field = {
  number: number;
  /** A scalar, or the fields of a message. */
  type: Scalar | Message;
  isRepeated: boolean;
};

export type Message = {
  /** By their names in the JSON form. */
  readonly byName: Map<string, Field>;
  readonly byNumber: Map<number, Field>;
  /** Whether a message has at most one of the fields. */
  readonly isChoice: boolean;
};

function message(isChoice = false): Message {
  return { byName: new Map(), byNumber: new Map(), isChoice };
}

type Described = [number: number, type: Scalar | Message, repeated?: "repeated"];

function define({ byName, byNumber }: Message, fields: Readonly<Record<string, Described>>): void {
  for (const [name, [number, type, repeated]] of Object.entries(fields)) {
    const field = { number, type, isRepeated: repeated !== undefined };
    byName.set(name, field);
    byNumber.set(number, field);
  }
}

export const EXPORT_LOGS_REQUEST = message();
const RESOURCE_LOGS = message();
const SCOPE_LOGS = message();
export const LOG_RECORD = message();
export const RESOURCE = message();
export const SCOPE = message();
const KEY_VALUE = message();
const ANY_VALUE = message(true);
const LIST = message();
const KEY_VALUE_LIST = message();

define(EXPORT_LOGS_REQUEST, { resourceLogs: [1, RESOURCE_LOGS, "repeated"] });
define(RESOURCE_LOGS, { resource: [1, RESOURCE], scopeLogs: [2, SCOPE_LOGS, "repeated"], schemaUrl: [3, "string"] });
define(RESOURCE, { attributes: [1, KEY_VALUE, "repeated"], droppedAttributesCount: [2, "uint32"] });
define(SCOPE_LOGS, { scope: [1, SCOPE], logRecords: [2, LOG_RECORD, "repeated"], schemaUrl: [3, "string"] });
define(SCOPE, {
  name: [1, "string"],
  version: [2, "string"],
  attributes: [3, KEY_VALUE, "repeated"],
  droppedAttributesCount: [4, "uint32"],
});
define(LOG_RECORD, {
  timeUnixNano: [1, "fixed64"],
  severityNumber: [2, "enum"],
  severityText: [3, "string"],
  body: [5, ANY_VALUE],
  attributes: [6, KEY_VALUE, "repeated"],
  droppedAttributesCount: [7, "uint32"],
  flags: [8, "fixed32"],
  traceId: [9, "hex"],
  spanId: [10, "hex"],
  observedTimeUnixNano: [11, "fixed64"],
  eventName: [12, "string"],
});
define(KEY_VALUE, { key: [1, "string"], value: [2, ANY_VALUE] });
define(ANY_VALUE, {
  stringValue: [1, "string"],
  boolValue: [2, "bool"],
  intValue: [3, "int64"],
  doubleValue: [4, "double"],
  arrayValue: [5, LIST],
  kvlistValue: [6, KEY_VALUE_LIST],
  bytesValue: [7, "bytes"],
});
define(LIST, { values: [1, ANY_VALUE, "repeated"] });
define(KEY_VALUE_LIST, { values: [1, KEY_VALUE, "repeated"] });

/** The wire type of each scalar: see `wire.ts`. */
export const WIRE_TYPE: Readonly<Record<Scalar, number>> = {
  string: 2,
  bytes: 2,
  hex: 2,
  bool: 0,
  int64: 0,
  uint32: 0,
  enum: 0,
  double: 1,
  fixed64: 1,
  fixed32: 5,
};
