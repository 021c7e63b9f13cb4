import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import { webSessionsContract } from "./contract-web-sessions.test-kit.ts";

webSessionsContract("sqlite", () => {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return Promise.resolve({ catalog, clock, close: () => catalog.close() });
});
