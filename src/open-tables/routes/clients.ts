import type { HttpRequest } from "../../io/http/http.ts";

/** The program that asks, as far as it says so, for metrics. */
export type ClientName = (typeof CLIENTS)[number][0] | "other";

const CLIENTS = [
  ["pyiceberg", /pyiceberg/i],
  ["duckdb", /duckdb/i],
  ["clickhouse", /clickhouse|chdb/i],
  ["trino", /trino/i],
  ["java", /apache iceberg/i],
] as const;

export function clientOf(request: Pick<HttpRequest, "header">): ClientName {
  const said = `${request.header("user-agent") ?? ""} ${versionOf(request)}`;
  return CLIENTS.find(([, pattern]) => pattern.test(said))?.[0] ?? "other";
}

/**
 * What a table says to a client beside what it says to all: Iceberg's own readers below 1.11 refuse the encodings of
 * Parquet 2 in their vectorized form, and read them rightly without it.
 */
export function propertiesFor(request: Pick<HttpRequest, "header">): Record<string, string> {
  const [, major, minor] = /^Apache Iceberg (\d+)\.(\d+)/.exec(versionOf(request)) ?? [];
  const isOlder = Number(major) < 1 || (Number(major) === 1 && Number(minor) < 11);
  return isOlder ? { "read.parquet.vectorization.enabled": "false" } : {};
}

/** ClickHouse reads a table's metadata in the store; to the others the answer says all. */
export function readsStoredMetadata(request: Pick<HttpRequest, "header">): boolean {
  return clientOf(request) === "clickhouse";
}

/**
 * The properties of the store as a client understands them: ClickHouse 26.9 cuts the endpoint off the place of a table,
 * and finds the metadata below it only where the endpoint ends with a slash. Other clients may not understand such a one.
 */
export function storePropertiesFor(
  request: Pick<HttpRequest, "header">,
  properties: Readonly<Record<string, string>>,
): Record<string, string> {
  const endpoint = properties["s3.endpoint"];
  if (endpoint === undefined || endpoint.endsWith("/") || clientOf(request) !== "clickhouse") return { ...properties };
  return { ...properties, "s3.endpoint": `${endpoint}/` };
}

function versionOf(request: Pick<HttpRequest, "header">): string {
  return request.header("x-client-version") ?? "";
}
