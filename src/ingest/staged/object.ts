import { promisify } from "node:util";
import { constants, zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from "node:zlib";
import { z } from "zod";
import { isStorableText } from "../../catalog/invariants.ts";
import { checkName } from "../../core/names.ts";
import { CHECKSUM, checksumOf } from "../../format/checksum.ts";
import { ENCODINGS, type BodyEncoding } from "../../format/encodings.ts";
import { formatColumnType, parseColumnType, type ColumnSpec, type ColumnStats } from "../../format/types.ts";
import type { BodyReading } from "../ingest.ts";
import type { SealedExtent } from "../seal.ts";
import { DamagedObject, decodeContainer, encodeContainer, NewerObject } from "./container.ts";

/**
 * A staged object: one flush of one table, acknowledged, and all that its commit needs.
 *
 * A request's rows are in it in one of two ways. Where the node was certain of every column, they are a range of the
 * rows of `extents`, counted over all of them. Where a field had no column that the node knew of, the body is there as
 * it came, and is sealed by the commit, under the columns as they are then.
 */
export type StagedObject = {
  /** UUIDv7, and the last segment of the object's key. */
  id: string;
  node: string;
  /** When the requests were acknowledged, by the node's clock: just before the object was written. */
  acknowledgedAtMs: number;
  database: string;
  table: string;
  /** The columns of the table if it has to be made for these rows; the default shape unless given. */
  columns?: readonly ColumnSpec[];
  requests: readonly StagedRequest[];
  extents: readonly StagedExtent[];
};

export type StagedRequest = {
  key?: string;
  rows: number;
  evolve: boolean;
  /** Whether new columns get types by their values. Absent from objects of versions that knew none. */
  inferTypes?: boolean;
  autoCreate: boolean;
  arrivedAtNs: bigint;
  place: { kind: "rows"; from: number } | ({ kind: "body"; body: StagedBody } & BodyReading);
};

/** A body as it came, compressed. */
export type StagedBody = { compressed: Uint8Array; sizeBytes: number };

/** A sealed extent in `tlm`, and the columns that it has. */
export type StagedExtent = SealedExtent & { columns: readonly ColumnSpec[] };

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Fast rather than small: what is staged lives for seconds. */
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Smaller bodies are compressed where they are: to hand one to another thread and back takes twice as long. */
const MIN_HANDED_OVER_BYTES = 16 * 1024;

export async function compressBody(bytes: Uint8Array): Promise<StagedBody> {
  const sizeBytes = bytes.byteLength;
  const isSmall = sizeBytes < MIN_HANDED_OVER_BYTES;
  return { compressed: isSmall ? zstdCompressSync(bytes, COMPRESSION) : await compress(bytes, COMPRESSION), sizeBytes };
}

/** The body as it came. Throws `DamagedObject`. */
export async function decompressBody({ compressed, sizeBytes }: StagedBody): Promise<Uint8Array> {
  const options = { maxOutputLength: Math.max(sizeBytes, 1) };
  let bytes: Uint8Array;
  try {
    const isSmall = sizeBytes < MIN_HANDED_OVER_BYTES;
    bytes = isSmall ? zstdDecompressSync(compressed, options) : await decompress(compressed, options);
  } catch (cause) {
    throw new DamagedObject("a body of it does not decompress", { cause });
  }
  if (bytes.byteLength !== sizeBytes) {
    throw new DamagedObject(`a body of it decompresses to ${bytes.byteLength} bytes instead of ${sizeBytes}`);
  }
  return bytes;
}

const count = z.int().min(0);
const ns = z
  .string()
  .regex(/^-?[0-9]{1,19}$/)
  .transform((text) => BigInt(text));
const name = (thing: "database" | "table") => z.string().refine((text) => checkName(thing, text) === text);
const columnSchema = z.strictObject({ name: z.string(), type: z.string() }).transform(({ name, type }, context) => {
  const parsed = parseColumnType(type);
  if (parsed !== undefined) return { name, type: parsed };
  context.addIssue(`no column type: ${type}`);
  return z.NEVER;
});
const statsSchema = z.strictObject({
  name: z.string(),
  nullCount: count,
  distinct: count.optional(),
  min: z.string().optional(),
  max: z.string().optional(),
  misfits: count.optional(),
});
const extentSchema = z.strictObject({
  part: count,
  rows: count.min(1),
  checksum: z.string().regex(CHECKSUM),
  minAtNs: ns,
  maxAtNs: ns,
  columns: z.array(columnSchema),
  stats: z.array(statsSchema),
  filters: z.array(z.strictObject({ name: z.string(), kind: z.enum(["values", "grams"]), part: count })),
});
const encodings = Object.keys(ENCODINGS) as BodyEncoding[];
const placeSchema = z.union([
  z.strictObject({ from: count }),
  z.strictObject({
    part: count,
    sizeBytes: count,
    /** Absent from objects of versions that knew none but NDJSON. */
    encoding: z.enum(encodings).optional(),
    /** Eight bytes for each line, little-endian. */
    arrivals: count.optional(),
  }),
]);
const requestSchema = z.strictObject({
  key: z.string().refine(isStorableText).optional(),
  rows: count.min(1),
  evolve: z.boolean(),
  inferTypes: z.boolean().optional(),
  autoCreate: z.boolean(),
  arrivedAtNs: ns,
  place: placeSchema,
});
const manifestSchema = z.strictObject({
  id: z.string(),
  node: z.string(),
  acknowledgedAtMs: count,
  database: name("database"),
  table: name("table"),
  columns: z.array(columnSchema).optional(),
  requests: z.array(requestSchema).min(1),
  extents: z.array(extentSchema),
});
type Manifest = z.input<typeof manifestSchema>;

/** Throws `DamagedObject` when `decodeStaged` would not take it: what cannot be committed is not to be acknowledged. */
export function encodeStaged(object: StagedObject): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  const put = (bytes: Uint8Array): number => parts.push(bytes) - 1;
  const { id, node, acknowledgedAtMs, database, table } = object;
  const columns = object.columns?.map(describeColumn);
  const requests = object.requests.map((request) => describeRequest(request, put));
  const extents = object.extents.map((extent) => describeExtent(extent, put));
  const written: Manifest = { id, node, acknowledgedAtMs, database, table, columns, requests, extents };
  checkManifest(written);
  checkContent(object);
  return encodeContainer({ manifest: written, parts });
}

