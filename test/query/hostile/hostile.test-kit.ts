import type { Caller } from "../../../src/auth/caller.ts";
import { createQueryHarness, type QueryHarness } from "../../../src/query/query.test-kit.ts";

/** Who may read database `default`, and not `other`. */
export const caller: Caller = { subject: "limited", kind: "api_token", role: "read", databases: ["default"] };

/** Codes of a text that was looked at and not run. */
export const REFUSALS = ["invalid_query", "parse_error", "table_not_found", "database_not_found"];

/** A query service with table `logs` in `default`, which the caller may read, and `secret` in `other`; each has one row. */
export async function createHostileHarness(): Promise<QueryHarness> {
  const harness = createQueryHarness();
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "label", type: { kind: "string" } },
  ] as const;
  const rows = [{ at: 1n, label: "/etc/passwd" }];
  await harness.addTable("default", "logs", columns, [{ format: "tlm", columns, rows }]);
  await harness.addTable("other", "secret", columns, [{ format: "tlm", columns, rows }]);
  return harness;
}
