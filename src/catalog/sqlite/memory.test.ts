import { ManualClock } from "../../core/clock.ts";
import { catalogContract } from "../contract.test-kit.ts";
import { openMemoryCatalog } from "./memory.test-kit.ts";

catalogContract("sqlite in memory", async () => {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, close: () => catalog.close(), clock };
});
