import type { OpenedCatalog } from "../../../catalog/contract.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { sessionsContract } from "./contract.test-kit.ts";

sessionsContract("sqlite", open);

async function open(): Promise<OpenedCatalog> {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
}
