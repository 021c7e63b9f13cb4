import type { RecordRow, RecordValue } from "../../db/records.ts";
import { duplicateKeyOf } from "./content-hash.ts";
import { DEFAULT_NAMESPACE, type EdgeRecord, type NodeRecord, type Tombstone } from "./model.ts";

/** Versions as rows of `memory_records`, and back. */

export type RecordKind = "node" | "edge";

export type NodeVersion = { kind: "node"; erased: false; record: NodeRecord };
export type EdgeVersion = { kind: "edge"; erased: false; record: EdgeRecord };
export type ErasedVersion = { kind: RecordKind; erased: true; record: Tombstone };
export type Version = NodeVersion | EdgeVersion | ErasedVersion;

/** A version with the commits that brought and superseded it. */
export type StoredVersion = Version & { seq: number; endedSeq: number | undefined };

export const INSERTED_COLUMNS = [
  "database_id",
  "kind",
  "id",
  "version",
  "seq",
  "ended_seq",
  "realm",
  "origin_us",
  "content_hash",
  "duplicate_key",
  "src",
  "dst",
  "erased",
  "body",
];

export const READ_COLUMNS = "kind, id, version, seq, ended_seq, realm, origin_us, content_hash, erased, body";

export function valuesOfRow(databaseId: number, stored: StoredVersion): RecordValue[] {
  const { id, realm, version, originUpdatedAtUs, contentHash, ...body } = stored.record;
  const places = placesOf(stored);
  return [
    databaseId,
    stored.kind,
    id,
    version,
    stored.seq,
    stored.endedSeq ?? null,
    realm,
    originUpdatedAtUs,
    contentHash,
    places.duplicateKey,
    places.src,
    places.dst,
    stored.erased ? 1 : 0,
    JSON.stringify(body),
  ];
}

/** Under which key an equal memory confirms this one; undefined for one that has its own, or does not hold any more. */
export function confirmableKey(node: NodeRecord): string | undefined {
  const isOpen = node.kind === "memory" && node.topicKey === undefined && node.validToUs === undefined;
  return isOpen ? duplicateKeyOf(node) : undefined;
}

function placesOf(version: Version): { duplicateKey: string | null; src: string | null; dst: string | null } {
  const nowhere = { duplicateKey: null, src: null, dst: null };
  if (version.erased) return nowhere;
  if (version.kind === "node") return { ...nowhere, duplicateKey: confirmableKey(version.record) ?? null };
  const { src, dst, namespace } = version.record;
  return { ...nowhere, src, dst: namespace === DEFAULT_NAMESPACE ? dst : null };
}

export function versionOfRow(row: RecordRow): StoredVersion {
  const ended = row["ended_seq"];
  const place = { seq: Number(row["seq"]), endedSeq: ended === null ? undefined : Number(ended) };
  const kind = row["kind"] === "edge" ? "edge" : "node";
  const common = {
    id: String(row["id"]),
    realm: String(row["realm"]),
    version: Number(row["version"]),
    originUpdatedAtUs: Number(row["origin_us"]),
    contentHash: String(row["content_hash"]),
  };
  // Only this program wrote it, and what is absent has no key.
  const body = JSON.parse(String(row["body"])) as never;
  if (Number(row["erased"]) === 1) return { kind, erased: true, record: Object.assign(common, body), ...place };
  if (kind === "edge") return { kind, erased: false, record: Object.assign(common, body), ...place };
  return { kind, erased: false, record: Object.assign(common, body), ...place };
}
