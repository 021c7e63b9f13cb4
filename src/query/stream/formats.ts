import type { OutputFormat } from "../../io/duckdb/projection.ts";

/**
 * The formats of an answer. All hold the same rows under the same column names; they differ in how close they stay
 * to the types of the query:
 *
 * | type | NDJSON | CSV | Arrow | Parquet |
 * |---|---|---|---|---|
 * | int, long, bool | number, bool | text | same type | same type |
 * | real | number; NaN, ±inf are null | text; `nan`, `inf`, `-inf` | same type | same type |
 * | timestamp (ns) | RFC 3339, `Z` | RFC 3339, `Z` | timestamp[ns, UTC] | timestamp, ns (UTC, without a zone) |
 * | TIMESTAMPTZ | RFC 3339, `Z` | RFC 3339, `Z` | timestamp[µs, UTC] | timestamp, µs, UTC |
 * | TIMESTAMP | `2024-01-01T00:00:00` | the same | timestamp[µs] | timestamp, µs |
 * | DATE, TIME | text | text | date32, time64 | date, time |
 * | DECIMAL | number | text | decimal128 | decimal |
 * | HUGEINT (`sum` of integers), UHUGEINT | number | text | decimal128(38, 0) | decimal(38, 0) |
 * | dynamic (JSON) | nested | JSON text | JSON text | JSON |
 * | lists, vectors, structs, maps | nested | JSON text | nested | nested |
 * | BLOB | base64 text | base64 text | binary | binary |
 * | UUID | text | text | text | uuid |
 * | INTERVAL, ENUM, BIT, TIMETZ, BIGNUM | text or number | text | text | text |
 * | UNION, VARIANT | nested | JSON text | JSON text | JSON text |
 *
 * An integer of more than 38 digits does not fit the decimals of Arrow and Parquet and fails the query: better than a
 * number that is nearly right. In Arrow and Parquet a struct without field names gets `f1`, `f2`, ….
 *
 * JSON is the lines of NDJSON as one array, a row on each line.
 *
 * CSV is RFC 4180 but for the line end, which is LF as everything that reads CSV takes it: a header row always; quotes
 * where a value holds a comma, a quote or a line end; NULL is nothing, and the empty text `""`.
 */
export type ResultFormat = OutputFormat;

/** The media type by which a client asks for the format, and the content type of the answer. The first is the default. */
export const RESULT_FORMATS: Readonly<Record<ResultFormat, { mediaType: string; contentType: string }>> = {
  ndjson: { mediaType: "application/x-ndjson", contentType: "application/x-ndjson; charset=utf-8" },
  arrow: {
    mediaType: "application/vnd.apache.arrow.stream",
    contentType: "application/vnd.apache.arrow.stream",
  },
  csv: { mediaType: "text/csv", contentType: "text/csv; charset=utf-8; header=present" },
  parquet: { mediaType: "application/vnd.apache.parquet", contentType: "application/vnd.apache.parquet" },
  json: { mediaType: "application/json", contentType: "application/json; charset=utf-8" },
};

/** The format of a media type of the table. */
export function formatOf(mediaType: string): ResultFormat {
  const formats = Object.keys(RESULT_FORMATS) as ResultFormat[];
  const format = formats.find((one) => RESULT_FORMATS[one].mediaType === mediaType);
  if (format === undefined) throw new Error(`no format has the media type ${mediaType}`);
  return format;
}
