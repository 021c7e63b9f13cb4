import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { catalogContract } from "../contract.ts";
import { openSqliteCatalog } from "./sqlite.ts";

catalogContract("sqlite", async () => {
  const folder = mkdtempSync(join(tmpdir(), "engine-catalog-"));
  const clock = new ManualClock();
  const catalog = await openSqliteCatalog({ path: join(folder, "catalog.db"), clock, log: silentLog, mode: "server" });
  const close = async () => {
    await catalog.close();
    rmSync(folder, { recursive: true });
  };
  return { catalog, close, clock };
});
