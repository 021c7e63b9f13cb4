import { cutAfter } from "../../core/cut-text.ts";
import type { EdgeRecord, NodeRecord } from "../memory/model.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import type { ObservedEvent } from "./ports.ts";

/** What a model is shown in one question, by the names that it is shown under. */
export type Shown<Event = ObservedEvent, Node = NodeRecord, Edge = EdgeRecord> = {
  events: ReadonlyMap<string, Event>;
  nodes: ReadonlyMap<string, Node>;
  edges: ReadonlyMap<string, Edge>;
};

/** What checking the answer to a question takes of what was shown. */
export type ShownKeys = Shown<ObservedEvent, NodeKey, EdgeKey>;
type NodeKey = Pick<NodeRecord, "id" | "kind" | "realm" | "version" | "memoryType">;
type EdgeKey = Pick<EdgeRecord, "id" | "version" | "src" | "dst">;

/** The same in the order of the names, as it is stored until the answer is there. */
export type StoredKeys = { events: readonly ObservedEvent[]; nodes: readonly NodeKey[]; edges: readonly EdgeKey[] };

export function shownOf<Event, Node, Edge>(
  events: readonly Event[],
  nodes: readonly Node[],
  edges: readonly Edge[],
): Shown<Event, Node, Edge> {
  return { events: named("e", events), nodes: named("m", nodes), edges: named("r", edges) };
}

/** Of an event its beginning, which is all that a memory keeps of it. */
export function keysOf({ events, nodes, edges }: Shown): StoredKeys {
  return {
    events: [...events.values()].map(({ id, at, text }) => ({
      id,
      at,
      text: cutAfter(text, DREAMING_LIMITS.excerptChars),
    })),
    nodes: [...nodes.values()].map(({ id, kind, realm, version, memoryType }) => {
      return { id, kind, realm, version, memoryType };
    }),
    edges: [...edges.values()].map(({ id, version, src, dst }) => ({ id, version, src, dst })),
  };
}

function named<T>(letter: string, items: readonly T[]): Map<string, T> {
  return new Map(items.map((item, i) => [`${letter}${i + 1}`, item]));
}

/** The events, a line each. */
export function eventsText({ events }: Pick<Shown, "events">): string {
  return [...events].map(([name, { text }]) => `${name}: ${cutAfter(text, DREAMING_LIMITS.eventChars)}`).join("\n");
}

/** Memories, entities and the edges between them, a line each. */
export function memoriesText({ nodes, edges }: Pick<Shown, "nodes" | "edges">): string {
  const nameOf = new Map([...nodes].map(([name, { id }]) => [id, name]));
  const lines = [...nodes].map(([name, node]) => `${name}: ${lineOf(node)}`);
  const links = [...edges].map(
    ([name, { src, dst, rel }]) => `${name}: ${nameOf.get(src) ?? "?"} ${rel} ${nameOf.get(dst) ?? "?"}`,
  );
  return [...lines, ...links].join("\n");
}

function lineOf(node: NodeRecord): string {
  const { realm, kind, memoryType, entityKind, trust, importance } = node;
  const tags = node.tags.slice(0, DREAMING_LIMITS.shownTags);
  const about = { realm, kind, type: memoryType ?? entityKind, trust, importance };
  const said = {
    ...(node.name !== undefined && { name: cutAfter(node.name, DREAMING_LIMITS.excerptChars) }),
    content: cutAfter(node.content, DREAMING_LIMITS.neighbourChars),
    ...(tags.length > 0 && { tags }),
  };
  return cutAfter(JSON.stringify({ ...about, ...said }), DREAMING_LIMITS.memoryLineChars);
}

/** A name, and the blanks and marks of a line. */
const FRAME_CHARS = 16;

/** The first nodes whose lines fit. */
export function fittingNodes(nodes: readonly NodeRecord[], chars: number): NodeRecord[] {
  return fitting(nodes, chars, lineOf);
}

/** The first edges whose lines fit. */
export function fittingEdges(edges: readonly EdgeRecord[], chars: number): EdgeRecord[] {
  return fitting(edges, chars, ({ rel }) => rel);
}

function fitting<T>(items: readonly T[], chars: number, lineOfItem: (item: T) => string): T[] {
  let left = chars;
  const end = items.findIndex((item) => (left -= lineOfItem(item).length + FRAME_CHARS) < 0);
  return end < 0 ? [...items] : items.slice(0, end);
}
