import { EngineError } from "../../core/errors.ts";
import type { RecordKey } from "../memory/draft.ts";
import { importedNode } from "../memory/input.ts";
import type { StoredVectors } from "../memory/embed/stored-vectors.ts";
import { digestOf, edgeId, topicId } from "../memory/ids.ts";
import { DEFAULT_NAMESPACE, type NodeRecord } from "../memory/model.ts";
import type { MemoryScope, MemoryService } from "../memory/service.ts";
import { usToText } from "../memory/times.ts";
import type { KnownVerdicts, Verdicts } from "../memory/verdicts.ts";
import { wireNode } from "../memory/wire.ts";
import type { Fact } from "./fact-file.ts";
import { FILE_SYNC_LIMITS } from "./limits.ts";
import { memoryTypeOf } from "./types.ts";

/** The relation of memories whose files link to each other. */
export const LINKS = "links_to";
/** The relation of a memory to what a file says otherwise. */
export const CONFLICTS = "conflicts_with";
/** The relation of a memory to the one that it says the same as. */
export const DUPLICATES = "duplicate_of";
type Relation = typeof LINKS | typeof DUPLICATES;

type Changes = {
  nodes: Map<string, NodeRecord | undefined>;
  /** Whether edges changed, too. */
  hasEdges: boolean;
  untilUs: number;
};

/** The memories of one project, as its files are kept in step with them. */
export class ProjectMemory {
  readonly realm: string;
  readonly #memory: MemoryService;
  readonly #scope: MemoryScope;

  constructor(memory: MemoryService, scope: MemoryScope, project: string) {
    this.#memory = memory;
    this.#scope = scope;
    this.realm = `project:${project}`;
  }

  /** The id of the memory that a file makes; the same on every machine that has the project in that folder. */
  idOf(file: string): string {
    return topicId(this.realm, topicOf(file));
  }