type Put = (bytes: Uint8Array) => number;

function describeRequest(request: StagedRequest, put: Put): Manifest["requests"][number] {
  const { key, rows, evolve, inferTypes, autoCreate, arrivedAtNs, place } = request;
  return {
    key,
    rows,
    evolve,
    inferTypes,
    autoCreate,
    arrivedAtNs: String(arrivedAtNs),
    place: place.kind === "rows" ? { from: place.from } : describeBody(place, put),
  };
}

function describeBody({ body, encoding, arrivals }: { body: StagedBody } & BodyReading, put: Put) {
  const part = put(body.compressed);
  const times = arrivals === undefined ? undefined : put(bytesOfTimes(arrivals));
  return { part, sizeBytes: body.sizeBytes, encoding, arrivals: times };
}

function describeColumn({ name, type }: ColumnSpec): { name: string; type: string } {
  return { name, type: formatColumnType(type) };
}

const TIME_BYTES = 8;

function bytesOfTimes(times: BigInt64Array): Uint8Array {
  const bytes = Buffer.alloc(times.length * TIME_BYTES);
  for (const [index, time] of times.entries()) bytes.writeBigInt64LE(time, index * TIME_BYTES);
  return bytes;
}

/** Throws `DamagedObject`. */
function timesOfBytes(bytes: Uint8Array): BigInt64Array<ArrayBuffer> {
  if (bytes.byteLength % TIME_BYTES !== 0) throw new DamagedObject("times of arrival of it are cut off");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const times = new BigInt64Array(bytes.byteLength / TIME_BYTES);
  for (let index = 0; index < times.length; index++) times[index] = view.getBigInt64(index * TIME_BYTES, true);
  return times;
}

function describeExtent(extent: StagedExtent, put: Put): Manifest["extents"][number] {
  const { bytes, rows, checksum, minAtNs, maxAtNs, stats } = extent;
  return {
    part: put(bytes),
    rows,
    checksum,
    minAtNs: String(minAtNs),
    maxAtNs: String(maxAtNs),
    columns: extent.columns.map(describeColumn),
    stats,
    filters: extent.filters.map(({ name, kind, bytes: filter }) => ({ name, kind, part: put(filter) })),
  };
}

