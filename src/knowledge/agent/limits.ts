import { MCP_LIMITS } from "../mcp/limits.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** What a question may take, and what is kept of it. */
export const AGENT_LIMITS = {
  /** From admission to the last event, whatever waits. */
  runMs: 60_000,
  toolCalls: 12,
  questionBytes: MCP_LIMITS.questionBytes,
  /** Of one query of a run; less when less is left of the run. */
  queryMs: 20_000,
  queryMemoryBytes: 1024 * MIB,
  /** What a tool's answer tells the model. */
  toolRows: 200,
  toolBytes: 32 * KIB,
  /** What the model may say in one run, its thinking included. */
  outputBytes: 4 * MIB,
  /** Of what describes the tables of a database. */
  schemaBytes: 24 * KIB,
  /** Of the turns that a model is shown again; older ones are told by the summary. */
  historyBytes: 64 * KIB,
  /** How long a session's title may be. */
  titleChars: 120,
  sourceChars: 200,
  /** Lists of sessions. */
  sessions: 200,
  /** Of the turns of a session: what one answer brings, and the bytes beyond which no further turn is added. */
  turns: 1_000,
  turnBytes: 8 * MIB,
  /** A run whose holder has not been heard of for so long is over. */
  leaseMs: 12_000,
  /** How often holders extend theirs, and every node looks for those that are over. */
  leasePollMs: 4_000,
  /** One token from a candidate engine. */
  probeMs: 30_000,
  /** How long a provider's own list of models is believed. */
  menuMs: 600_000,
} as const;
