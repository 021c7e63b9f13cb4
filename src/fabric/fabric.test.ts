import { ManualClock } from "../core/clock.ts";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import type { OpenedCatalog } from "../catalog/contract.test-kit.ts";
import { fabricContract } from "./contract.ts";
import { jobLogsContract } from "./contract-logs.ts";
import { jobOwnersContract } from "./contract-owners.ts";
import { schedulesContract } from "./contract-schedules.ts";
import { workersContract } from "./contract-workers.ts";

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
