import type { Clock } from "../../core/clock.ts";
import type { Random } from "../../core/random.ts";
import type { Brief, BriefWriter } from "../memory/recall/brief.ts";
import { KnownAddresses } from "./run/addresses.ts";
import { AnswerText } from "./run/answer-text.ts";
import type { AgentEngines } from "./engines/engines.ts";
import { smallTask } from "./engines/small-task.ts";

const TIMEOUT_MS = 10_000;
const MAX_WORDS = 200;
const MAX_TOKENS = 600;
const MEMORY_CHARS = 2_000;

const TASK =
  `Answer the question from the memories below, in at most ${MAX_WORDS} words and the language of the question. Behind each ` +
  "statement name the memories that it rests on by their numbers in brackets, as [1] or [2][3]. Where they do not say, say so. " +
  "Say nothing that is in none of them.";

/** Briefs of recalls by the engine of the agent. */
export function briefWriter(deps: { engines: Pick<AgentEngines, "open">; clock: Clock; random: Random }): BriefWriter {
  return async ({ question, memories, origin, signal }) => {
    if (memories.length === 0) return { text: "", memoryIds: [] };
    const listed = memories.map(({ content }, i) => `[${i + 1}] ${content.slice(0, MEMORY_CHARS).toWellFormed()}`);
    const text = `Question: ${question}\n\n${listed.join("\n")}`;
    const engine = await deps.engines.open(origin);
    const asked = { task: TASK, origin: "the question and the memory", text, maxOutputTokens: MAX_TOKENS };
    const said = await smallTask(engine, { ...asked, timeoutMs: TIMEOUT_MS, signal }, deps);
    const known = new KnownAddresses();
    for (const address of [question, ...memories.map(({ content }) => content)]) known.learn(address);
    const shown = new AnswerText(known);
    return briefOf(`${shown.push(said)}${shown.end()}`, memories);
  };
}

/** Numbers that name no memory are taken out: a reader would look for it. */
function briefOf(said: string, memories: readonly { id: string }[]): Brief {
  const memoryIds: string[] = [];
  const text = said.replaceAll(/\[(\d{1,4})\]/gu, (whole, number: string) => {
    const id = memories[Number(number) - 1]?.id;
    if (id === undefined) return "";
    if (!memoryIds.includes(id)) memoryIds.push(id);
    return whole;
  });
  return { text: withinWords(text), memoryIds };
}

function withinWords(text: string): string {
  const words = [...text.matchAll(/\S+/gu)];
  const last = words[MAX_WORDS];
  return last === undefined ? text : `${text.slice(0, last.index).trimEnd()} …`;
}
