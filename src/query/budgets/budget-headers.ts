import { z } from "zod";
import { BUDGET_MINIMUMS, type AskedBudget } from "./budget.ts";

/** A budget that the request lowers; one above the server's is the server's. */
function budgetHeader(minimum: number, doc: string) {
  const range = `accepted are integers from ${minimum}`;
  return z
    .string()
    .regex(/^ *[0-9]+ *$/, range)
    .transform(Number)
    .refine((value) => value >= minimum, range)
    .optional()
    .describe(`${doc} At least ${minimum}; may only lower the server's.`);
}

/** Of a request, over HTTP and as metadata of gRPC. */
export const budgetHeaders = {
  "x-engine-max-wall-clock-ms": budgetHeader(BUDGET_MINIMUMS.wallMs, "Milliseconds that the query may take."),
  "x-engine-max-memory-bytes": budgetHeader(
    BUDGET_MINIMUMS.memoryBytes,
    "Memory that the query may take; what needs more spills to disk, and fails where it cannot.",
  ),
  "x-engine-max-object-store-bytes": budgetHeader(
    BUDGET_MINIMUMS.objectStoreBytes,
    "Bytes that the query may read from the object store.",
  ),
};

export type BudgetHeaders = z.output<z.ZodObject<typeof budgetHeaders>>;

/** What those headers ask for. */
export function askedBudget(headers: BudgetHeaders): AskedBudget {
  return {
    wallMs: headers["x-engine-max-wall-clock-ms"],
    memoryBytes: headers["x-engine-max-memory-bytes"],
    objectStoreBytes: headers["x-engine-max-object-store-bytes"],
  };
}