  /** Memories that changed after a stamp, those that do not hold any more too; an erased one is its id alone. */
  async changed(afterUs: number): Promise<Changes> {
    const nodes = new Map<string, NodeRecord | undefined>();
    let hasEdges = false;
    let sinceUs = afterUs;
    for (;;) {
      const page = await this.#memory.changes(this.#scope, {
        sinceUs,
        realm: this.realm,
        limit: FILE_SYNC_LIMITS.records,
      });
      for (const version of page.versions) {
        if (version.kind === "edge") hasEdges = true;
        else nodes.set(version.record.id, version.erased ? undefined : version.record);
      }
      sinceUs = page.untilUs;
      if (!page.hasMore) return { nodes, hasEdges, untilUs: sinceUs };
    }
  }

  /** The stamp of the newest change of the whole memory. */
  async headUs(): Promise<number> {
    return (await this.#memory.changes(this.#scope, { sinceUs: Number.MAX_SAFE_INTEGER })).untilUs;
  }

  async current(ids: readonly string[]): Promise<Map<string, NodeRecord>> {
    const found = await this.#memory.nodes(this.#scope, ids);
    return new Map(found.map((node) => [node.id, node]));
  }

  /** Why the memory would refuse what a file says; undefined when it takes it. */
  problemOf(file: string, fact: Fact): string | undefined {
    const parsed = importedNode.safeParse(this.#said(file, fact, undefined, 0));
    const issue = parsed.success ? undefined : parsed.error.issues[0];
    return issue === undefined ? undefined : `${issue.path.map(String).join(".")} ${issue.message}`;
  }

  /** In one commit. What a file says is newer than what was said before it; `copies` are what memories said otherwise. */
  async save(
    facts: readonly { file: string; fact: Fact; before: NodeRecord | undefined; nowUs: number }[],
    copies: readonly { node: NodeRecord; file: string; nowUs: number }[],
  ): Promise<void> {
    await this.#import(
      [
        ...facts.map(({ file, fact, before, nowUs }) => this.#said(file, fact, before, nowUs)),
        ...copies.map(({ node, file, nowUs }) => this.#copy(node, file, nowUs)),
      ],
      copies.map(({ node }) => ({ realm: this.realm, src: copyId(node), dst: node.id, rel: CONFLICTS })),
    );
  }

  async link(rel: Relation, links: readonly (readonly [src: string, dst: string])[]): Promise<void> {
    await this.#import(
      [],
      links.map(([src, dst]) => ({ realm: this.realm, src, dst, rel })),
    );
  }

  /** Of those memories that have one, their vectors, by the memory's id. */
  async vectors(stored: StoredVectors, nodes: readonly NodeRecord[]): Promise<Map<string, Float32Array>> {
    return await stored.of(this.#scope.databaseId, nodes);
  }

  async vectorProgress(stored: StoredVectors): Promise<{ throughSeq: number; isComplete: boolean }> {
    return await stored.progress(this.#scope.databaseId);
  }

  /** What was said of pairs among those memories. */
  async verdicts(verdicts: Verdicts, nodes: readonly NodeRecord[]): Promise<KnownVerdicts> {
    return await verdicts.among(this.#scope.databaseId, nodes);
  }

  /** Differs once something else was said of pairs of the project. */
  async verdictStamp(verdicts: Verdicts): Promise<string> {
    return await verdicts.stamp(this.#scope.databaseId, this.realm);
  }

  /** Why somebody ended the edge; undefined where it holds, or where there was none. */
  async endOfLink(rel: Relation, src: string, dst: string): Promise<{ reason: string | undefined } | undefined> {
    try {
      const edge = await this.#memory.get(this.#scope, this.#edgeKey(rel, src, dst));
      return edge.invalidatedAtUs === undefined ? undefined : { reason: edge.invalidationReason };
    } catch (error) {
      if (error instanceof EngineError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  /** Nodes before edges between them. */
  async #import(nodes: readonly unknown[], edges: readonly unknown[]): Promise<void> {
    for (let from = 0; from < nodes.length; from += FILE_SYNC_LIMITS.records) {
      const some = nodes.slice(from, from + FILE_SYNC_LIMITS.records);
      await this.#memory.import(this.#scope, { memory_nodes: some, memory_edges: [] });
    }
    for (let from = 0; from < edges.length; from += FILE_SYNC_LIMITS.records) {
      const some = edges.slice(from, from + FILE_SYNC_LIMITS.records);
      await this.#memory.import(this.#scope, { memory_nodes: [], memory_edges: some });
    }
  }

  async invalidate(nodeId: string, reason: string): Promise<void> {
    await this.#end({ kind: "node", id: nodeId }, reason);
  }

  async unlink(rel: Relation, src: string, dst: string, reason: string): Promise<void> {
    await this.#end(this.#edgeKey(rel, src, dst), reason);
  }

  #edgeKey(rel: Relation, src: string, dst: string): RecordKey {
    return { kind: "edge", id: edgeId({ realm: this.realm, src, dst, namespace: DEFAULT_NAMESPACE, rel }) };
  }

  async #end(key: RecordKey, reason: string): Promise<void> {
    try {
      await this.#memory.invalidate(this.#scope, key, { reason });
    } catch (error) {
      // Erased meanwhile: it does not hold, either.
      if (!(error instanceof EngineError && error.code === "not_found")) throw error;
    }
  }

  #said(file: string, { name, description, type, body }: Fact, before: NodeRecord | undefined, nowUs: number) {
    const said = {
      name,
      content: body === "" ? description : body,
      memory_type: memoryTypeOf(type, before?.memoryType),
      props: { ...without(before?.props), ...(description !== "" && { description }), file },
    };
    const common = { kind: "memory", realm: this.realm, ...said };
    if (before === undefined) {
      const made = usToText(nowUs);
      const origin = { source: `file:${file}`, trust: "stated", valid_from: made, origin_updated_at: made };
      return { ...common, id: this.idOf(file), topic_key: topicOf(file), ...origin };
    }
    const changedAt = usToText(Math.max(nowUs, before.originUpdatedAtUs + 1));
    const holds = { valid_to: null, invalidated_at: null, invalidated_by: null, invalidation_reason: null };
    return { ...wireNode(before), ...common, ...holds, valid_from: changedAt, origin_updated_at: changedAt };
  }

  /** What a memory said that a file says otherwise, as one of its own. */
  #copy(node: NodeRecord, file: string, nowUs: number) {
    const made = usToText(nowUs);
    const { id: _id, topic_key: _key, ...said } = wireNode(node);
    return {
      ...said,
      id: copyId(node),
      name: node.name ?? null,
      props: { ...said.props, [CONFLICTS]: file },
      valid_from: made,
      origin_updated_at: made,
    };
  }
}

/** The same whenever the same is kept again. */
function copyId(node: NodeRecord): string {
  return topicId(node.realm, `conflict:${node.id}:${nodeHash(node)}`);
}

/** Whether a file says the memory, on this machine or on another one. */
export function isOfFile({ topicKey }: NodeRecord): boolean {
  return topicKey?.startsWith("file:") === true;
}

function topicOf(file: string): string {
  return `file:${file.normalize("NFC")}`;
}

/** Of what a memory says as far as files have it; of one that does not hold, nothing. */
export function nodeHash(node: NodeRecord | undefined): string {
  if (node === undefined || node.invalidatedAtUs !== undefined) return "";
  const { description } = node.props;
  return digestOf([node.name ?? "", description ?? "", node.memoryType ?? "", node.content]);
}

/** The props of a memory but for those that files have. */
function without(props: NodeRecord["props"] = {}): Record<string, unknown> {
  const { description: _description, file: _file, ...others } = props;
  return others;
}
