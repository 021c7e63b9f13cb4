import type { EdgeRecord, NodeRecord } from "../memory/model.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import type { ObservedEvent } from "./ports.ts";

/** What a model is shown in one question, by the names that it is shown under. */
export type Shown = {
  events: ReadonlyMap<string, ObservedEvent>;
  nodes: ReadonlyMap<string, NodeRecord>;
  edges: ReadonlyMap<string, EdgeRecord>;
};

export function shownOf(
  events: readonly ObservedEvent[],
  nodes: readonly NodeRecord[],
  edges: readonly EdgeRecord[],
): Shown {
  return { events: named("e", events), nodes: named("m", nodes), edges: named("r", edges) };
}

function named<T>(letter: string, items: readonly T[]): Map<string, T> {
  return new Map(items.map((item, i) => [`${letter}${i + 1}`, item]));
}

/** The events, a line each. */
export function eventsText({ events }: Pick<Shown, "events">): string {
  return [...events].map(([name, { text }]) => `${name}: ${cut(text, DREAMING_LIMITS.eventChars)}`).join("\n");
}

/** Memories, entities and the edges between them, a line each. */
export function memoriesText({ nodes, edges }: Pick<Shown, "nodes" | "edges">): string {
  const nameOf = new Map([...nodes].map(([name, { id }]) => [id, name]));
  const lines = [...nodes].map(([name, node]) => {
    const { realm, kind, memoryType, entityKind, trust, importance, tags } = node;
    const about = { realm, kind, type: memoryType ?? entityKind, trust, importance, ...(tags.length > 0 && { tags }) };
    const said = {
      ...(node.name !== undefined && { name: node.name }),
      content: cut(node.content, DREAMING_LIMITS.neighbourChars),
    };
    return `${name}: ${JSON.stringify({ ...about, ...said })}`;
  });
  const links = [...edges].map(
    ([name, { src, dst, rel }]) => `${name}: ${nameOf.get(src) ?? "?"} ${rel} ${nameOf.get(dst) ?? "?"}`,
  );
  return [...lines, ...links].join("\n");
}

export function cut(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars).toWellFormed()}…`;
}
