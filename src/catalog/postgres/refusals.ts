import { messageOf } from "../../core/errors.ts";
import type { Lease } from "../catalog.ts";
import {
  deletionsConserveRows,
  liveExtentsAreNotForgotten,
  mergesConserveRows,
  readableExtentsAreNotForgotten,
} from "../invariants.ts";
import { ExtentPendingDeletion, LeaseLost } from "../refusals.ts";
import { sqlStateOf } from "../../db/postgres/errors.ts";

/** Codes that functions of the catalog raise (`postgres-functions-1.ts`); their messages are JSON. */
const RAISED = {
  leaseLost: "EN001",
  pendingDeletion: "EN002",
  notForgettable: "EN003",
  rowsDiffer: "EN004",
  rowsLeft: "EN005",
};
const RAISED_CODES: ReadonlySet<string> = new Set(Object.values(RAISED));

const UNIQUE_VIOLATION = "23505";

/** Whether an extent's id was taken. */
export function isTakenExtent(error: unknown): boolean {
  if (sqlStateOf(error) !== UNIQUE_VIOLATION || !(error instanceof Error)) return false;
  return "constraint_name" in error && error.constraint_name === "extents_id_key";
}

/** Whether only the call that met the error can explain it: the database passes such an error on as it is. */
export function isCatalogRefusal(error: unknown): boolean {
  return RAISED_CODES.has(sqlStateOf(error) ?? "") || isTakenExtent(error);
}

/** A lease as functions of the catalog take it. */
export function leaseParameter(lease: Lease | undefined): string | null {
  return lease === undefined ? null : JSON.stringify(lease);
}

/** What a function of the catalog found wrong, as its callers know it; any other error as it is. */
export function toRefusal(error: unknown, lease: Lease | undefined): unknown {
  switch (sqlStateOf(error)) {
    case RAISED.leaseLost:
      return new LeaseLost(lease?.name ?? "");
    case RAISED.pendingDeletion:
      return new ExtentPendingDeletion(JSON.parse(messageOf(error)) as string[]);
    case RAISED.notForgettable:
      return violationOf(() => {
        const { id, end, oldest } = JSON.parse(messageOf(error)) as NotForgettable;
        const endSnapshot = end ?? undefined;
        liveExtentsAreNotForgotten(id, endSnapshot);
        readableExtentsAreNotForgotten(id, endSnapshot, oldest);
      });
    case RAISED.rowsDiffer:
      return violationOf(() => {
        const { inputRows, outputRows } = JSON.parse(messageOf(error)) as { inputRows: number; outputRows: number };
        mergesConserveRows(inputRows, outputRows);
      });
    case RAISED.rowsLeft:
      return violationOf(() => {
        const { inputRows, outputRows, deletedRows } = JSON.parse(messageOf(error)) as RowsLeft;
        deletionsConserveRows(inputRows, outputRows, deletedRows);
      });
    case undefined:
    default:
      return error;
  }
}

type RowsLeft = { inputRows: number; outputRows: number; deletedRows: number };
type NotForgettable = { id: string; end: number | null; oldest: number };

function violationOf(check: () => void): unknown {
  try {
    check();
  } catch (violation) {
    return violation;
  }
  return new Error("the database saw an invariant broken that holds");
}
