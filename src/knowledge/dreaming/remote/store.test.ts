import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { remoteDreamsContract } from "./store.test-kit.ts";

remoteDreamsContract("sqlite", async () => {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
});
