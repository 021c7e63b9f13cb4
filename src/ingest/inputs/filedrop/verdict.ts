import { LeaseLost } from "../../../catalog/refusals.ts";
import { EngineError, messageOf, publicText, type ErrorCode } from "../../../core/errors.ts";
import { ObjectChanged, ObjectNotFound } from "../../../io/objectstore/objectstore.ts";
import { UnreadableRows } from "../../../io/rows/unreadable-rows.ts";
import type { Refusal } from "./drop-records.ts";

/** What an error of a load says about its file. */
export type Verdict =
  /** The file itself is wrong, and stays so until it changes. */
  | { kind: "rejected"; refusal: Refusal }
  /** There is no such table yet. */
  | { kind: "waiting"; refusal: Refusal }
  /** It is another file by now, or gone: the next look finds out. */
  | { kind: "changed" }
  /** This file cannot be loaded now; others may be. */
  | { kind: "failed"; refusal: Refusal; isCrash: boolean }
  /** Nothing can be loaded now: the lease is lost, the store or the catalog is away. */
  | { kind: "halted" };

const REJECTED: ReadonlySet<ErrorCode> = new Set(["bad_request_body", "invalid_name", "body_too_large"]);
const WAITING: ReadonlySet<ErrorCode> = new Set(["table_not_found", "database_not_found"]);
/** Conflicts that went on for too long, and what nobody foresaw. */
const FAILED: ReadonlySet<ErrorCode> = new Set(["ingest_failed", "internal"]);

export function verdictOf(error: unknown): Verdict {
  if (error instanceof ObjectChanged || error instanceof ObjectNotFound) return { kind: "changed" };
  if (error instanceof LeaseLost) return { kind: "halted" };
  if (error instanceof UnreadableRows) {
    const { line, column, isCrash } = error;
    const refusal = { reason: publicText(error.message), line, column };
    return isCrash ? { kind: "failed", refusal, isCrash } : { kind: "rejected", refusal };
  }
  const refusal = refusalOf(error);
  if (!(error instanceof EngineError) || FAILED.has(error.code)) {
    return { kind: "failed", refusal, isCrash: false };
  }
  if (REJECTED.has(error.code)) return { kind: "rejected", refusal };
  return WAITING.has(error.code) ? { kind: "waiting", refusal } : { kind: "halted" };
}

function refusalOf(error: unknown): Refusal {
  const reason = publicText(messageOf(error));
  if (!(error instanceof EngineError)) return { reason };
  const { line, column } = error.details;
  return { reason, line, column: column === undefined ? undefined : String(column) };
}
