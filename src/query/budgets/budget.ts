import { EngineError, type ErrorDetails } from "../../core/errors.ts";

/**
 * What one query may take. The server has a budget for every query; a request may lower it, never raise it. A query
 * that passes one of its budgets is ended, alone, with `budget_exceeded`; the header and the body name the budget.
 */
export type QueryBudget = {
  /** From admission to the last row in the result file; the client's pace does not count. */
  wallMs: number;
  /** DuckDB spills past it, and what cannot spill fails; native memory past it is for the watchdog. */
  memoryBytes: number;
  /** Bytes requested from the object store; 0 allows what is on this machine already. */
  objectStoreBytes: number;
};

/** As headers and bodies name budgets; `temp_bytes` is the server's own and has no header. */
export type BudgetName = "wall_clock_ms" | "memory_bytes" | "object_store_bytes" | "temp_bytes";

/** The least that a request may ask for. */
export const BUDGET_MINIMUMS: QueryBudget = { wallMs: 10, memoryBytes: 1024 * 1024, objectStoreBytes: 0 };

/** What a request asks for; anything that is not there, or more than the server's, is the server's. */
export type AskedBudget = { [K in keyof QueryBudget]?: number | undefined };

/** The server's budget, lowered to what was asked where that is less. */
export function loweredBudget(server: QueryBudget, asked: AskedBudget = {}): QueryBudget {
  return {
    wallMs: Math.min(server.wallMs, asked.wallMs ?? Infinity),
    memoryBytes: Math.min(server.memoryBytes, asked.memoryBytes ?? Infinity),
    objectStoreBytes: Math.min(server.objectStoreBytes, asked.objectStoreBytes ?? Infinity),
  };
}

const LIMIT_HEADER = "X-Engine-Budget-Limit";

const SENTENCES: Record<BudgetName, (used: string, allowed: string) => string> = {
  wall_clock_ms: (used, allowed) => `the query took ${used} ms of its wall-clock budget of ${allowed} ms`,
  memory_bytes: (used, allowed) => `the query needs more than its memory budget of ${allowed} bytes (it used ${used})`,
  object_store_bytes: (used, allowed) =>
    `the query reads ${used} bytes from the object store, and its budget is ${allowed} bytes`,
  temp_bytes: (used, allowed) =>
    `the query needs more than its temporary space of ${allowed} bytes for spilled data or its result (it used ${used})`,
};

/**
 * The error of a breach. `used` is what the query had taken, or asked for, when it was ended: at least `allowed`, for
 * what was not let in is not counted by everybody who refuses it.
 */
export function budgetError(name: BudgetName, used: number, allowed: number): EngineError {
  const whole = Math.ceil(Math.max(used, allowed));
  return new EngineError("budget_exceeded", SENTENCES[name](String(whole), String(allowed)), {
    headers: { [LIMIT_HEADER]: `${name}=${allowed}` },
    budget: { name, used: whole, allowed },
  } satisfies ErrorDetails);
}

/** The budget that an error is about; undefined for all other errors. */
export function budgetOf(error: unknown): ErrorDetails["budget"] {
  return error instanceof EngineError ? error.details.budget : undefined;
}
