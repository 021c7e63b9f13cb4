import { ManualClock } from "../../core/clock.ts";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { sandboxesContract } from "./contract.ts";
import { ownersContract } from "./contract-owners.ts";
import { sandboxReportsContract } from "./contract-reports.ts";
import { volumesContract } from "./contract-volumes.ts";

sandboxesContract("sqlite", open);
ownersContract("sqlite", open);
sandboxReportsContract("sqlite", open);
volumesContract("sqlite", open);

async function open(): Promise<OpenedCatalog> {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
}
