import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../core/clock.ts";
import { workbenchContract } from "./contract.test-kit.ts";

workbenchContract("sqlite", async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
});
