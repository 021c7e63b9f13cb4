import { createHash } from "node:crypto";
import type { AuditEvent, AuditLog } from "../auth/audit.ts";
import { ownerOf } from "../auth/owner.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { budgetOf } from "./budgets/budget.ts";
import type { Ender, FollowedQuery } from "./contract/running.ts";
import type { QueryRecord } from "./system-tables/query-log.ts";

/**
 * Writes to the audit log which queries were refused (statements that the gate does not let through, databases that are
 * not the caller's), which passed a budget, which were cancelled, and which somebody ended: by whom, and the SHA-256 of the text, which may hold anything. Slips of a
 * client are refusals too, so what is written is bounded for each caller; what is left out is counted in the log.
 */
export type QueryAuditOptions = { audit: Pick<AuditLog, "record">; clock: Clock; log: Log };

/** Entries that a caller has at once, and the time after which there is one more. */
const BURST = 60;
const REFILL_MS = 1_000;
/** Callers that are remembered; beyond that all begin anew. */
const MAX_CALLERS = 10_000;

type Bucket = { left: number; atMs: number; dropped: number };

export class QueryAudit {
  readonly #options: QueryAuditOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: QueryAuditOptions) {
    this.#options = options;
  }

  /** Says what became of a query; failures that are none of these are not written. Does not wait. */
  failed(request: FollowedQuery, error: unknown): void {
    const reason = reasonOf(error);
    if (reason === undefined || !this.#mayWrite(request.caller.subject)) return;
    const { caller, address = "", requestId, database, text } = request;
    const details = { reason: reason.text, text_sha256: createHash("sha256").update(text).digest("hex") };
    this.#write({
      origin: { caller, address, requestId },
      action: reason.action,
      target: database,
      outcome: reason.action === "query.cancel" ? "cancelled" : "refused",
      details,
    });
  }

  /**
   * Says who ended a query that ran. Of others' queries all are written: there are no more than queries that ran. The
   * query's own entry, `query.cancel`, is written as of any that is cancelled. Does not wait.
   */
  ended({ caller, address, requestId }: Ender, { id, database, subject, owner, text }: QueryRecord): void {
    if (owner === ownerOf(caller) && !this.#mayWrite(caller.subject)) return;
    const details = { database, subject, text_sha256: createHash("sha256").update(text).digest("hex") };
    this.#write({ origin: { caller, address, requestId }, action: "query.end", target: id, outcome: "ok", details });
  }

  #write(event: AuditEvent): void {
    const { requestId } = event.origin;
    this.#options.audit
      .record(event)
      .catch((failure: unknown) =>
        this.#options.log.error({ err: failure, requestId }, "cannot write to the audit log"),
      );
  }

  #mayWrite(subject: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#buckets.size >= MAX_CALLERS) this.#buckets.clear();
    const { left, atMs, dropped } = this.#buckets.get(subject) ?? { left: BURST, atMs: nowMs, dropped: 0 };
    const filled = Math.min(BURST, left + (nowMs - atMs) / REFILL_MS);
    const may = filled >= 1;
    if (may && dropped > 0) this.#options.log.warn({ subject, dropped }, "refused queries left out of the audit log");
    this.#buckets.set(subject, { left: may ? filled - 1 : filled, atMs: nowMs, dropped: may ? 0 : dropped + 1 });
    return may;
  }
}

const MAX_REASON_CHARS = 300;

function reasonOf(
  error: unknown,
): { action: "query.refuse" | "query.budget" | "query.cancel"; text: string } | undefined {
  if (!(error instanceof EngineError)) return undefined;
  const budget = budgetOf(error);
  if (budget !== undefined) return { action: "query.budget", text: budget.name };
  if (error.code === "cancelled") return { action: "query.cancel", text: error.message };
  return error.details.refused === true
    ? { action: "query.refuse", text: error.message.slice(0, MAX_REASON_CHARS) }
    : undefined;
}
