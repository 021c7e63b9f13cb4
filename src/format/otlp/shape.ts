import type { ColumnSpec, ScalarTypeName } from "../types.ts";

/** The table that logs go to (specification: OTLP gRPC). */
export const OTLP_LOGS_TABLE = "otel_logs";

/** Its columns, in order. `docs/otlp.md` says what is in each. */
const TYPES = {
  at: "timestamp",
  label: "string",
  body: "string",
  props: "dynamic",
  observed_at: "timestamp",
  severity_number: "int",
  severity_text: "string",
  trace_id: "string",
  span_id: "string",
  flags: "long",
  service_name: "string",
  scope_name: "string",
  scope_version: "string",
  resource: "dynamic",
  scope: "dynamic",
  attributes: "dynamic",
  dropped_attributes: "long",
  resource_schema_url: "string",
  scope_schema_url: "string",
} as const satisfies Record<string, ScalarTypeName>;

export type OtlpColumn = keyof typeof TYPES;

/** What a table of logs is created with. */
export const OTLP_LOGS_SHAPE: readonly (ColumnSpec & { name: OtlpColumn })[] = Object.entries(TYPES).map(
  ([name, kind]) => ({ name: name as OtlpColumn, type: { kind } }),
);

/** The columns whose text the rows of one resource or scope share. */
export const SHARED_COLUMNS = [
  "service_name",
  "scope_name",
  "scope_version",
  "resource",
  "scope",
  "resource_schema_url",
  "scope_schema_url",
] as const satisfies readonly OtlpColumn[];

/** `label` of a record without an event name. */
export const DEFAULT_LABEL = "log";
