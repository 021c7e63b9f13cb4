import type { Statement } from "../../../db/records.ts";
import type { RunChange } from "../../dreaming/runs.ts";
import { NOT_ANY_MORE } from "../../filesync/duplicates.ts";
import { DUPLICATES } from "../../filesync/project-memory.ts";
import type { Draft } from "../../memory/draft.ts";
import { vectorKeyOf } from "../../memory/embed/vector-text.ts";
import { edgeId } from "../../memory/ids.ts";
import { accepted, edgeInput } from "../../memory/input.ts";
import { DEFAULT_NAMESPACE } from "../../memory/model.ts";
import type { Version } from "../../memory/rows.ts";
import { nodeKey, putSaidEdge } from "../../memory/save.ts";
import type { MemoryStore } from "../../memory/store.ts";
import type { PipelineMetrics } from "../metrics.ts";
import { advance, runOnce, type PipelineDeps, type RunOutcome } from "../run.ts";
import { FOLLOWS, type Link } from "./conversations.ts";

export type LinkDeps = PipelineDeps & { store: MemoryStore; metrics: PipelineMetrics };

export type LinkWork = {
  links: readonly Link[];
  /** How far consolidation has read. */
  position: unknown;
  /** How many records it looked at. */
  records: number;
  /** Written with the links, and without them where none is to be made. */
  also?: readonly Statement[];
};

/** Makes those links that are missing and that nobody has ended, and advances, in one transaction. */
export async function commitLinks(
  deps: LinkDeps,
  place: Parameters<typeof runOnce>[1],
  { links, position, records, also }: LinkWork,
): Promise<void> {
  const missing = await missingLinks(deps, place.databaseId, links);
  if (missing.length === 0) {
    await advance(deps, place, position, also);
    return;
  }
  const ends = [...new Set(missing.flatMap(({ src, dst }) => [src, dst]))].map(nodeKey);
  const { made } = await runOnce(deps, place, {
    items: missing.length,
    needs: { keys: [...ends, ...missing.map((link) => ({ kind: "edge", id: idOf(link) }) as const)] },
    eventsScanned: 0,
    also,
    plan: (draft): RunOutcome & { made: Record<string, number> } => {
      const made: Record<string, number> = { [FOLLOWS]: 0, [DUPLICATES]: 0 };
      const changes = missing.flatMap((link, proposal) => {
        const change = putLink(draft, link);
        if (change === undefined) return [];
        made[link.rel] = (made[link.rel] ?? 0) + 1;
        return [{ ...change, proposal }];
      });
      return { changes, position, memoriesWritten: 0, stats: { records, links: made }, made };
    },
  });
  for (const [relation, count] of Object.entries(made)) deps.metrics.links.inc({ relation }, count);
}

/** Each once. The last memory of a conversation may have been erased since. */
export async function missingLinks(
  { store }: Pick<LinkDeps, "store">,
  databaseId: number,
  links: readonly Link[],
): Promise<Link[]> {
  const ends = await store.known(
    databaseId,
    "node",
    links.flatMap(({ src, dst }) => [src, dst]),
  );
  const there = new Set(ends.flatMap(({ current }) => (current?.erased === false ? [current.record.id] : [])));
  const possible = links.filter(({ src, dst }) => there.has(src) && there.has(dst));
  const byId = new Map(possible.map((link) => [idOf(link), link]));
  for (const { current } of await store.known(databaseId, "edge", [...byId.keys()])) {
    if (current !== undefined && !mayBeMade(current)) byId.delete(current.record.id);
  }
  return [...byId.values()];
}

/** Whoever ended or erased a link says that it is none. */
function mayBeMade(before: Version | undefined): boolean {
  if (before === undefined) return true;
  if (before.kind !== "edge" || before.erased) return false;
  return before.record.invalidatedAtUs !== undefined && before.record.invalidationReason === NOT_ANY_MORE;
}

/** Undefined where it is there by now, or one of its ends is gone or says something else. */
function putLink(draft: Draft, link: Link): Omit<RunChange, "proposal"> | undefined {
  const id = idOf(link);
  const before = draft.version("edge", id);
  const hasEnds = (["src", "dst"] as const).every((end) => {
    const node = draft.node(link[end]);
    const isAsThen = link.keys === undefined || (node !== undefined && vectorKeyOf(node) === link.keys[end]);
    return node?.realm === link.realm && isAsThen;
  });
  if (!hasEnds || !mayBeMade(before)) return undefined;
  const { record } = putSaidEdge(accepted(edgeInput, link), { id, realm: link.realm }, draft);
  return { kind: "edge", id, versionBefore: before?.record.version, versionAfter: record.version };
}

function idOf({ realm, src, dst, rel }: Link): string {
  return edgeId({ realm, src, dst, rel, namespace: DEFAULT_NAMESPACE });
}
