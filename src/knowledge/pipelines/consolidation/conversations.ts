import { z } from "zod";
import type { NodeRecord } from "../../memory/model.ts";
import { PIPELINE_LIMITS } from "../limits.ts";

/** The relation of a memory to the one that was saved before it in the same conversation. */
export const FOLLOWS = "follows";

/** The last memory of each conversation, the one that went on last at the end. */
export const lastMemories = z.array(z.tuple([z.string(), z.object({ id: z.string(), createdAtUs: z.number() })]));
export type LastMemories = z.output<typeof lastMemories>;

export type Link = {
  realm: string;
  src: string;
  dst: string;
  rel: string;
  /** Of what both ends say: where one says something else meanwhile, the link is not made. */
  keys?: { src: string; dst: string };
};

/** `agent run <id>` as a source: the run whose session is the conversation. */
export function agentRunOf({ source }: NodeRecord): string | undefined {
  return /^agent run (\S+)$/u.exec(source ?? "")?.[1];
}

/**
 * What a memory was saved in, of those sources that name one conversation. A word like `slack` names none: what was said
 * there does not follow from each other.
 */
function conversationOf(node: NodeRecord, sessionOfRun: ReadonlyMap<string, string>): string | undefined {
  const run = agentRunOf(node);
  const session =
    run === undefined ? /^(?:transcript|session)[ :](\S.*)$/u.exec(node.source ?? "")?.[1] : sessionOfRun.get(run);
  return session === undefined ? undefined : `${node.realm} ${session}`;
}

/**
 * Links each new memory to the one before it. A memory that is not later than the last one of its conversation has been
 * there before, and has changed.
 */
export function follow(
  nodes: readonly NodeRecord[],
  before: LastMemories,
  sessionOfRun: ReadonlyMap<string, string>,
): { links: Link[]; last: LastMemories } {
  const last = new Map(before);
  const links: Link[] = [];
  for (const node of nodes.toSorted(byCreation)) {
    const conversation = conversationOf(node, sessionOfRun);
    if (conversation === undefined) continue;
    const previous = last.get(conversation);
    if (previous !== undefined && byCreation(node, previous) <= 0) continue;
    if (previous !== undefined) links.push({ realm: node.realm, src: node.id, dst: previous.id, rel: FOLLOWS });
    // Those at the front are forgotten first.
    last.delete(conversation);
    last.set(conversation, { id: node.id, createdAtUs: node.createdAtUs });
  }
  return { links, last: [...last].slice(-PIPELINE_LIMITS.conversations) };
}

type Made = Pick<NodeRecord, "id" | "createdAtUs">;

/** Of one commit, ids follow the order in which they were given. */
function byCreation(a: Made, b: Made): number {
  if (a.createdAtUs !== b.createdAtUs) return a.createdAtUs - b.createdAtUs;
  return a.id === b.id ? 0 : a.id < b.id ? -1 : 1;
}
