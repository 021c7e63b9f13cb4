import { ManualClock } from "../../../core/clock.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import type { OpenedCatalog } from "../../../catalog/contract.ts";
import { sandboxesContract } from "./contract.test-kit.ts";
import { ownersContract } from "./contract-owners.test-kit.ts";
import { sandboxReportsContract } from "./contract-reports.test-kit.ts";
import { volumesContract } from "./contract-volumes.test-kit.ts";

sandboxesContract("sqlite", open);
ownersContract("sqlite", open);
sandboxReportsContract("sqlite", open);
volumesContract("sqlite", open);

async function open(): Promise<OpenedCatalog> {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
}
