import { abuseHarness } from "./abuse-rounds.test-kit.ts";
import { withBackstop } from "./backstop.test-kit.ts";

/** A server for `abuse.long.test.ts` to kill: runs a query that never ends, and says which processes it has. */
const harness = await abuseHarness();
await harness.rows("SELECT 1");
const endless = harness.text(
  "SELECT count(*) FROM range(1_000_000_000) a(x), range(1_000_000_000) b(y) WHERE x + y < 0",
);
process.stdout.write(`${JSON.stringify({ pids: harness.pool.pids(), folder: harness.folder })}\n`);
await withBackstop(harness, () => endless);
