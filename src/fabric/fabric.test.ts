import { ManualClock } from "../core/clock.ts";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import { fabricContract } from "./contract.test-kit.ts";
import { jobLogsContract } from "./contract-logs.test-kit.ts";
import { jobOwnersContract } from "./contract-owners.test-kit.ts";
import { schedulesContract } from "./contract-schedules.test-kit.ts";
import { workersContract } from "./contract-workers.test-kit.ts";

fabricContract("sqlite", open);
jobLogsContract("sqlite", open);
schedulesContract("sqlite", open);
workersContract("sqlite", open);
jobOwnersContract("sqlite", open);

async function open(): Promise<OpenedCatalog> {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
}
