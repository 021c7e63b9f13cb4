import { foldName } from "../../core/names.ts";
import type { SystemRow, SystemTable, SystemTableContext } from "../../feature/system-table.ts";
import type { ColumnSpec, ScalarTypeName } from "../../format/types.ts";
import type { LifeCycle } from "./model.ts";
import { realmRights } from "./realms.ts";
import type { RecordKind, Version } from "./rows.ts";
import { MemoryStore } from "./store.ts";

/** `system.memory_nodes` and `system.memory_edges`: current versions of the query's database that the caller may see. */

const ROWS_AT_ONCE = 500;

const columns = (kind: ScalarTypeName, ...names: string[]): ColumnSpec[] =>
  names.map((name) => ({ name, type: { kind } }));

const LIFE_COLUMNS = [
  ...columns("long", "version"),
  ...columns("timestamp", "valid_from", "valid_to", "invalidated_at"),
  ...columns("string", "invalidated_by", "invalidation_reason"),
  ...columns("timestamp", "created_at", "updated_at", "origin_updated_at"),
];

export const MEMORY_NODES_TABLE: SystemTable = {
  name: "memory_nodes",
  columns: [
    ...columns("string", "id", "realm", "kind", "memory_type", "entity_kind", "name", "content", "tags"),
    ...columns("real", "importance"),
    ...columns("string", "topic_key", "props", "source", "trust"),
    ...LIFE_COLUMNS,
  ],
  async *rows(context) {
    for await (const version of versionsOf(context, "node")) {
      if (version.kind !== "node" || version.erased) continue;
      const { record } = version;
      yield {
        id: record.id,
        realm: record.realm,
        kind: record.kind,
        memory_type: record.memoryType,
        entity_kind: record.entityKind,
        name: record.name,
        content: record.content,
        tags: JSON.stringify(record.tags),
        importance: record.importance,
        topic_key: record.topicKey,
        props: JSON.stringify(record.props),
        source: record.source,
        trust: record.trust,
        ...lifeOf(record),
      };
    }
  },
};

export const MEMORY_EDGES_TABLE: SystemTable = {
  name: "memory_edges",
  columns: [
    ...columns("string", "id", "realm", "src", "dst", "namespace", "rel"),
    ...columns("real", "weight"),
    ...columns("string", "props"),
    ...LIFE_COLUMNS,
  ],
  async *rows(context) {
    for await (const version of versionsOf(context, "edge")) {
      if (version.kind !== "edge" || version.erased) continue;
      const { id, realm, src, dst, namespace, rel, weight, props } = version.record;
      const said = { id, realm, src, dst, namespace, rel, weight, props: JSON.stringify(props) };
      yield { ...said, ...lifeOf(version.record) };
    }
  },
};

async function* versionsOf(
  { records, caller, database, signal }: SystemTableContext,
  kind: RecordKind,
): AsyncGenerator<Version> {
  const [found] = await records.rows("SELECT id FROM databases WHERE folded_name = ?", [foldName(database)]);
  if (found === undefined) return;
  const store = new MemoryStore(records);
  const [databaseId, rights] = [Number(found["id"]), realmRights(caller)];
  for (let after = ""; !signal.aborted;) {
    const page = await store.page(databaseId, kind, { after, limit: ROWS_AT_ONCE, rights });
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.record.id;
    yield* page;
  }
}

const toNs = (us: number): bigint => BigInt(us) * 1_000n;
const toNsOrNothing = (us: number | undefined): bigint | undefined => (us === undefined ? undefined : toNs(us));

function lifeOf(record: LifeCycle): SystemRow {
  return {
    version: record.version,
    valid_from: toNs(record.validFromUs),
    valid_to: toNsOrNothing(record.validToUs),
    invalidated_at: toNsOrNothing(record.invalidatedAtUs),
    invalidated_by: record.invalidatedBy,
    invalidation_reason: record.invalidationReason,
    created_at: toNs(record.createdAtUs),
    updated_at: toNs(record.updatedAtUs),
    origin_updated_at: toNs(record.originUpdatedAtUs),
  };
}
