import { writeSync } from "node:fs";
import { openSqliteCatalog } from "../../../catalog/sqlite/sqlite.ts";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { addSandboxRow, appendEvents, line } from "./log.test-kit.ts";

/**
 * A process that writes events for ever: `append-child.ts PATH SANDBOX QUOTA`. It says on standard output how
 * many lines it has written, each time that they are acknowledged.
 */
const [, , path = "", sandboxId = "", quota = ""] = process.argv;

const catalog = await openSqliteCatalog({ path, clock: systemClock, log: silentLog, mode: "server" });
const [known] = await catalog.records.rows("SELECT last_seq FROM sandboxes WHERE id = ?", [sandboxId]);
if (known === undefined) await addSandboxRow(catalog.records, sandboxId);
let written = Number(known?.["last_seq"] ?? 0);
for (;;) {
  const events = Array.from({ length: 50 }, (_, i) => line(`${written + i + 1} ${"x".repeat(300)}`));
  await appendEvents(catalog.records, sandboxId, events, Number(quota));
  written += events.length;
  writeSync(1, `${written}\n`);
}
