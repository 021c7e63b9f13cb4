import { MCP_LIMITS } from "./limits.ts";

/**
 * What a conversation says outright that is to be kept: "remember …", "we decided …", "I prefer …". Without a model:
 * forms at the beginning of a sentence decide, so what is only meant is not found, and a sentence about remembering is no
 * order to. Only what people say counts: answers of models and results of tools are full of sentences that others wrote, and
 * a page that says "remember …" must not write into anybody's memory.
 */
export type Statement = {
  memoryType: "fact" | "decision" | "preference" | "learning" | "procedure";
  content: string;
  /** Which turn says it; the first is 1. */
  turn: number;
};

export type Turn = { role: "user" | "assistant" | "system" | "tool"; content: string };

/** `keeps`: the whole sentence is kept; otherwise what follows the form. */
type Form = { memoryType: Statement["memoryType"]; form: RegExp; keeps: boolean };

const LEAD = String.raw`^(?:(?:please|ok(?:ay)?|so|also|and|but|yes|no|well|then|btw|by the way|actually|again|hey)[,:]?\s+){0,3}`;

function leading(memoryType: Statement["memoryType"], form: string, { keeps }: { keeps: boolean }): Form {
  return { memoryType, form: new RegExp(`${LEAD}(?:${form})`, "iu"), keeps };
}

const WHOLE = { keeps: true };
const REST = { keeps: false };
const WE = "(?:we|the team|i)(?:['’]ve| have|['’]re| are)?(?: all)?(?: now| just| finally)?";

const FORMS: readonly Form[] = [
  leading("preference", String.raw`(?:remember|note)(?: that)?[,:]?\s+(?=(?:i|we) prefer\b)`, REST),
  leading("decision", String.raw`(?:remember|note)(?: that)?[,:]?\s+(?=${WE} (?:decided|agreed)\b)`, REST),
  leading(
    "fact",
    String.raw`remember(?: this)?:\s*|(?:always )?remember that\s+|remember,\s+|remember\s+(?!(?:when|how|if|whether|me|us|it|this|that|the time|what|why|who)\b)`,
    REST,
  ),
  leading(
    "fact",
    String.raw`(?:don['\u2019]t|do not|never) forget(?: that)?[,:]?\s+|keep in mind(?: that)?[,:]?\s+`,
    REST,
  ),
  leading(
    "fact",
    String.raw`(?:note|take note)(?: that\s+|:\s*)|for (?:the record|your information)[,:]\s*|fyi[,:]?\s+`,
    REST,
  ),
  leading("decision", String.raw`${WE} (?:decided|agreed|chose|settled on|opted)\b`, WHOLE),
  leading("decision", String.raw`(?:the )?decision(?: is)?:\s*`, REST),
  leading("decision", String.raw`it (?:was|is|has been) decided\b`, WHOLE),
  leading(
    "preference",
    String.raw`(?:i|we)(?: always| really| strongly| generally| usually| would| much)* prefer\b`,
    WHOLE,
  ),
  leading("preference", String.raw`my preference is\b|from now on\b`, WHOLE),
  leading("preference", String.raw`preference:\s*`, REST),
  leading(
    "learning",
    String.raw`(?:lesson learned|lessons learned|learning|til|today i learned)[,:]?\s+(?:that\s+)?`,
    REST,
  ),
  leading(
    "learning",
    String.raw`(?:we|i)(?:['\u2019]ve| have)? learned (?:that|to)\b|it turn(?:s|ed) out(?: that)?\b`,
    WHOLE,
  ),
  leading("procedure", String.raw`(?:procedure|runbook|how-?to|steps):\s*`, REST),
];

/** The statements of a conversation in their order, each once. */
export function statementsOf(turns: readonly Turn[]): Statement[] {
  const found = new Map<string, Statement>();
  for (const [i, { role, content }] of turns.entries()) {
    if (role !== "user") continue;
    for (const sentence of sentencesOf(content)) {
      const statement = statementOf(sentence);
      if (statement === undefined) continue;
      const key = statement.content.toLowerCase();
      if (!found.has(key)) found.set(key, { ...statement, turn: i + 1 });
      if (found.size >= MCP_LIMITS.statements) return [...found.values()];
    }
  }
  return [...found.values()];
}

function statementOf(sentence: string): Omit<Statement, "turn"> | undefined {
  if (sentence.endsWith("?")) return undefined;
  for (const { memoryType, form, keeps } of FORMS) {
    const match = form.exec(sentence);
    if (match === null) continue;
    const content = (keeps ? sentence : sentence.slice(match[0].length)).trim();
    // A word or two say nothing by themselves: "remember this".
    if (content.split(/\s+/u).length < 2) return undefined;
    return { memoryType, content: content.slice(0, MCP_LIMITS.statementChars).toWellFormed() };
  }
  return undefined;
}

/** Without code and quotations, whose words are others'. */
function sentencesOf(text: string): string[] {
  let inCode = false;
  const sentences: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/u)) {
    if (/^\s*(?:```|~~~)/u.test(line)) inCode = !inCode;
    else if (!inCode && !/^\s*>/u.test(line)) sentences.push(...sentencesOfLine(line));
  }
  return sentences;
}

function sentencesOfLine(line: string): string[] {
  const text = line.replace(/^\s*(?:[-*\u2022]|\d{1,3}[.)])\s+/u, "").trim();
  // A point ends a sentence where a blank and no small letter follow: not in `v1.2` or `e.g. this`.
  return text.split(/(?<=[.!?\u2026])\s+(?![a-z])/u).filter((sentence) => sentence !== "");
}

const SPEAKERS: Readonly<Record<string, Turn["role"]>> = {
  user: "user",
  human: "user",
  me: "user",
  assistant: "assistant",
  ai: "assistant",
  agent: "assistant",
  model: "assistant",
  system: "system",
  tool: "tool",
};

/** The turns of a transcript in plain text, whose lines may begin with `User:`, `Assistant:` and so on. */
export function turnsOf(transcript: string): Turn[] {
  const turns: { role: Turn["role"]; lines: string[] }[] = [];
  for (const line of transcript.split(/\r\n|\r|\n/u)) {
    const speaker = /^\s{0,3}(?:\*\*|#{1,4} ?)?(\w{2,9})(?:\*\*)?:(?:\*\*)?\s?/u.exec(line);
    const role = SPEAKERS[speaker?.[1]?.toLowerCase() ?? ""];
    if (role !== undefined) turns.push({ role, lines: [line.slice(speaker?.[0].length ?? 0)] });
    else if (turns.length > 0) turns.at(-1)?.lines.push(line);
    else turns.push({ role: "user", lines: [line] });
  }
  return turns
    .map(({ role, lines }) => ({ role, content: lines.join("\n").trim() }))
    .filter(({ content }) => content !== "");
}