/** The object that has that id in its key; its bytes are views of `bytes`. Throws `DamagedObject` or `NewerObject`. */
export function decodeStaged(bytes: Uint8Array, expected: { id: string; node: string }): StagedObject {
  const { manifest, parts } = decodeContainer(bytes);
  const { requests, extents, columns, ...head } = checkManifest(manifest);
  if (head.id !== expected.id || head.node !== expected.node) {
    throw new DamagedObject(`it is object ${head.id} of node ${head.node}`);
  }
  const take = partTaker(parts);
  const object = {
    ...head,
    ...(columns === undefined ? {} : { columns }),
    requests: requests.map((request) => readRequest(request, take)),
    extents: extents.map((extent) => readExtent(extent, take)),
  };
  take.end();
  checkContent(object);
  return object;
}

type Take = (index: number) => Uint8Array;

function readRequest(
  { key, inferTypes, place, ...request }: z.output<typeof requestSchema>,
  take: Take,
): StagedRequest {
  return {
    ...(key === undefined ? {} : { key }),
    ...(inferTypes === undefined ? {} : { inferTypes }),
    ...request,
    place: "from" in place ? { kind: "rows", from: place.from } : readBody(place, take),
  };
}

type BodyPlace = Exclude<z.output<typeof placeSchema>, { from: number }>;

function readBody({ part, sizeBytes, encoding, arrivals }: BodyPlace, take: Take): StagedRequest["place"] {
  return {
    kind: "body",
    body: { compressed: take(part), sizeBytes },
    ...(encoding === undefined ? {} : { encoding }),
    ...(arrivals === undefined ? {} : { arrivals: timesOfBytes(take(arrivals)) }),
  };
}

function readExtent({ part, ...extent }: z.output<typeof extentSchema>, take: Take): StagedExtent {
  return {
    ...extent,
    format: "tlm",
    bytes: take(part),
    stats: extent.stats.map(withoutUndefined),
    filters: extent.filters.map(({ name, kind, part: filter }) => ({ name, kind, bytes: take(filter) })),
  };
}

function withoutUndefined({ name, nullCount, distinct, min, max, misfits }: z.output<typeof statsSchema>): ColumnStats {
  return {
    name,
    nullCount,
    ...(distinct === undefined ? {} : { distinct }),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(misfits === undefined ? {} : { misfits }),
  };
}

function checkManifest(value: unknown): z.output<typeof manifestSchema> {
  // `checkName` throws, which is a failure of the manifest like any other.
  try {
    return manifestSchema.parse(value);
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    if (cause instanceof z.ZodError && hasOnlyMore(cause.issues)) throw new NewerObject(`fields of its own: ${reason}`);
    throw new DamagedObject(`its manifest is not one: ${reason}`, { cause });
  }
}

/** Whether nothing is wrong but fields that nobody here knows: what is intact was written so. */
function hasOnlyMore(issues: readonly z.core.$ZodIssue[]): boolean {
  return issues.every(
    (issue) => issue.code === "unrecognized_keys" || (issue.code === "invalid_union" && issue.errors.some(hasOnlyMore)),
  );
}

/** Hands out parts; every one belongs to exactly one owner. */
function partTaker(parts: readonly Uint8Array[]) {
  const left = new Map(parts.entries());
  const take = (index: number): Uint8Array => {
    const part = left.get(index);
    if (part === undefined) throw new DamagedObject(`its manifest names part ${index} twice, or there is none`);
    left.delete(index);
    return part;
  };
  take.end = (): void => {
    if (left.size > 0) throw new DamagedObject(`its manifest does not name ${left.size} of its parts`);
  };
  return take;
}

/** The extents are the bytes that were sealed, the ranges of the requests are exactly their rows, and keys are unique. */
function checkContent({ requests, extents }: StagedObject): void {
  for (const { bytes, checksum } of extents) {
    if (checksumOf(bytes) !== checksum) throw new DamagedObject("the checksum of an extent of it does not match");
  }
  let end = 0;
  for (const { place, rows } of requests) {
    if (place.kind === "body") continue;
    if (place.from !== end) throw new DamagedObject(`its requests leave out rows before ${place.from}`);
    end += rows;
  }
  const rows = extents.reduce((sum, extent) => sum + extent.rows, 0);
  if (end !== rows) throw new DamagedObject(`its extents have ${rows} rows, its requests ${end}`);
  const keys = requests.flatMap(({ key }) => key ?? []);
  if (new Set(keys).size < keys.length) throw new DamagedObject("two of its requests have the same idempotency key");
}
