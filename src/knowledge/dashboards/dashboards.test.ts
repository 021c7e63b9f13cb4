import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import { dashboardsContract } from "./contract.test-kit.ts";

dashboardsContract("sqlite", async () => {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
});
