import { z } from "zod";
import { MEMORY_TYPES } from "../memory/model.ts";
import { DREAMING_LIMITS } from "./limits.ts";

/**
 * What a model proposes. It is shown events (`e1`, …), memories and entities (`m1`, …) and edges (`r1`, …) under names that
 * hold for one question only, so it can name nothing that it was not shown; what it adds it names itself.
 */
const handle = z.string().min(1).max(40);
const why = {
  reason: z.string().describe("Why the events say so, in one sentence. Think first, then decide."),
  evidence: z.array(handle).describe("The events that say so: e1, e2, …"),
};
const text = z.string();
const importance = z.number().describe("0 to 1.");
const tags = z.array(z.string()).max(20);

export const addProposal = z.strictObject({
  action: z.literal("add"),
  ...why,
  name_it: handle.optional().describe("A name of your own (n1, n2, …) by which links of this answer name it."),
  realm: z.string().optional(),
  kind: z.enum(["memory", "entity"]).default("memory"),
  memory_type: z.enum(MEMORY_TYPES).optional().describe("Of a memory."),
  entity_kind: z.string().optional().describe("Of an entity: person, service, repository, …, in lower case."),
  name: text.optional().describe("Of an entity."),
  content: text.optional().describe("One statement that is understood on its own."),
  tags: tags.optional(),
  importance: importance.optional(),
});
export const updateProposal = z.strictObject({
  action: z.literal("update"),
  ...why,
  target: handle.describe("m1, m2, …"),
  content: text.optional(),
  tags: tags.optional(),
  importance: importance.optional(),
});
export const linkProposal = z.strictObject({
  action: z.literal("link"),
  ...why,
  name_it: handle.optional().describe("A name of your own by which an invalidation of this answer names it."),
  from: handle.describe("m1, …, or the name of something added."),
  to: handle,
  rel: z.string().describe("A verb in snake case: runs_on, works_at, about."),
  weight: z.number().min(0).max(1).optional(),
});
export const mergeProposal = z.strictObject({
  action: z.literal("merge"),
  ...why,
  into: handle.describe("The memory that stays."),
  from: z.array(handle).min(1).max(20).describe("Memories that say the same: they no longer hold."),
  content: text.optional().describe("What it says then; as before unless given."),
});
export const invalidateProposal = z.strictObject({
  action: z.literal("invalidate"),
  ...why,
  target: handle.describe("A memory (m1) or an edge (r1) that no longer holds."),
  by: handle.describe("The memory, or the edge, that holds instead."),
});

const proposal = z.discriminatedUnion("action", [
  addProposal,
  updateProposal,
  linkProposal,
  mergeProposal,
  invalidateProposal,
]);

export type Proposal = z.output<typeof proposal>;
export type ProposalAction = Proposal["action"];

export const PROPOSAL_ACTIONS = ["add", "update", "link", "merge", "invalidate"] as const;

/** The order in which proposals of an answer are carried out: what is named comes before what names it. */
export function inOrder<T extends { action: ProposalAction }>(proposals: readonly T[]): T[] {
  const rank = ({ action }: T): number => ["add", "link", "update", "merge", "invalidate"].indexOf(action);
  return proposals.toSorted((a, b) => rank(a) - rank(b));
}

const answer = z.strictObject({
  reasoning: z.string().describe("What the events say together, before anything is proposed."),
  proposals: z.array(proposal).max(DREAMING_LIMITS.proposals),
});

export const PROPOSE_TOOL = {
  name: "propose_memories",
  description: "Hands in what should be remembered. Call it once; an empty list is a good answer.",
  inputSchema: z.toJSONSchema(answer, { io: "input" }) as Record<string, unknown>,
} as const;

/** Each proposal on its own, for one that is malformed is no reason to lose the others. Undefined: no answer at all. */
export function proposalsIn(input: unknown): { proposals: Proposal[]; malformed: number } | undefined {
  const envelope = z.looseObject({ proposals: z.array(z.unknown()) }).safeParse(input);
  return envelope.success ? readProposals(envelope.data.proposals) : undefined;
}

/** The same of a list. */
export function readProposals(given: readonly unknown[]): { proposals: Proposal[]; malformed: number } {
  const read = given.slice(0, DREAMING_LIMITS.proposals).map((each) => proposal.safeParse(each));
  const proposals = read.flatMap((each) => (each.success ? [each.data] : []));
  return { proposals, malformed: given.length - proposals.length };
}
