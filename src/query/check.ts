import type { Catalog } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { sqlOf, unexpected } from "./attempt.ts";
import { supervise } from "./budgets/supervision.ts";
import type { Permit } from "./budgets/admission.ts";
import type { QueryBudget } from "./budgets/budget.ts";
import type { Watchdog } from "./budgets/watchdog.ts";
import type { CheckedTable, CheckRequest, QueryCheck } from "./contract/check.ts";
import { diagnosticOf } from "./errors/diagnostic.ts";
import { bytesToOpen } from "./fetch/fetch.ts";
import { planQuery, type QueryPlan, type TablePlan } from "./prune/plan.ts";
import type { QueryProcess } from "./scan/query-process.ts";
import { KqlRefusal } from "./translator/translator.ts";
import type { KqlQuery } from "./translator/kql-query.ts";

/**
 * Everything that a query goes through before data is fetched, as editors ask for it with every pause of whoever types:
 * parsed, resolved, planned, and bound over tables without rows, in a process of small queries. Nothing of it runs, but
 * what DuckDB computes of constants while it binds, under the budgets of a query.
 *
 * It is not among running queries, and what is refused is not in the audit log: nobody has asked for it yet.
 */
export type CheckTools = {
  catalog: Catalog;
  clock: Clock;
  watchdog: Watchdog;
  permit: Permit;
  budget: QueryBudget;
  stop: AbortSignal;
};

/**
 * Most time that a check may take: what the translator of KQL may need to start on a busy machine. It never becomes a
 * large query, which would have to wait.
 */
export const CHECK_WALL_MS = 10_000;

/** What is wrong with the text is in the outcome; rejects for all else. */
export async function checkIn(
  child: QueryProcess,
  request: CheckRequest,
  kql: KqlQuery | undefined,
  { catalog, clock, stop, ...tools }: CheckTools,
): Promise<QueryCheck> {
  const supervision = supervise({ ...tools, clock, stop, child, largeAfterMs: 2 * CHECK_WALL_MS });
  let plan: QueryPlan | undefined;
  let isOpen = false;
  try {
    const { parameters, database, text } = request;
    const { memoryBytes } = tools.budget;
    const written = kql === undefined ? { text } : sqlOf(kql);
    const asked = { ...written, database, memoryBytes, ...(parameters !== undefined && { parameters }) };
    const needs = await child.ask({ kind: "parse", ...asked });
    if (needs.kind !== "needs") throw unexpected(needs.kind);
    isOpen = true;
    plan = await planQuery(catalog, request, needs, { clock });
    kql?.check(plan.tables);
    const tables = plan.tables.map(withoutRows);
    isOpen = false;
    const { listed } = plan;
    const described = await child.ask({ kind: "describe", tables, listed, system: needs.system });
    if (described.kind !== "described") throw unexpected(described.kind);
    const columns = kql?.translation.kind === "keys" ? undefined : described.columns;
    return { diagnostics: [], columns, tables: tablesOf(plan) };
  } catch (error) {
    if (isOpen && child.alive && !child.isCancelled) await child.ask({ kind: "drop" }).catch(() => {});
    const cause = supervision.reasonOf(error);
    return wrong(kql === undefined ? cause : kql.failureOf(cause), request, plan);
  } finally {
    supervision.end();
  }
}

/** The outcome for a text that is wrong; throws what is not the text's fault. */
export function wrong(error: unknown, request: CheckRequest, plan?: QueryPlan): QueryCheck {
  const diagnostic = diagnosticOf(error, request, error instanceof KqlRefusal ? error.length : undefined);
  if (diagnostic === undefined) throw error;
  return { diagnostics: [diagnostic], columns: undefined, tables: plan === undefined ? [] : tablesOf(plan) };
}

function withoutRows({ name, columns, needed, visible }: TablePlan) {
  return { name, columns, needed, visible, extents: [], bareRows: 0 };
}

function tablesOf({ tables }: QueryPlan): CheckedTable[] {
  return tables.map((table) => ({
    database: table.database,
    table: table.name,
    snapshot: table.snapshot,
    extents: table.extents.length,
    extentsTotal: table.pruning.total.extents,
    rows: table.extents.reduce((sum, { rows }) => sum + rows, 0),
    bytes: bytesToOpen([table]),
  }));
}
