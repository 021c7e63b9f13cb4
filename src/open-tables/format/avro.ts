import { createHash } from "node:crypto";

/** A schema of Avro as its specification writes it; `field-id` is Iceberg's. */
export type AvroSchema = Readonly<Record<string, unknown>>;

/** What goes before the records: `avro.schema` is added. */
export type AvroHeader = Readonly<Record<string, string>>;

/**
 * An Avro object container file: https://avro.apache.org/docs/1.12.0/specification/#object-container-files. The schema is
 * kept as it is given, for readers look for the ids in it.
 *
 * Not compressed: two nodes that write the same file must write the same bytes, and compressors of two processors, or of
 * two releases of zlib, do not.
 */
export async function avroFile(schema: AvroSchema, header: AvroHeader, records: Iterable<object>): Promise<Buffer> {
  // It is of CommonJS, of which Node names the whole only.
  const { streams } = (await import("avsc")).default;
  const metadata = Object.fromEntries(Object.entries(header).map(([key, value]) => [key, Buffer.from(value)]));
  const options = {
    codec: "null",
    // Of this its types know nothing.
    metadata,
    // Any sixteen bytes that are unlikely to be among the records.
    syncMarker: createHash("sha256").update(JSON.stringify(header)).digest().subarray(0, 16),
  };
  const encoder = new streams.BlockEncoder(schema as never, options);
  const chunks: Buffer[] = [];
  await new Promise<void>((resolve, reject) => {
    encoder.on("data", (chunk: Buffer) => chunks.push(chunk));
    encoder.once("end", resolve);
    encoder.once("error", reject);
    for (const record of records) encoder.write(record);
    encoder.end();
  });
  return Buffer.concat(chunks);
}
