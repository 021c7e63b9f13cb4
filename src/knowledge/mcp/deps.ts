import type { Caller } from "../../auth/caller.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Signals } from "../../db/signals.ts";
import type { Misfit } from "../../format/ndjson/misfits.ts";
import type { GraphDeps } from "../graph/routes/graph.ts";
import type { MEMORY_TYPES } from "../memory/model.ts";
import type { MemoryDeps } from "../memory/routes/deps.ts";
import type { Skills } from "../skills/skills.ts";
import type { LentToolsByToken } from "./lent-tools.ts";

/** What the tools work with: the services of the routes. */
export type ToolDeps = MemoryDeps &
  GraphDeps & {
    catalog: Pick<Catalog, "databases" | "database" | "tables" | "table" | "tableStats">;
    queries: QueryRunner;
    rows: RowIngest;
    skills: Pick<Skills, "enabled" | "read">;
    /** Undefined where no questions are answered. */
    asker?: Asker | undefined;
    /** Undefined where no model extracts anything. */
    extractor?: Extractor | undefined;
    log: Log;
    metrics: Metrics;
    clock: Clock;
  };

/** Answers questions, as the route of the agent does. */
export type Asker = {
  /** @throws EngineError what the route answers with, and why a run failed */
  ask(
    question: { question: string; database: string; sessionId: string | undefined; source: string },
    origin: { caller: Caller; address: string; requestId: string },
    signal: AbortSignal,
  ): Promise<{ answer: string; sessionId: string; runId: string; queries: readonly string[] }>;
};

export type ExtractedStatement = { turn: number; memoryType: (typeof MEMORY_TYPES)[number]; content: string };

/**
 * What a language model finds in a conversation that is worth keeping; undefined where there is none. Rejects with why it
 * failed.
 */
export type Extractor = (asked: {
  turns: readonly { turn: number; role: string; content: string }[];
  origin: { caller: Caller; address: string; requestId: string };
  signal: AbortSignal;
}) => Promise<ExtractedStatement[] | undefined>;

/** What the routes of MCP work with. */
export type McpDeps = ToolDeps & {
  signals: Signals;
  /** The runs that lend their tools; undefined where none does. */
  lent?: Pick<LentToolsByToken, "find"> | undefined;
};

/** Runs queries, as the routes of queries do. */
export type QueryRunner = {
  run(request: {
    caller: Caller;
    address: string;
    database: string;
    text: string;
    language: "sql" | "kql";
    requestId: string;
    signal: AbortSignal;
    /** Lowers what the server allows a query. */
    budget?: { wallMs?: number; memoryBytes?: number };
  }): Promise<{
    /** Of the whole result. */
    rows: number;
    columns: readonly string[];
    snapshot: number;
    /** NDJSON; must be drained or closed. */
    body: AsyncIterable<Uint8Array>;
  }>;
};

/** Takes rows, as the routes of ingest do. */
export type RowIngest = {
  ingest(request: {
    caller: Caller;
    database: string;
    table: string;
    idempotencyKey?: string;
    autoCreate: boolean;
    evolve: boolean;
    expectedBytes: number;
    /** NDJSON. */
    readBody: () => Promise<Uint8Array>;
  }): Promise<{
    snapshotId: number | undefined;
    rows: number;
    replayed: boolean;
    staged?: true;
    warnings?: readonly Misfit[];
  }>;
};
